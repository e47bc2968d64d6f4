"""An index that opens from the arrays beside its records is the one that its records give."""

import gc
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from tests.cases import CASES, Case, ask, chunks

from llama_index.ragkit import Builder, load_storage_context, persist
from llama_index.ragkit.steps import Steps, run_steps
from llama_index.ragkit.storage.chunk_terms import WordRecords
from llama_index.ragkit.storage.file_kvstore import FileKVStore

CLOVES = Document(text="Zanzibar exports cloves.", id_="z")
MRAG = next(case for case in CASES if case.name == "mrag")


def refuse(*args: Any) -> Steps[Any]:
    raise AssertionError("records were read")


def made(folder: Path) -> dict[str, Any]:
    """What is written beside the records, by owner."""
    opened = FileKVStore.opened(str(folder / "docstore.json"))
    assert opened is not None
    return opened._made()


def written(case: Case, folder: Path) -> Any:
    index = case.build([*chunks("d", 9), *chunks("e", 3)])
    persist(index.storage_context, folder)
    return index


def test_an_index_opens_from_arrays_as_from_its_records(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ask(written(case, tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(WordRecords, "load", refuse)
        if case.cls.builder_cls.arrays_of is not Builder.arrays_of:
            patch.setattr(case.cls.builder_cls, "load", refuse)
        mapped = case.load(load_storage_context(tmp_path))
    read = case.load(load_storage_context(tmp_path, mapped=False))
    assert ask(mapped) == ask(read) == expected
    for index in (mapped, read):
        index.insert(CLOVES)
        index.delete_ref_doc("d", delete_from_docstore=True)
    assert ask(mapped) == ask(read)
    persist(mapped.storage_context, tmp_path)
    again = case.load(load_storage_context(tmp_path))
    assert ask(again) == ask(read)
    again.delete_ref_doc("z", delete_from_docstore=True)
    persist(again.storage_context, tmp_path)
    files = [path.read_bytes().lower() for path in tmp_path.iterdir()]
    assert not any(word in data for data in files for word in (b"zanzibar", b"cloves"))


def test_arrays_of_an_object_that_is_behind_are_not_written(tmp_path: Path) -> None:
    context = written(MRAG, tmp_path).storage_context
    ahead, behind = MRAG.load(context), MRAG.load(context)
    ahead.insert(CLOVES)
    persist(context, tmp_path)
    assert not made(tmp_path)
    assert behind is not None
    assert ask(MRAG.load(load_storage_context(tmp_path))) == ask(ahead)


def test_arrays_of_a_write_that_failed_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = written(MRAG, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(MRAG.cls.builder_cls, "apply", refuse)
        with pytest.raises(AssertionError):
            index.insert(CLOVES)
    persist(index.storage_context, tmp_path)
    assert not made(tmp_path)
    index.insert(CLOVES)
    persist(index.storage_context, tmp_path)
    assert len(made(tmp_path)) == 1
    assert ask(MRAG.load(load_storage_context(tmp_path))) == ask(index)


def test_arrays_of_an_index_that_is_not_open_stay_while_its_records_do(tmp_path: Path) -> None:
    index = written(MRAG, tmp_path)
    before = made(tmp_path)
    context = load_storage_context(tmp_path)
    persist(context, tmp_path / "copy")
    assert made(tmp_path / "copy").keys() == before.keys()
    loaded = MRAG.load(context)
    loaded.insert(CLOVES)
    del loaded
    gc.collect()
    persist(context, tmp_path / "changed")
    assert not made(tmp_path / "changed")
    index.insert(CLOVES)
    assert ask(MRAG.load(load_storage_context(tmp_path / "changed"))) == ask(index)


def test_arrays_beside_a_space_of_another_commit_do_not_count(tmp_path: Path) -> None:
    written(MRAG, tmp_path)
    loaded = load_storage_context(tmp_path)
    (name,) = (name for name in loaded.vector_stores if name.startswith("mrag"))
    for struct in loaded.index_store.index_structs():
        struct.building = True  # so that spaces of another generation are repaired, not refused
        loaded.index_store.add_index_struct(struct)
    store: Any = loaded.vector_stores[name]
    store.tag = {**store.tag, "token": "another"}
    store.delete_nodes([store.snapshot().ids[0]])
    opened = MRAG.load(loaded)
    assert len(opened.writer.state.chunks) == 11
    assert opened.writer.state.inverse.shape[1] == 11
    assert len(run_steps(opened.writer.recovered()).lexical) == 11
