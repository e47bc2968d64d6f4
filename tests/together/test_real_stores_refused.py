"""What adapters do not keep of the base contract: the error that a user gets, and that it harms nothing else."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from llama_index.core import Document
from tests.cases import CASES, TEXTS, ask, chunks
from tests.together.stores import BACKENDS, Opened
from tests.together.test_hurt_documents import hostile_node

from llama_index.ragkit.errors import StorageError, UnsupportedStoreError
from llama_index.ragkit.testing import HashEmbedding

CASE = CASES[0]  # what is refused is refused by the ground floor, the same for every index
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    backend = next(backend for backend in BACKENDS if backend.name == request.param)
    backend.skip_unless_there()
    with ExitStack() as stack:
        yield backend.open(uuid4().hex[:8], tmp_path, stack)


@pytest.mark.parametrize(
    ("here", "bad", "reason"),
    [
        ("postgres", Document(text="nul \0 here", id_="bad"), "NUL"),
        ("lancedb", Document(text="a list", id_="bad", metadata={"n": 1, "tags": ["a"]}), "must be one of"),
        ("lancedb", Document(text="a new key", id_="bad", metadata={"n": 1, "new": "a"}), "'new' does not exist"),
        ("qdrant", hostile_node("no UUID"), "not a valid UUID"),
    ],
    indirect=["here"],
    ids=["postgres-nul", "lancedb-lists", "lancedb-new-keys", "qdrant-ids"],
)
def test_what_an_adapter_refuses_is_told_and_can_be_taken_back(here: Opened, bad, reason: str):
    documents = [Document(text=text, id_=f"D{i}", metadata={"n": i}) for i, text in enumerate(TEXTS)]
    index = CASE.from_documents(documents, storage_context=here.context, **here.options)
    before = ask(index)
    insert = index.insert if isinstance(bad, Document) else lambda node: index.insert_nodes([node])
    name = type(here.options["vector_store"]).__name__
    with pytest.raises(StorageError, match=f"{name} could not store 1 chunks.*{reason}"):
        insert(bad)
    assert ask(index) == before
    index.delete_ref_doc("bad", delete_from_docstore=True)
    assert bad.get_content() not in {node.get_content() for node in index.docstore.docs.values()}
    assert set(index.ref_doc_info) == {document.id_ for document in documents}
    index.insert(Document(text="Zanzibar exports cloves.", id_="z", metadata={"n": 9}))
    assert ask(index, "Zanzibar exports cloves.", top_k=1)[0][0] == "Zanzibar exports cloves."


@pytest.mark.parametrize("here", ["postgres"], indirect=True)
def test_vectors_of_another_length_than_the_table_s_are_refused(here: Opened):
    with pytest.raises(StorageError, match=r"PGVectorStore could not store.*expected 32 dimensions, not 16"):
        CASE.build(chunks("d", 2), storage_context=here.context, embed_model=HashEmbedding(dim=16), **here.options)


def test_lancedb_is_refused_as_it_is(tmp_path: Path):
    adapter = pytest.importorskip("llama_index.vector_stores.lancedb")
    store = adapter.LanceDBVectorStore(uri=str(tmp_path / "lance"), table_name="chunks")
    with pytest.raises(UnsupportedStoreError, match=r"LanceDBVectorStore cannot delete.*sql filter"):
        CASE.build(chunks("d", 3), vector_store=store)


def test_faiss_is_refused_by_name():
    faiss = pytest.importorskip("faiss")
    adapter = pytest.importorskip("llama_index.vector_stores.faiss")
    store = adapter.FaissVectorStore(faiss_index=faiss.IndexFlatIP(32))
    with pytest.raises(UnsupportedStoreError, match="FaissVectorStore cannot delete"):
        CASE.build(chunks("d", 3), vector_store=store)
