"""A scripted OpenAI-compatible server: real sockets, real clients, any answer and any fault.

with LLMServer(lambda request: Reply('{"a": 1}')) as server:
    llm = OpenAILike(model="m", api_base=server.url, api_key="none", is_chat_model=True, max_retries=0)
    ...
assert server.answered == [...]
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request: where it went, its JSON body, and the text of its prompt (all messages, one after another)."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    prompt: str


@dataclass(frozen=True)
class Reply:
    """What the server does.

    content, finish_reason, tool_arguments : the message; with tool_arguments it is a function call
    status, headers, body : of the HTTP response; a body given here goes out as it is
    delay : seconds before anything is sent
    drip : seconds between the pieces of the body, or the pieces of a stream
    cut : close the connection in the middle of the body
    """

    content: str = ""
    finish_reason: str = "stop"
    tool_arguments: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    drip: float = 0.0
    cut: bool = False


class LLMServer:
    """Answers `/v1/chat/completions` and `/v1/completions` by a function from request to reply.

    Attributes
    ----------
    asked : every request, in the order of arrival
    answered : prompts whose answer was sent to its end with status 200; a client that has its answer finds it there
    most_at_once : requests under way at the same time, at most
    """

    def __init__(self, script: Callable[[Asked], Reply | str]) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self._answered: list[str] = []
        self.most_at_once = 0
        self._running = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        server = self

        class Handler(_Handler):
            owner = server

        class Sockets(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 128

            def handle_error(self, *args: Any) -> None:
                pass  # clients that are killed or give up are part of the script

        self._http = Sockets(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> "LLMServer":
        # The poll interval is how long stopping takes, not how often requests are looked for.
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopped.set()
        self._http.shutdown()
        self._http.server_close()

    def pause(self, seconds: float) -> None:
        if seconds:
            self._stopped.wait(seconds)

    def begin(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            reply = self.script(asked)
        except Exception as error:  # a mistake in the test: show it where the client looks
            return Reply(f"the script raised {error!r}", status=400)
        return Reply(reply) if isinstance(reply, str) else reply

    @property
    def answered(self) -> list[str]:
        with self._lock:
            return list(self._answered)

    @contextmanager
    def last_bytes(self, asked: Asked, reply: Reply) -> Iterator[None]:
        """Sends and notes at once, so that nobody who has the answer can look before it is noted."""
        with self._lock:
            yield
            if reply.status == 200:
                self._answered.append(asked.prompt)

    def end(self) -> None:
        with self._lock:
            self._running -= 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: LLMServer

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = body.get("messages", [])
        prompt = body["prompt"] if "prompt" in body else "\n".join(_text(message["content"]) for message in messages)
        asked = Asked(self.path, body, dict(self.headers), prompt)
        reply = self.owner.begin(asked)
        try:
            self.owner.pause(reply.delay)
            if body.get("stream") and reply.status == 200:
                self._stream(asked, reply)
            else:
                self._send(asked, reply)
        finally:
            self.owner.end()

    def _send(self, asked: Asked, reply: Reply) -> None:
        data = reply.body if reply.body is not None else json.dumps(_response(asked, reply)).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        pieces = [data[i : i + 20] for i in range(0, len(data), 20)] if reply.drip else [data]
        if reply.cut:
            self.wfile.write(data[: len(data) // 2])
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        for piece in pieces[:-1]:
            self.wfile.write(piece)
            self.wfile.flush()
            self.owner.pause(reply.drip)
        with self.owner.last_bytes(asked, reply):
            self.wfile.write(b"".join(pieces[-1:]))
            self.wfile.flush()

    def _stream(self, asked: Asked, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for word in reply.content.split(" "):
            delta = {"role": "assistant", "content": word + " "}
            choice = {"index": 0, "delta": delta, "text": word + " ", "finish_reason": None}
            event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
            self.owner.pause(reply.drip)
        with self.owner.last_bytes(asked, reply):
            self.wfile.write(b"data: [DONE]\n\n")
            self.wfile.flush()
        self.close_connection = True


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def _response(asked: Asked, reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        return {"error": {"message": reply.content, "type": "error", "code": None}}
    choice: dict[str, Any] = {"index": 0, "finish_reason": reply.finish_reason, "logprobs": None}
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.tool_arguments is not None:
        name = asked.body["tools"][0]["function"]["name"]
        call = {"id": "call", "type": "function", "function": {"name": name, "arguments": reply.tool_arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    chat = "chat" in asked.path
    return {
        "id": "1",
        "object": "chat.completion" if chat else "text_completion",
        "created": 0,
        "model": asked.body["model"],
        "choices": [{**choice, "message": message} if chat else {**choice, "text": reply.content}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
