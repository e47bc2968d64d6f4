"""spRAG's rows of documents and chunks: from stores and in memory they are the same, and so are answers from them."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.serving.places import everything_in
from tests.serving.reads import count_reads, refuse_other_reads
from tests.serving.twins import Twins
from tests.sprag.corpus import SPLIT, letter, report
from tests.sprag.test_with_llm import ONCE, reply

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import make_engine
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.sprag import AutoContext, RelevantSegmentPostprocessor, RuleContext, SpRAGIndex, SpRAGRetriever
from llama_index.sprag.document_rows import DocumentRows
from llama_index.sprag.documents import DocumentEntry

QUESTION = "What became of the lamp of the harbour?"
QUESTIONS = (QUESTION, "dues and wages", "The keeper asks for a boat")


class DocumentTwins(Twins):
    cls = SpRAGIndex

    def components(self) -> dict[str, Any]:
        return {"extractor": RuleContext(), "embed_model": HashEmbedding(), "transformations": SPLIT, **self.options}

    def build(self, given: Sequence[Document], **kwargs: Any) -> SpRAGIndex:
        return SpRAGIndex.from_documents(given, **kwargs)

    def check(self) -> None:
        """Both have the same rows, and the state in memory is that of all rows."""
        state = self.memory.state
        stored = {}
        for name, index in zip(("stored", "memory"), self, strict=True):
            rows, records = DocumentRows(index.storage), index.storage.records
            documents = run_steps(rows.of(run_steps(rows.keys())))
            terms = run_steps(records.get_all("sprag_terms"))
            stored[name] = (shown(documents), run_steps(rows.all_chunks()), run_steps(rows.failed()), terms)
            assert index.storage.struct.counters == {
                **index.storage.struct.counters, **state.counters(), "chunks": len(state.chunks)
            }  # fmt: skip
        assert stored["stored"] == stored["memory"]
        assert shown(state.documents) == stored["memory"][0]
        chunks = stored["memory"][1]
        assert {i: (state.document_of[i], state.header(i)) for i in state.chunks.ids} == {
            i: (row["document"], row["header"]) for i, row in chunks.items()
        }
        vectors = run_steps(self.stored.storage.space().fetch(chunks))
        assert sorted(vectors.ids) == sorted(state.chunks.ids)
        np.testing.assert_allclose(vectors.matrix, state.chunks.vectors_of(vectors.ids).reshape(vectors.matrix.shape))
        hashes: dict[str, list[str]] = {}
        for record in sorted(state.chunks.records, key=lambda record: record.id):
            hashes.setdefault(record.key.split("|")[0], []).append(record.id)
        kept = run_steps(self.stored.storage.records.get_all("hashes"))
        assert {node_hash: row["nodes"] for node_hash, row in kept.items()} == hashes
        again = run_steps(self.memory.builder.load())
        assert shown(again.documents) == shown(state.documents)
        assert (again.document_of, again.headers) == (state.document_of, state.headers)
        assert sorted(again.chunks.ids) == sorted(state.chunks.ids)
        question = f"harbour lamp keeper crane boat {QUESTION}"
        theirs = state.scored(question)[0][state.chunks.rows_of(again.chunks.ids)]
        np.testing.assert_allclose(again.scored(question)[0], theirs)

    def same(self, question: str, **options: Any) -> None:
        ours, theirs = (each.as_retriever(**options).retrieve(question) for each in self)
        assert [each.node for each in ours] == [each.node for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-6)


def shown(documents: Mapping[str, DocumentEntry]) -> dict[str, Any]:
    """Documents that can be compared."""
    return {
        key: (
            (entry.chunks, entry.goes_on, entry.tokens.tolist(), entry.characters.tolist(), entry.error),
            json.loads(json.dumps(dict(entry.description))),
        )
        for key, entry in documents.items()
    }


def page(number: int, words: str) -> Document:
    """One page of a file that has been indexed, or that comes new."""
    document = report([words], path=f"file{number % 4}.pdf")[0]
    document.metadata["page_label"] = str(number)
    return document.model_copy(update={"id_": f"page-{number}"})


def said(random: np.random.Generator) -> str:
    words = ["harbour", "lamp", "keeper", "crane", "boat", "pilot", "dues", "tide", "storm", "ledger"]
    return " ".join(f"The {a} had the {b} of {n}." for a, b, n in zip(
        random.choice(words, 5), random.choice(words, 5), random.integers(1900, 1950, 5), strict=True
    ))  # fmt: skip


def wander(twins: DocumentTwins, seed: int, steps: int) -> None:
    """Random inserts, updates and deletes of pages and of single chunks, in both."""
    random, held = np.random.default_rng(seed), dict.fromkeys(twins.memory.ref_doc_info)
    for step in range(steps):
        kind = random.integers(4)
        if kind < 2 or len(held) < 3:
            new = page(int(random.integers(30)), said(random))
            for index in twins:
                index.update_ref_doc(new) if new.id_ in held else index.insert(new)
            held[new.id_] = None
        elif kind == 2:
            gone = list(held)[int(random.integers(len(held)))]
            del held[gone]
            for index in twins:
                index.delete_ref_doc(gone, delete_from_docstore=True)
        else:
            some = twins.memory.ref_doc_info[list(held)[int(random.integers(len(held)))]].node_ids
            if len(some) > 1:
                for index in twins:
                    index.delete_nodes([some[0]])
        twins.check()
        if step % 3 == 2:
            for question in QUESTIONS:
                twins.same(question)
                twins.same(question, mode="chunks", similarity_top_k=50)
            twins.check()


@pytest.mark.parametrize("extractor", [RuleContext(), RuleContext(salient_terms=3)], ids=["rules", "salient terms"])
def test_any_sequence_of_writes_leaves_the_state_of_memory(tmp_path: Path, extractor: RuleContext):
    twins = DocumentTwins(tmp_path, [*report(), letter()], extractor=extractor)
    twins.check()
    wander(twins, seed=1, steps=24)
    assert [index.rebuild() for index in twins] == [0, 0]
    twins.check()
    for name in list(twins.memory.ref_doc_info):
        for index in twins:
            index.delete_ref_doc(name, delete_from_docstore=True)
    twins.check()
    for index in twins:
        assert run_steps(DocumentRows(index.storage).keys()) == []
    assert "lamp" not in everything_in(make_engine(twins.url))


def test_a_model_that_fails_and_answers_again_leaves_the_state_of_memory(tmp_path: Path):
    fails = True

    def unsure(prompt: str) -> str:
        return "no idea" if fails and "1913" in prompt else reply(prompt)

    llm = ScriptedLLM(unsure)
    twins = DocumentTwins(tmp_path, [*report(), letter()], extractor=AutoContext(retry=ONCE), llm=llm)
    twins.check()
    for index in twins:
        index.insert(Document(text="The keeper wrote in 1913. Nobody knows to whom. It was a storm.", id_="odd"))
        assert len(index.failures()) == 1
    twins.check()
    called = len(llm.prompts)
    for index in twins:
        index.delete_nodes([next(i for i in index.ref_doc_info["letter"].node_ids)])
    assert len(llm.prompts) == called
    for question in QUESTIONS:
        twins.same(question)
    twins.check()
    fails = False
    for index in twins:
        assert index.retry_failed() == 0
    twins.check()
    for question in QUESTIONS:
        twins.same(question)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"token_budget": 60},
        {"selection": "optimal", "order": "value"},
        {"order": "document", "segment_headers": True},
        SpRAGRetriever.paper(),
        SpRAGRetriever.paper("find_all"),
        {"mode": "chunks", "lexical_weight": 0.0},
    ],
)
def test_answers_and_reasons_are_those_in_memory(tmp_path: Path, options: dict[str, Any]):
    random = np.random.default_rng(2)
    twins = DocumentTwins(tmp_path, [*report(), letter(), *(page(i, said(random)) for i in range(20))])
    for question in QUESTIONS:
        twins.same(question, **options)
        ours, theirs = (index.as_retriever(**options).explain(question) for index in twins)
        assert [(each.document, each.start, each.end, each.fallback) for each in ours] == [
            (each.document, each.start, each.end, each.fallback) for each in theirs
        ]
        assert [[(c.node_id, c.rank, c.header) for c in each.chunks] for each in ours] == [
            [(c.node_id, c.rank, c.header) for c in each.chunks] for each in theirs
        ]


def test_a_segment_has_no_chunk_that_a_filter_excludes(tmp_path: Path):
    random = np.random.default_rng(3)
    documents = [page(i, said(random)) for i in range(16)]
    for document in documents:
        document.metadata["odd"] = int(document.metadata["page_label"]) % 2
    twins = DocumentTwins(tmp_path, documents, extractor=RuleContext(group_by="file_path"))
    odd = MetadataFilters(filters=[MetadataFilter(key="odd", value=1)])
    for question in QUESTIONS:
        # By cosines: with a filter, how rare a word is, is counted over all chunks.
        twins.same(question, filters=odd, lexical_weight=0.0)
        twins.same(question, doc_ids=["page-1", "page-2", "page-5"])


def test_every_query_of_several_finds_its_own(tmp_path: Path):
    random = np.random.default_rng(4)
    twins = DocumentTwins(tmp_path, [page(i, said(random)) for i in range(300)])
    bundle = QueryBundle(QUESTION, custom_embedding_strs=["the ledger of 1931", "the tide had the crane"])
    for options in ({"mode": "chunks", "candidates": 20, "similarity_top_k": 10}, {"candidates": 20}):
        ours, theirs = (index.as_retriever(**options).retrieve(bundle) for index in twins)
        assert [each.node for each in ours] == [each.node for each in theirs]


def test_segments_of_the_chunks_of_another_retriever_are_those_in_memory(tmp_path: Path):
    random = np.random.default_rng(5)
    twins = DocumentTwins(tmp_path, [*report(), *(page(i, said(random)) for i in range(12))])
    found = twins.memory.as_retriever(mode="chunks", similarity_top_k=12).retrieve(QUESTION)
    tenant = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
    nodes = [each.node for each in found]
    copies = [node.model_copy(update={"id_": f"copy of {node.node_id}"}) for node in nodes]
    for options in ({}, {"filters": tenant}, {"segment_headers": True, "order": "document"}):
        for given in (nodes, copies):
            ours, theirs = (
                RelevantSegmentPostprocessor(index=index, overall_max_length=80, **options).postprocess_nodes(
                    [NodeWithScore(node=n, score=each.score) for n, each in zip(given, found, strict=True)],
                    query_str=QUESTION,
                )
                for index in twins
            )
            assert [each.node for each in ours] == [each.node for each in theirs]


def test_a_question_reads_many_rows_at_once_and_the_documents_of_the_best_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    random = np.random.default_rng(6)
    index = DocumentTwins(tmp_path, [report([said(random)], path=f"f{i}.pdf")[0] for i in range(120)]).stored
    reads = count_reads(monkeypatch)
    refuse_other_reads(monkeypatch)
    assert index.as_retriever().retrieve(QUESTION)
    assert len(reads) <= 12
    reads.clear()
    assert index.as_retriever(fill=False).retrieve(QUESTION)
    assert len(reads) <= 12
    assert 0 < max(keys for collection, keys in reads if collection.endswith("sprag_documents")) <= 10


def test_a_write_by_another_process_is_seen(tmp_path: Path):
    twins = DocumentTwins(tmp_path, [*report(), letter()])
    other = twins.again()
    for index in (other, twins.memory):
        index.insert(page(9, "The lamp of the harbour went out. The keeper was asleep."))
    twins.same(QUESTION)
    twins.check()


def test_sync_and_async_agree(tmp_path: Path):
    index = DocumentTwins(tmp_path, [*report(), letter()]).stored
    retriever = index.as_retriever()
    assert retriever.retrieve(QUESTION) == asyncio.run(retriever.aretrieve(QUESTION))
    assert asyncio.run(index.arebuild()) == 0


def test_the_page_shows_the_documents_around_the_answer(tmp_path: Path):
    index = DocumentTwins(tmp_path, [*report(), letter()]).stored
    for mode in ("segments", "chunks"):
        index.as_retriever(mode=mode).retrieve(QUESTION)
        html = index.visualize(tmp_path / "page.html").read_text(encoding="utf-8")
        assert "harbour report" in html
        assert f"Question: {QUESTION}" in html


def test_what_is_not_stored_is_refused_by_name(tmp_path: Path):
    index = DocumentTwins(tmp_path, [letter()]).stored
    with pytest.raises(ConfigurationError, match="context_weight"):
        index.as_retriever(context_weight=0.5).retrieve(QUESTION)


def keep_headers(self: DocumentRows, ids: Any) -> Any:
    return
    yield


def test_a_fault_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(DocumentRows, "delete_chunks", keep_headers)
    twins = DocumentTwins(tmp_path, [*report(), letter()])
    with pytest.raises(AssertionError):
        wander(twins, seed=1, steps=24)
