"""Storage contexts on file systems of fsspec: whole after any failure, for every way that leads there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from llama_index.core import Document, StorageContext
from tests.cases import CASES, Case, ask

from llama_index.ragkit import load_storage_context, persist
from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError, HalfWrittenError, MissingSpaceError

HIPPO = next(case for case in CASES if case.name == "hipporag")
OLD, NEW = (Document(text=text, id_=text) for text in ("Ada met Babbage in London.", "Lyon lies on the Rhone."))
_CALLS = ("ls", "get_file", "put_file", "pipe_file", "cat_file", "cp_file", "rm", "makedirs")


class Failing(MemoryFileSystem):
    """A file system whose calls are counted, and all fail from the one of a number on."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.calls, self.fails_from = 0, 10**9

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in _CALLS:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls >= self.fails_from:
                raise OSError("no connection")
            return found(*args, **kwargs)

        return call


@pytest.fixture
def fs() -> Failing:
    return Failing()


def loaded(fs: Any, folder: str = "/a/i") -> Any:
    return HIPPO.load(load_storage_context(folder, fs=fs))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_index_is_read_as_it_was_saved(case: Case, fs: Failing) -> None:
    index = case.from_documents([OLD, NEW])
    index.storage_context.persist("/core", fs=fs)
    persist(index.storage_context, "/own", fs=fs)
    for folder in ("/core", "/own", "memory://own"):
        assert ask(case.load(load_storage_context(folder, fs=fs))) == ask(index)
    again = case.load(load_storage_context("/own", fs=fs))
    again.delete_ref_doc(OLD.id_, delete_from_docstore=True)
    persist(again.storage_context, "/own", fs=fs)
    assert set(case.load(load_storage_context("/own", fs=fs)).ref_doc_info) == {NEW.id_}
    assert all(b"Babbage" not in fs.cat_file(name) for name in fs.find("/own"))
    assert {name.rpartition("/")[2] for name in fs.find("/own")} == {
        name.rpartition("/")[2] for name in fs.find("/core")
    }


def test_core_reads_its_own_files_there(fs: Failing) -> None:
    index = HIPPO.from_documents([OLD])
    persist(index.storage_context, "/own", fs=fs)
    assert StorageContext.from_defaults(persist_dir="/own", fs=fs).docstore.docs.keys() == index.docstore.docs.keys()


def calls_of_a_second_save() -> Iterator[int]:
    fs = Failing()
    index = HIPPO.from_documents([OLD])
    persist(index.storage_context, "/a/i", fs=fs)
    index.insert(NEW)
    before = fs.calls
    persist(index.storage_context, "/a/i", fs=fs)
    yield from range(1, fs.calls - before + 1)


@pytest.mark.parametrize("call", calls_of_a_second_save())
def test_a_writer_that_dies_anywhere_leaves_the_old_state_or_the_new(call: int, fs: Failing) -> None:
    index = HIPPO.from_documents([OLD])
    persist(index.storage_context, "/a/i", fs=fs)
    other = loaded(fs)
    index.insert(NEW)
    fs.fails_from = fs.calls + call
    with pytest.raises(OSError, match="no connection"):
        persist(index.storage_context, "/a/i", fs=fs)
    fs.fails_from = 10**9
    found = loaded(fs)
    assert set(found.ref_doc_info) in ({OLD.id_}, {OLD.id_, NEW.id_})
    assert ask(found)
    if len(found.ref_doc_info) == 2:
        with pytest.raises(ConcurrentWriteError, match=r"/a/i \(Failing\)"):
            persist(other.storage_context, "/a/i", fs=fs)
    persist(index.storage_context, "/a/i", fs=fs)
    assert set(loaded(fs).ref_doc_info) == {OLD.id_, NEW.id_}
    assert not [name for name in fs.find("/a/i", withdirs=True) if ".ragkit-" in name]


def test_a_file_system_of_this_machine_is_a_folder_of_it(tmp_path: Path) -> None:
    index = HIPPO.from_documents([OLD])
    persist(index.storage_context, f"file://{tmp_path}/i", fs=LocalFileSystem())
    assert ask(HIPPO.load(load_storage_context(tmp_path / "i"))) == ask(index)
    inside = DirFileSystem(str(tmp_path))
    persist(index.storage_context, "j", fs=inside)
    assert ask(loaded(inside, "j")) == ask(index)


def test_what_is_elsewhere_needs_its_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (lambda: persist(StorageContext.from_defaults(), "s3://b/i"), lambda: load_storage_context("s3://b/i")):
        with pytest.raises(ConfigurationError, match=r"fs=fsspec.filesystem\('s3'\)"):
            use()
    assert not list(tmp_path.iterdir())


def test_missing_foreign_and_damaged_folders_are_told(fs: Failing) -> None:
    with pytest.raises(MissingSpaceError, match="no folder /a/i"):
        loaded(fs)
    index = HIPPO.from_documents([OLD])
    persist(index.storage_context, "/a/i", fs=fs)
    fs.pipe_file("/a/i/notes.txt", b"mine")
    with pytest.raises(ConfigurationError, match=r"notes\.txt"):
        persist(index.storage_context, "/a/i", fs=fs)
    fs.pipe_file("/a/i/docstore.json", b"{")
    with pytest.raises(HalfWrittenError):
        loaded(fs)
