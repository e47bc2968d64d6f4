"""The whole life of every index on the stores that people run."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode
from tests.cases import QUESTION, TEXTS, Case, ask, chunks, told
from tests.together.plugins import chunk_retriever
from tests.together.stores import BACKENDS, Backend, Opened
from tests.together.test_hurt_documents import HOSTILE, hostile_node

from llama_index.ragkit.testing import HashEmbedding

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.pairs]
SPLIT = [SentenceSplitter(chunk_size=64, chunk_overlap=0)]


class Place:
    """A backend for one test, under one tag; what it opened is closed at the end."""

    def __init__(self, backend: Backend, folder: Path, stack: ExitStack) -> None:
        self.backend = backend
        self.tag = uuid4().hex[:8]
        self.folder = folder
        self._stack = stack

    def open(self) -> Opened:
        self._stack.close()
        return self.backend.open(self.tag, self.folder, self._stack)


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    request.param.skip_unless_there()
    with ExitStack() as stack:
        yield Place(request.param, tmp_path, stack)


def documents(count: int) -> list[Document]:
    return [Document(text=" ".join([*TEXTS[i:], *TEXTS[:i], f"Note {i}."]), id_=f"D{i}") for i in range(count)]


def everything(index) -> list[tuple[str, float]]:
    """All answers: stores order equal rows as they like, so that the last of a few is a matter of taste."""
    return ask(index, top_k=50)


def chunks_of(index) -> set[str]:
    return {node.get_content() for node in index.docstore.docs.values() if isinstance(node, BaseNode)}


def test_life_from_build_to_forgetting_is_that_of_an_index_in_memory(case: Case, place: Place):
    here = place.open()
    twin = case.from_documents(documents(3), transformations=SPLIT)
    index = case.from_documents(documents(3), transformations=SPLIT, storage_context=here.context, **here.options)
    assert everything(index) == everything(twin)
    canary = Document(text=f"Zanzibar exports cloves to {place.tag}x. {TEXTS[2]}", id_="Z")
    for each in (index, twin):
        each.insert(canary)
        each.update_ref_doc(Document(text="Lyon lies on the Rhone and the Saone.", id_="D0"))
        assert each.refresh_ref_docs([*documents(3)[1:], canary]) == [False] * 3
    assert everything(index) == everything(twin)
    assert ask(index, top_k=1) == ask(twin, top_k=1)
    assert f"{place.tag}x" in here.dump()
    if "vector_store" in here.options:
        core = VectorStoreIndex.from_vector_store(here.options["vector_store"], embed_model=HashEmbedding())
        assert {text for text, _ in everything(core)} == chunks_of(twin)

    if not place.backend.remote:
        index.storage_context.persist(str(place.folder / "stored"))
    there = place.open()
    again = case.load(there.context, transformations=SPLIT, **there.options)
    assert everything(again) == everything(twin)
    for each in (again, twin):
        each.delete_ref_doc("Z", delete_from_docstore=True)
    assert everything(again) == everything(twin)
    assert f"{place.tag}x" not in there.dump()


def test_asynchronous_writes_and_reads_do_the_same(case: Case, place: Place):
    here = place.open()
    twin = case.from_documents(documents(2), transformations=SPLIT)
    new = Document(text=f"Zanzibar exports cloves to {place.tag}x.", id_="Z")

    async def live() -> list[tuple[str, float]]:
        index = await case.cls.afrom_documents(
            documents(2), transformations=SPLIT, storage_context=here.context, **case.options(**here.options)
        )
        await index.ainsert(new)
        assert f"{place.tag}x" in here.dump()
        await index.adelete_ref_doc("Z", delete_from_docstore=True)
        assert await index.arefresh_ref_docs(documents(2)) == [False, False]
        if hasattr(index, "arebuild"):  # summaries follow the order of growth until then
            await index.arebuild()
        found = await chunk_retriever(index, similarity_top_k=50).aretrieve(QUESTION)
        return told(found)

    assert asyncio.run(live()) == everything(twin)
    assert f"{place.tag}x" not in here.dump()


def test_control_characters_pass_through_document_stores_on_servers(case: Case, place: Place):
    if not place.backend.remote:
        pytest.skip("the document store is core's own")
    here = place.open()
    nodes = [*chunks("d", 4), hostile_node(f"{place.tag}x {HOSTILE['control']}", metadata={"key": "\x00\x1b"})]
    index = case.build(nodes, storage_context=here.context)
    assert chunks_of(index) == {node.get_content() for node in nodes}
    there = place.open()
    again = case.load(there.context)
    assert everything(again) == everything(case.build(nodes))
    again.delete_ref_doc("bad", delete_from_docstore=True)
    assert "bad-0" not in again.docstore.docs
    assert everything(again) == everything(case.load(place.open().context))


def test_a_store_that_the_context_was_made_with_holds_the_chunks(case: Case, place: Place):
    here = place.open()
    if "vector_store" not in here.options:
        pytest.skip("a document store alone")
    store = here.options["vector_store"]
    here.context.vector_stores["default"] = store  # what StorageContext.from_defaults(vector_store=) does
    index = case.from_documents(documents(3), transformations=SPLIT, storage_context=here.context)
    twin = case.from_documents(documents(3), transformations=SPLIT)
    assert everything(index) == everything(twin)
    core = VectorStoreIndex.from_vector_store(store, embed_model=HashEmbedding())
    assert {text for text, _ in everything(core)} == chunks_of(twin)
    for each in (index, twin):
        each.insert(Document(text=f"Zanzibar exports cloves to {place.tag}x.", id_="Z"))
    assert f"{place.tag}x" in here.dump()
    for each in (index, twin):
        each.delete_ref_doc("Z", delete_from_docstore=True)
    assert f"{place.tag}x" not in here.dump()
    assert everything(index) == everything(twin)
