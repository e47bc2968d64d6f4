"""`persist` and `load_storage_context` on the folders, mounts and names that servers have."""

import errno
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from llama_index.core import StorageContext
from llama_index.core.schema import TextNode
from tests.processes import Worker

from llama_index.ragkit import load_storage_context, persist
from llama_index.ragkit.errors import ConfigurationError, HalfWrittenError, MissingSpaceError
from llama_index.ragkit.storage import folders

posix = pytest.mark.skipif(os.name == "nt", reason="modes, links and locks of POSIX")


def context(text: str) -> StorageContext:
    found = StorageContext.from_defaults()
    found.docstore.add_documents([TextNode(id_="n", text=text)])
    return found


def text_in(folder: Path) -> str:
    """What both readers find."""
    ours = load_storage_context(folder).docstore.get_node("n").get_content()
    core = StorageContext.from_defaults(persist_dir=str(folder)).docstore.get_node("n").get_content()
    assert ours == core
    return ours


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


FILES = ["default__vector_store.json", "docstore.json", "graph_store.json", "image__vector_store.json"]
FILES.append("index_store.json")


def refusing(*, error: int, what: Callable[[Path, Path], bool], method: Callable[..., Path]) -> Callable[..., Path]:
    def rename(path: Path, target: Path) -> Path:
        if what(Path(path), Path(target)):
            raise OSError(error, os.strerror(error), str(path))
        return method(path, target)

    return rename


@pytest.fixture(params=["exchange", "no exchange", "mount point", "bind mount", "read-only parent"])
def volume(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, with the errors that renames meet in each place; `test_a_real_mount` is the same on real mounts."""
    folder = tmp_path / "volume"
    folder.mkdir()
    kind = request.param
    if kind != "exchange":
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    if kind == "mount point":
        monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)
    if kind == "bind mount":  # not seen as a mount point, but another file system to renames

        def crosses(path: Path, target: Path) -> bool:
            return folder in (path, target) or (folder in path.parents) != (folder in target.parents)

        monkeypatch.setattr(Path, "rename", refusing(error=errno.EXDEV, what=crosses, method=Path.rename))
    if kind == "read-only parent":
        mkdir = Path.mkdir

        def refused(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
            if path.parent == tmp_path and not exist_ok:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            mkdir(path, mode, parents, exist_ok)

        monkeypatch.setattr(Path, "mkdir", refused)
    return folder


def test_a_folder_anywhere_holds_the_last_state_and_nothing_else(volume: Path) -> None:
    for text in ("one", "two", "three"):
        persist(context(text), volume)
        assert text_in(volume) == text
        assert names(volume) == FILES
        assert names(volume.parent) == ["volume"]
    smaller = context("four")
    del smaller.vector_stores["image"]
    persist(smaller, volume)
    assert names(volume) == [name for name in FILES if not name.startswith("image")]


class StoppedError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("where", ["os.replace", "os.link", "os.fsync", "shutil.rmtree", "Path.rename", "Path.unlink"])
def test_a_writer_that_dies_anywhere_leaves_the_old_state_or_the_new(
    volume: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    persist(context("old"), volume)
    owner, name = where.split(".")
    target = {"os": os, "shutil": shutil, "Path": Path}[owner]
    original = getattr(target, name)
    for call in range(40):
        calls = iter(range(1000))

        def dying(*args, calls=calls, last=call, **kwargs):  # type: ignore[no-untyped-def]
            if next(calls) >= last:  # nothing works any more, cleaning up included
                raise StoppedError
            return original(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(target, name, dying)
            if name != "rmtree":
                patch.setattr(shutil, "rmtree", lambda *args, **kwargs: None)
            try:
                persist(context(f"new {call}"), volume)
                died = False
            except StoppedError:
                died = True
        state = load_storage_context(volume).docstore.get_node("n").get_content()
        assert state in ("old", f"new {call}")
        assert died or state == f"new {call}"
        persist(context("old"), volume)
        assert text_in(volume) == "old"
        assert names(volume) == FILES
        assert names(volume.parent) == ["volume"]
        if not died:
            break
    assert not died


@posix
def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "dangling").symlink_to(tmp_path / "later", target_is_directory=True)
    for text in ("one", "two"):
        persist(context(text), tmp_path / "link")
        persist(context(text), tmp_path / "dangling")
        assert text_in(tmp_path / "link") == text_in(tmp_path / "real") == text
        assert text_in(tmp_path / "dangling") == text_in(tmp_path / "later") == text
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "dangling").is_symlink()
    assert names(tmp_path) == ["dangling", "later", "link", "real"]


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    persist(context("one"), "~/index")
    assert text_in(tmp_path / "index") == "one"
    assert load_storage_context("~/index").docstore.get_node("n")
    assert names(tmp_path) == ["index"]


@posix
def test_modes_and_owners_are_kept(volume: Path) -> None:
    persist(context("one"), volume)
    volume.chmod(0o2750)
    for path in volume.iterdir():
        path.chmod(0o640)
    (volume / "docstore.json").chmod(0o600)
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root:
        for path in (volume, *volume.iterdir()):
            os.chown(path, 1234, 2345)
        volume.chmod(0o2750)
    bigger = context("two")
    bigger.vector_stores["more"] = bigger.vector_stores["default"]
    persist(bigger, volume)
    assert text_in(volume) == "two"
    assert stat.S_IMODE(volume.stat().st_mode) == 0o2750
    for path in volume.iterdir():
        expected = 0o600 if path.name == "docstore.json" else 0o640
        if path.name == "more__vector_store.json":
            expected = 0o640  # as its neighbours
        assert stat.S_IMODE(path.stat().st_mode) == expected, path.name
        if root:
            assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)
    if root:
        assert (volume.stat().st_uid, volume.stat().st_gid) == (1234, 2345)


@pytest.mark.parametrize(
    "name", ["v1.0", ".hidden", "a[b]*?", "two words", "{id}", "%s", "漢" * 80, "x" * 250, "a.b.new"]
)
def test_any_name_of_a_folder_will_do(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    for text in ("one", "two"):
        persist(context(text), folder)
        assert text_in(folder) == text
    assert names(tmp_path) == [name]


WRITER = """
import sys, time
from pathlib import Path
from llama_index.ragkit.storage.folders import temporary_folder
with temporary_folder(Path(sys.argv[1])) as new:
    (new / "docstore.json").write_text("{}")
    print(new.name, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def start() -> Iterator[Callable[[Path], tuple[Worker, str]]]:
    """Start a process that writes a temporary folder and never ends; gives it, and the name of the folder."""
    running = []

    def started(folder: Path) -> tuple[Worker, str]:
        process = Worker(WRITER, str(folder))
        running.append(process)
        return process, process.stdout.readline().strip()

    yield started
    for process in running:
        process.kill()
        process.wait()


@posix
def test_what_killed_writers_left_is_deleted_and_what_living_ones_write_is_not(
    tmp_path: Path, start: Callable[[Path], tuple[Worker, str]]
) -> None:
    folder = tmp_path / "store"
    persist(context("one"), folder)
    living, kept = start(folder)
    killed, left = start(folder)
    _, foreign = start(tmp_path / "store.b")
    killed.kill()
    killed.wait()
    assert {kept, left, foreign} <= set(names(tmp_path))
    persist(context("two"), folder)
    assert set(names(tmp_path)) == {"store", kept, foreign}
    living.kill()
    living.wait()
    persist(context("three"), folder)
    assert set(names(tmp_path)) == {"store", foreign}


@posix
def test_where_folders_cannot_be_locked_only_old_leftovers_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    persist(context("one"), folder)
    for name in ("young", "old"):
        (tmp_path / f"{folders._prefix(folder)}{name}.new").mkdir()
    os.utime(tmp_path / f"{folders._prefix(folder)}old.new", (1e9, 1e9))
    monkeypatch.setattr(folders, "fcntl", None)
    persist(context("two"), folder)
    assert names(tmp_path) == sorted(["store", f"{folders._prefix(folder)}young.new"])


@posix
def test_files_and_folders_are_synced(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = set()
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    persist(context("one"), volume)
    monkeypatch.setattr(os, "fsync", seen)
    persist(context("two"), volume)
    assert {path.stat().st_ino for path in (volume, volume.parent, *volume.iterdir())} <= synced


def test_foreign_files_and_a_file_in_place_of_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="is a file"):
        persist(context("one"), tmp_path / "file")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(ConfigurationError, match=r"thesis\.txt"):
        persist(context("one"), tmp_path / "mine")
    assert names(tmp_path) == ["file", "mine"]
    assert names(tmp_path / "mine") == ["thesis.txt"]


def test_a_write_that_fails_changes_nothing(volume: Path) -> None:
    persist(context("one"), volume)
    bad = context("two")
    bad.docstore.add_documents([TextNode(id_="m", text="", metadata={"set": {1}})])
    with pytest.raises(TypeError):
        persist(bad, volume)
    assert text_in(volume) == "one"
    assert names(volume) == FILES


def test_loading_beside_a_writer_never_fails(volume: Path) -> None:
    """Core's reader fails, or mixes two states, in several of a hundred loads."""
    persist(marked("0"), volume)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            persist(marked(str(number)), volume)
            stop.wait(0.03)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(40):
            loaded = load_storage_context(volume)
            texts = {loaded.docstore.get_node("n").get_content(), *loaded.graph_store.get("n")[0]} - {"is"}
            assert len(texts) == 1, texts
    finally:
        stop.set()
        writer.join()


def marked(text: str) -> StorageContext:
    """The same text in the file that is read first, and in the one that is read last."""
    found = context(text)
    found.graph_store.upsert_triplet("n", "is", text)
    return found


def test_a_missing_folder_is_missed_by_name(tmp_path: Path) -> None:
    with pytest.raises(MissingSpaceError, match="nowhere"):
        load_storage_context(tmp_path / "nowhere")


def test_a_folder_that_is_replaced_without_end_is_an_error(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    persist(context("one"), volume)
    monkeypatch.setattr("llama_index.ragkit.storage.persist.signature", lambda folder: object())
    monkeypatch.setattr("llama_index.ragkit.storage.persist._LONGEST_WAIT", 0.0)
    with pytest.raises(HalfWrittenError, match="replaced during each of 20"):
        load_storage_context(volume)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser mounts")
@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_real_mount(kind: str, tmp_path: Path) -> None:
    folder, source = tmp_path / "volume", tmp_path / "source"
    folder.mkdir()
    source.mkdir()
    what = ["--bind", str(source)] if kind == "bind" else ["-t", "tmpfs", "none"]
    if shutil.which("mount") is None or subprocess.run(["mount", *what, str(folder)], capture_output=True).returncode:
        pytest.skip("mounts are not permitted here")
    try:
        for text in ("one", "two"):
            persist(context(text), folder)
            assert text_in(folder) == text
            assert names(folder) == FILES
        (folder / "lost+found").mkdir()
        persist(context("three"), folder)
        assert text_in(folder) == "three"
        assert names(tmp_path) == ["source", "volume"]
    finally:
        subprocess.run(["umount", str(folder)], check=True)
