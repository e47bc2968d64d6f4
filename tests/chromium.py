"""A headless Chromium, driven over its debugging pipe: enough to open a page, act on it, and see what it did."""

import base64
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


class Browser:
    """One page in a fresh profile. `problems` collects what the console, the log and uncaught errors say."""

    def __init__(self, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        self.problems: list[str] = []
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Chromium reads commands from file descriptor 3 and answers on 4, each message ended by a NUL.
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()
        flags = [*FLAGS, f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}"]
        pipe = f'exec "$0" "$@" 3<&{read_commands} 4>&{write_answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", pipe, str(CHROMIUM), *flags, "about:blank"],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        targets = self.command("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.command("Emulation.setEmulatedMedia", features=[scheme, still])

    def open(self, path: Path, settle: float = 0.3) -> None:
        """Load a file, and wait until the page says that it is ready, and so many seconds more."""
        self.command("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + 60
        while not self.run("document.documentElement?.dataset.ready === 'true'"):
            if self.problems or time.monotonic() > end:
                raise AssertionError(f"The page did not become ready: {self.problems}")
            time.sleep(0.05)
        self.wait(settle)

    def enter_frame(self) -> None:
        """From here on, scripts run in the only frame of the page that has a process of its own."""
        targets = self.command("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "iframe")
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def run(self, script: str) -> Any:
        """Evaluate JavaScript from outside the page's content security policy and return its JSON value."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, seconds: float) -> None:
        self.run(f"new Promise((done) => setTimeout(done, {1000 * seconds}))")

    def click(self, x: float, y: float) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.wait(0.2)

    def hover(self, x: float, y: float) -> None:
        self.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.wait(0.2)

    def key(self, name: str) -> None:
        text = {"text": "\r"} if name == "Enter" else {"text": name} if len(name) == 1 else {}
        self.command("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=name)
        self.wait(0.2)

    def write(self, text: str) -> None:
        self.command("Input.insertText", text=text)
        self.wait(0.4)

    def screenshot(self, path: Path) -> None:
        """A picture of the window, of the kind that the ending of the path says: .png, .jpeg or .webp."""
        taken = self.command("Page.captureScreenshot", format=path.suffix[1:])
        path.write_bytes(base64.b64decode(taken["data"]))

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise AssertionError(answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._answers, 1 << 16)
            if not piece:
                raise AssertionError("Chromium ended.")
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(json.dumps(params["args"])[:2000])
        elif method == "Log.entryAdded":
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
            self.problems.append("request: " + params["request"]["url"])

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self._profile.cleanup()
