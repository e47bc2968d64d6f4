"""Extractors as steps of an `IngestionPipeline`: cached, deduplicated, and taken up by an index."""

import asyncio
import pickle

import pytest
from llama_index.core import Document
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode, TransformComponent
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import VectorStoreQuery
from tests.cases import CASES, TEXTS, Case, ask
from tests.together.plugins import rule_extractor, with_llm

from llama_index.ragkit import MatrixVectorStore, NodeExtractor, PipelineStore
from llama_index.ragkit.errors import UnsupportedStoreError
from llama_index.ragkit.testing import HashEmbedding

READERS = [case for case in CASES if rule_extractor(case)]
each_reader = pytest.mark.parametrize("case", READERS, ids=lambda case: case.name)
SPLIT = SentenceSplitter(chunk_size=64, chunk_overlap=0)


def documents(count: int = 4) -> list[Document]:
    return [Document(text=" ".join([*TEXTS[i:], *TEXTS[:i], f"Note {i}."]), id_=f"D{i}") for i in range(count)]


class Watched(TransformComponent):
    """Counts the nodes that reach an extractor."""

    inner: NodeExtractor
    _reached: list[str] = PrivateAttr(default_factory=list)  # a field would enter the key of the cache

    @property
    def reached(self) -> list[str]:
        return self._reached

    def __call__(self, nodes, **kwargs):
        self.reached.extend(node.get_content() for node in nodes)
        return self.inner(nodes, **kwargs)

    async def acall(self, nodes, **kwargs):
        self.reached.extend(node.get_content() for node in nodes)
        return await self.inner.acall(nodes, **kwargs)


def built_from_nodes(case: Case, nodes):
    """An index that gets what the pipeline read, and may read nothing itself."""
    extractor = rule_extractor(case)
    assert extractor is not None
    assert all(extractor.record_key in node.metadata for node in nodes)
    index = case.build(nodes)
    assert not any(extractor.record_key in node.metadata for node in index.docstore.docs.values())
    return index


@each_reader
@pytest.mark.parametrize("how", ["sync", "async"])
def test_an_index_takes_what_a_pipeline_read(case: Case, how: str):
    pipeline = IngestionPipeline(transformations=[SPLIT, rule_extractor(case)])
    run = {"sync": pipeline.run, "async": lambda **kwargs: asyncio.run(pipeline.arun(**kwargs))}[how]
    index = built_from_nodes(case, run(documents=documents()))
    assert ask(index) == ask(case.from_documents(documents(), transformations=[SPLIT]))


@each_reader
def test_the_pipeline_s_cache_spares_the_reading(case: Case, tmp_path):
    extractor = Watched(inner=rule_extractor(case))
    pipeline = IngestionPipeline(transformations=[SPLIT, extractor], cache=IngestionCache())
    first = pipeline.run(documents=documents())
    reached = len(extractor.reached)
    assert reached == len(first)
    pipeline.persist(str(tmp_path))
    again = IngestionPipeline(transformations=[SPLIT, extractor])
    again.load(str(tmp_path))
    second = again.run(documents=documents())
    assert len(extractor.reached) == reached
    assert ask(built_from_nodes(case, second)) == ask(built_from_nodes(case, first))


@each_reader
@pytest.mark.parametrize("strategy", list(DocstoreStrategy), ids=lambda strategy: strategy.value)
def test_docstore_strategies_let_through_what_is_new(case: Case, strategy: DocstoreStrategy):
    extractor = Watched(inner=rule_extractor(case))
    pipeline = IngestionPipeline(
        transformations=[SPLIT, extractor, HashEmbedding()],
        docstore=SimpleDocumentStore(),
        docstore_strategy=strategy,
        vector_store=MatrixVectorStore(),
    )
    index = built_from_nodes(case, pipeline.run(documents=documents()))
    assert pipeline.run(documents=documents()) == []
    extractor.reached.clear()
    changed = [*documents()[:3], Document(text="Zanzibar exports cloves.", id_="D3")]
    new = pipeline.run(documents=changed)
    assert extractor.reached == ["Zanzibar exports cloves."]
    index.delete_ref_doc("D3", delete_from_docstore=True)
    index.insert_nodes(new)
    assert ask(index, doc_ids=["D3"]) == ask(case.from_documents(changed, transformations=[SPLIT]), doc_ids=["D3"])
    assert set(index.ref_doc_info) == {"D0", "D1", "D2", "D3"}


@each_reader
def test_extractors_travel_to_the_processes_of_a_pipeline(case: Case):
    # `IngestionPipeline.run(num_workers=2)` pickles its steps.
    for extractor in (rule_extractor(case), with_llm(case).get("extractor")):
        if extractor is not None:
            there = pickle.loads(pickle.dumps(extractor))
            assert there.fingerprint == extractor.fingerprint
            assert there.to_dict() == extractor.to_dict()
    text = TextNode(text=TEXTS[2])
    there = pickle.loads(pickle.dumps(rule_extractor(case)))
    assert there([text.model_copy(deep=True)])[0].metadata == rule_extractor(case)([text])[0].metadata


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("how", ["run", "arun"])
def test_a_pipeline_keeps_an_index_up_to_date(case: Case, how: str) -> None:
    index = case.build()
    model = index.embed_model

    def feed(documents: list[Document], strategy: DocstoreStrategy = DocstoreStrategy.UPSERTS) -> None:
        pipeline.docstore_strategy = strategy
        if how == "run":
            pipeline.run(documents=documents)
        else:
            asyncio.run(pipeline.arun(documents=documents))

    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=24, chunk_overlap=0), model],
        docstore=SimpleDocumentStore(),
        vector_store=PipelineStore(index),
    )
    first, second = (Document(text=f"{TEXTS[i]} {TEXTS[i + 1]} {TEXTS[i + 2]}", id_=f"D{i}") for i in (0, 3))
    changed = Document(text="Konrad Zuse built the Z3 in Berlin.", id_="D3")
    feed([first, second])
    feed([first, changed])
    twin = case.from_documents([first, changed], transformations=[SentenceSplitter(chunk_size=24, chunk_overlap=0)])
    assert sorted(node.get_content() for node in index.docstore.docs.values()) == sorted(
        node.get_content() for node in twin.docstore.docs.values()
    )
    feed([first], DocstoreStrategy.UPSERTS_AND_DELETE)
    assert set(index.ref_doc_info) == {"D0"}
    assert not any("Zuse" in text for text, _ in ask(index, "Who built the Z3?"))
    with pytest.raises(UnsupportedStoreError, match=r"as_retriever\(\)"):
        PipelineStore(index).query(VectorStoreQuery(query_str="x"))
