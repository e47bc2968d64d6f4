"""A folder on a file system of fsspec (S3, Google Cloud Storage, Azure, memory), read and replaced as a whole.

Such file systems cannot exchange folders. So new files are first written to a subfolder, and then a file that names it.
Until all files are in their places and that file is deleted, the subfolder is the state of the folder. A writer that
dies leaves the old state or the new. Nothing locks such a folder: of two that write at once, one may be lost.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from uuid import uuid4

import fsspec  # type: ignore[import-untyped]

__all__ = ["RemoteFolder"]

_PREFIX = ".ragkit-"
_COMPLETE = ".complete"
_VERSIONS = ("ETag", "etag", "md5", "generation", "mtime", "LastModified", "last_modified", "updated", "created")


class RemoteFolder:
    """A folder on another file system.

    Parameters
    ----------
    fs : the file system
    path : the folder, with or without the protocol
    """

    def __init__(self, fs: fsspec.AbstractFileSystem, path: str | Path) -> None:
        self._fs = fs
        self._path = str(path).rpartition("://")[2].rstrip("/")

    def __str__(self) -> str:
        return f"{self._path} ({type(self._fs).__name__})"

    def entries(self) -> dict[str, str]:
        """What the folder holds, by name, each with a text that changes when it is replaced; none if it is missing."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(self._path, detail=True)
        except FileNotFoundError:
            return {}
        return {
            name: repr([entry["type"], entry.get("size"), *(entry.get(key) for key in _VERSIONS)])
            for entry in found
            if (name := entry["name"].rstrip("/").rpartition("/")[2]) and not self._is_itself(entry["name"])
        }

    def _is_itself(self, path: str) -> bool:
        """Whether this is the folder: some file systems keep an empty object for it."""
        return path.strip("/") == self._path.strip("/")

    def foreign(self, is_own: Callable[[str], bool]) -> list[str]:
        """Names in the folder that are neither its own nor temporary."""
        return sorted(name for name in self.entries() if not name.startswith(_PREFIX) and not is_own(name))

    def read(self, into: Path) -> None:
        """Copy the files of the complete state to a local folder."""
        source = self._complete(self.entries()) or self._path
        for path in self._fs.ls(source, detail=False):
            name = path.rstrip("/").rpartition("/")[2]
            if not name.startswith(_PREFIX):
                self._fs.get_file(path, str(into / name))

    def replace(self, new: Path) -> None:
        """Put the files of a local folder in place of those of the folder, and delete what killed writers left."""
        before = self.entries()
        token = f"{_PREFIX}{uuid4().hex}"
        names = sorted(path.name for path in new.iterdir())
        self._fs.makedirs(f"{self._path}/{token}", exist_ok=True)
        for name in names:
            self._fs.put_file(str(new / name), f"{self._path}/{token}/{name}")
        marker = json.dumps({"folder": token, "time": time.time()})
        self._fs.pipe_file(f"{self._path}/{token}{_COMPLETE}", marker.encode())
        for name in names:
            self._fs.cp_file(f"{self._path}/{token}/{name}", f"{self._path}/{name}")
        self._delete(name for name in before if not name.startswith(_PREFIX) and name not in names)
        temporary = [*(name for name in before if name.startswith(_PREFIX)), f"{token}{_COMPLETE}", token]
        self._delete(sorted(temporary, key=lambda name: not name.endswith(_COMPLETE)))  # markers first

    def _complete(self, entries: Mapping[str, str]) -> str:
        """The subfolder with the complete state of a replacement that was interrupted, if there is one."""
        latest = (0.0, "")
        for name in entries:
            if name.startswith(_PREFIX) and name.endswith(_COMPLETE):
                marker = json.loads(self._fs.cat_file(f"{self._path}/{name}"))
                latest = max(latest, (marker["time"], f"{self._path}/{marker['folder']}"))
        return latest[1]

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._fs.rm(f"{self._path}/{name}", recursive=True)
