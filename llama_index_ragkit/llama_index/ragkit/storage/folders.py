"""Replacing the files of a folder as a whole, on the file systems and mounts that servers have.

If possible, the folder is exchanged with one next to it, which is atomic. A mount point (a Docker volume), a folder
whose parent cannot be written, and file systems without the exchange get the new files one by one. Before the first
file is moved, all of them are in a subfolder whose name says that it is complete. Until the last file is moved, that
subfolder is the state of the folder, and :func:`complete_state` finds it.

A temporary folder is locked as long as its writer lives, so any container can recognise those of killed writers.
"""

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import fsspec  # type: ignore[import-untyped]

from llama_index.ragkit.errors import ConfigurationError

__all__ = [
    "RemoteFolder",
    "complete_state",
    "exclusive",
    "is_temporary",
    "real_folder",
    "replace_contents",
    "signature",
    "temporary_folder",
]

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_EXCHANGE = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS: the same number
_AT_FDCWD = -100
_INSIDE = re.compile(r"\.ragkit-[0-9a-f]{32}\.(?:new|complete|file)")
_ABANDONED = 24 * 3600.0  # seconds after which a temporary folder is deleted where folders cannot be locked
_NOT_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS)

_PREFIX = ".ragkit-"
_COMPLETE = ".complete"
_VERSIONS = ("ETag", "etag", "md5", "generation", "mtime", "LastModified", "last_modified", "updated", "created")


def real_folder(path: str | Path) -> Path:
    """The absolute path of a folder: `~` expanded, symbolic links followed, whether or not it exists."""
    try:
        folder = Path(path).expanduser().resolve()
        folder.exists()  # asks the system, to which a name may be too long
        return folder
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{path!r} is not the path of a folder: {error}.") from error


def is_temporary(path: Path) -> bool:
    """Whether this is a temporary file or folder of this module inside a persisted folder."""
    return _INSIDE.fullmatch(path.name) is not None


def complete_state(folder: Path) -> Path:
    """Where the complete state of a folder is: in the folder, or in what an interrupted replacement left inside."""
    return max(_complete(folder), key=lambda path: (path.stat().st_mtime_ns, path.name), default=folder)


def signature(folder: Path) -> object:
    """A value that changes when the folder or a file in it is replaced; None without a folder."""
    if not folder.exists():
        return None
    found: list[object] = []
    for path in _entries(folder):
        if is_temporary(path) and path.suffix != ".complete":
            continue
        try:
            stat = path.stat()
            found.append((path.name, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        except FileNotFoundError:  # replaced just now; no other signature is equal to this
            found.append(object())
    return folder.stat().st_ino if folder.exists() else None, found


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """An empty folder for the new files: beside the folder, or inside where it could not be exchanged from beside."""
    inside = os.path.ismount(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, lock = None, None
    if not inside:
        try:
            new, lock = _locked(folder.parent, _prefix(folder))
        except OSError as error:
            if error.errno not in _NOT_BESIDE or not folder.exists():
                raise
    if new is None:
        new, lock = _locked(folder, ".ragkit-")
    try:
        yield new
    finally:
        try:
            shutil.rmtree(new, ignore_errors=True)
        finally:
            if lock is not None:
                os.close(lock)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """One process at a time, where folders can be locked: what was checked still holds when the folder is replaced."""
    lock = _lock(folder if os.path.ismount(folder) else folder.parent, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def replace_contents(new: Path, folder: Path) -> None:
    """Put the files of a :func:`temporary_folder` in place of those of the folder, and delete what killed writers left.

    Modes and owners of the folder and its files are kept. When this returns, everything is on disk.
    """
    _complete_files(new, folder)
    if new.parent == folder:
        _move_in(new, folder)
    elif not folder.exists():
        new.rename(folder)
    elif not _exchange(new, folder):
        inside = folder / f".ragkit-{uuid4().hex}.new"
        try:
            new.rename(inside)
        except OSError:  # another file system, mounted at the folder
            shutil.copytree(new, inside)
            _complete_files(inside, folder)
        try:
            _move_in(inside, folder)
        finally:
            shutil.rmtree(inside, ignore_errors=True)
    _flush(folder.parent)
    _sweep(folder, keep=new)


def _move_in(new: Path, folder: Path) -> None:
    """Move complete files from a subfolder to the folder, one by one, and delete the others there."""
    complete = new.with_suffix(".complete")
    new.rename(complete)
    for path in _complete(folder):
        if path != complete:
            _discard(path)
    _flush(folder)
    names = sorted(path.name for path in complete.iterdir())
    for name in names:
        beside = folder / f".ragkit-{uuid4().hex}.file"
        try:
            os.link(complete / name, beside)
        except OSError:  # no hard links on this file system
            shutil.copy2(complete / name, beside)
            _keep_owner(beside, complete / name)
            _flush(beside)
        os.replace(beside, folder / name)
    for path in _entries(folder):
        if path.is_file() and path.name not in names:
            path.unlink()
    _flush(folder)
    _discard(complete)


def _complete(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if is_temporary(path) and path.suffix == ".complete"]


def _discard(complete: Path) -> None:
    """Delete a complete subfolder, which must not be taken for one while it is being deleted."""
    new = complete.with_suffix(".new")
    complete.rename(new)
    shutil.rmtree(new, ignore_errors=True)


def _prefix(folder: Path) -> str:
    """What the names of temporary folders beside a folder start with: short, and shared with no other folder."""
    digest = hashlib.blake2b(os.fsencode(folder.name), digest_size=4).hexdigest()
    return f".{folder.name[:40]}.{digest}-"


def _locked(parent: Path, prefix: str) -> tuple[Path, int | None]:
    """A new folder, locked, and the file descriptor of the lock; None where folders cannot be locked."""
    while True:
        path = parent / f"{prefix}{uuid4().hex}.new"
        path.mkdir()
        lock = _lock(path, wait=True)
        # A writer that deletes abandoned folders may have taken the folder for one before it was locked.
        if lock is None or path.exists():
            return path, lock
        os.close(lock)


def _lock(path: Path, *, wait: bool) -> int | None:
    """Lock a folder; None where folders cannot be locked. Without `wait`, BlockingIOError if it is locked already."""
    if fcntl is None:
        return None
    descriptor = None
    try:
        descriptor = os.open(path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    except OSError as error:
        if descriptor is not None:
            os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None


def _sweep(folder: Path, keep: Path) -> None:
    """Delete temporary folders of writers that were killed."""
    prefix = _prefix(folder)
    beside = [p for p in _entries(folder.parent) if p.name.startswith(prefix) and p.suffix == ".new"]
    for path in [*beside, *filter(is_temporary, _entries(folder))]:
        if path.is_file():
            path.unlink(missing_ok=True)
        elif path != keep:
            with suppress(OSError):
                lock = _lock(path, wait=False)
                if lock is not None or time.time() - path.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(path, ignore_errors=True)
                if lock is not None:
                    os.close(lock)


def _entries(folder: Path) -> list[Path]:
    """The entries of a folder, sorted; none where it does not exist, or cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _complete_files(new: Path, folder: Path) -> None:
    """Have new files on disk, with the modes and owners of the old ones."""
    _keep_modes(new, folder)
    for path in (*new.iterdir(), new):
        _flush(path)


def _keep_modes(new: Path, folder: Path) -> None:
    """Give new files the mode and owner of the old ones of their names, or else of any; the new folder likewise."""
    if not folder.exists():
        return
    old = {path.name: path for path in _entries(folder) if path.is_file() and not is_temporary(path)}
    like = next(iter(old.values()), None)
    for path in new.iterdir():
        model = old.get(path.name, like)
        if model is not None:
            _keep_owner(path, model)
            shutil.copymode(model, path)
    _keep_owner(new, folder)
    with suppress(OSError):
        shutil.copystat(folder, new)  # access control lists as well
        os.utime(new)


def _keep_owner(path: Path, model: Path) -> None:
    if hasattr(os, "chown"):
        stat = model.stat()
        with suppress(OSError):  # only the superuser may give files away
            os.chown(path, stat.st_uid, stat.st_gid)


def _flush(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # Windows neither needs nor allows it
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # network file systems cannot do it for folders
            raise
    finally:
        os.close(descriptor)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; False where the system does not support it."""
    if os.name == "nt":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(one), os.fsencode(other)
    if hasattr(libc, "renameat2"):
        return bool(libc.renameat2(_AT_FDCWD, a, _AT_FDCWD, b, _EXCHANGE) == 0)
    if hasattr(libc, "renamex_np"):
        return bool(libc.renamex_np(a, b, _EXCHANGE) == 0)
    return False


class RemoteFolder:
    """A folder on a file system of fsspec (S3, Google Cloud Storage, Azure, memory), read and replaced as a whole.

    Such file systems cannot exchange folders. So new files are first written to a subfolder, and then a file that names
    it. Until all files are in their places and that file is deleted, the subfolder is the state of the folder. A writer
    that dies leaves the old state or the new. Nothing locks such a folder: of two that write at once, one may be lost.
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
            if (name := entry["name"].rstrip("/").rpartition("/")[2])
            and entry["name"].strip("/") != self._path.strip("/")  # some file systems keep an empty object for a folder
        }

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
