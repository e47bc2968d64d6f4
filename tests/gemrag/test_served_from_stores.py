"""GEM-RAG served from stores: rows of groups, questions and themes, which writes keep as in memory."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.gemrag.test_index import TOPICS, TwoQuestions, corpus
from tests.raptor.summarizers import FirstWords
from tests.serving.places import everything_in
from tests.serving.reads import count_reads, refuse_other_reads
from tests.serving.twins import Twins

from llama_index.gemrag import GEMRAGIndex, GEMRAGPostprocessor, GEMRAGRetriever, builder, group_reader
from llama_index.gemrag.group_reader import GroupReader
from llama_index.gemrag.memory_rows import QUESTIONS, THEME_QUESTIONS, GroupRow, MemoryRows
from llama_index.gemrag.themes.grouping import group_sizes, own_groups
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import make_engine
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.testing import HashEmbedding

PROMPTS = ("silk of the loom", "what turned the gears and wheels?", "boats in the harbour", "yeast number3")


class MemoryTwins(Twins):
    cls = GEMRAGIndex

    def components(self) -> dict[str, Any]:
        return {
            "extractor": TwoQuestions(),
            "summarizer": FirstWords(),
            "embed_model": HashEmbedding(dim=32),
            **self.options,
        }

    def check(self) -> None:
        """The rows are the state in memory: themes, texts, questions, groups and the mean of all questions."""
        rows, state, storage = MemoryRows(self.stored.storage), self.memory.state, self.stored.storage
        own_sizes = Counter(own_groups(state.chunks, self.memory.config.group_by))
        sizes = run_steps(rows.groups(run_steps(rows.all_groups())))
        assert {name: group.size for name, group in sizes.items()} == group_sizes(own_sizes, self.memory.config)
        in_memory = MemoryRows(self.memory.storage)
        assert sizes == run_steps(in_memory.groups(run_steps(in_memory.all_groups())))
        assert run_steps(in_memory.are_of(state, self.memory.config))
        names = run_steps(rows.themes_of_groups(run_steps(rows.groups_with_themes())))
        themes = run_steps(rows.themes(names))
        assert {n: (t.group, t.members) for n, t in themes.items()} == {
            n: (t.group, t.members) for n, t in state.themes.items()
        }
        texts = run_steps(rows.texts(names))
        assert {n: (r["node"], r["error"]) for n, r in texts.items()} == {
            n: (r["node"], r["error"]) for n, r in state.written.items()
        }
        assert run_steps(rows.unwritten()) == state.unwritten
        of_chunks = run_steps(rows.chunks(state.chunks.ids))
        assert {i: tuple(row["themes"]) for i, row in of_chunks.items() if row["themes"]} == state.themes_of
        assert set(run_steps(storage.records.get_all("gem_chunks"))) == set(state.chunks.ids)
        for space, layer in ((QUESTIONS, state.chunk_layer), (THEME_QUESTIONS, state.theme_layer)):
            found = run_steps(rows.questions_of(space, layer.texts.ids))
            assert sorted(i for ids in found.values() for i in ids) == sorted(layer.questions.ids)
            vectors = run_steps(storage.stored[space].fetch(layer.questions.ids))
            if not len(vectors):
                continue
            np.testing.assert_allclose(
                vectors.vectors_of(layer.questions.ids), layer.questions.vectors_of(layer.questions.ids), atol=1e-6
            )
        total, count = run_steps(rows.centre())
        direction = state.chunk_layer.centre.direction
        assert (count == 0) == (direction is None)
        if direction is not None:
            np.testing.assert_allclose(total / count, direction, atol=1e-10)
        assert storage.struct.counters.get("themes", 0) == len(state.written)

    def same(self, prompt: str, **options: Any) -> None:
        ours, theirs = (each.as_retriever(**options).retrieve(prompt) for each in self)
        assert [each.node for each in ours] == [each.node for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-5)


def node(number: int, document: str, words: str = "") -> TextNode:
    topic = TOPICS[number % 4]
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    text = f"{topic} number{number} {topic.split()[number % 3]} {words}."
    made = TextNode(id_=f"x{number:03d}", text=text, relationships=source, metadata={"topic": number % 4})
    made.excluded_embed_metadata_keys = ["topic"]
    return made


def wander(twins: MemoryTwins, seed: int, steps: int, after: Callable[[], None]) -> None:
    """Random inserts, changes and deletes of nodes in documents that grow and shrink, in both."""
    random, held = np.random.default_rng(seed), list(twins.memory.docstore.docs)
    for step in range(steps):
        kind = random.integers(4)
        if kind < 2 or not held:
            first = int(random.integers(200))
            new = [node(first + i, f"d{int(random.integers(12))}") for i in range(int(random.integers(1, 5)))]
            for index in twins:
                index.insert_nodes(new)
            held = list(dict.fromkeys([*held, *(each.node_id for each in new)]))
        elif kind == 2:
            gone = [str(i) for i in random.choice(held, size=min(len(held), int(random.integers(1, 4))), replace=False)]
            for index in twins:
                index.delete_nodes(gone, delete_from_docstore=True)
            held = [i for i in held if i not in gone]
        else:
            number = int(random.integers(200))
            changed = node(number, f"d{number % 12}", f"changed {step}")
            for index in twins:
                index.insert_nodes([changed])
            held = list(dict.fromkeys([*held, changed.node_id]))
        after()


@pytest.mark.parametrize("streamed_from", [10, 10_000])
def test_the_graph_of_a_group_is_read_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamed_from: int):
    twins = MemoryTwins(tmp_path, [node(i, f"d{i % 3}") for i in range(60)], group_by=None)
    twins.check()
    readers = [GroupReader(index.storage, MemoryRows(index.storage), index.config) for index in twins]
    assert [reader.holds_all for reader in readers] == [False, True]
    ids = twins.memory.state.chunks.ids
    ordered = sorted(ids, key=lambda name: twins.memory.state.chunks.record_of(name).key)
    made = run_steps(readers[1].graph(ordered))
    monkeypatch.setattr(group_reader, "_AT_ONCE", 7)
    monkeypatch.setattr(group_reader, "STREAMED_FROM", streamed_from)
    for reader in readers:
        assert run_steps(reader.in_order(ids[::-1])) == run_steps(reader.chunks("null")) == ordered
        read = run_steps(reader.graph(ordered))
        for name in ("a", "b", "degrees", "diagonal"):
            np.testing.assert_allclose(getattr(read, name), getattr(made, name), atol=1e-6)
        assert isinstance(read.a, np.memmap) == (streamed_from == 10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"summaries": "eager"},
        {"group_by": None},
        {"group_by": "topic", "refresh_share": 0.0},
        {"themes": "k-means", "max_theme_tokens": 30},
        {"paper": True},
    ],
)
def test_any_sequence_of_writes_leaves_the_memory_of_an_index_in_memory(tmp_path: Path, options: dict[str, Any]):
    twins = MemoryTwins(tmp_path, corpus(5), **options)
    twins.check()
    wander(twins, len(str(options)), 10, twins.check)
    for prompt in PROMPTS:
        twins.same(prompt, similarity_top_k=60, summary_margin=0.0)
    for name in ("write_summaries", "rebuild"):
        for index in twins:
            assert getattr(index, name)() == 0
        twins.check()
    for name in list(twins.memory.ref_doc_info):
        for index in twins:
            index.delete_ref_doc(name, delete_from_docstore=True)
    twins.check()
    assert run_steps(MemoryRows(twins.stored.storage).all_groups()) == []
    left = everything_in(make_engine(twins.url))
    assert not any(word in left for topic in TOPICS for word in topic.split())


def test_what_fails_is_told_and_made_up_for(tmp_path: Path):
    twins = MemoryTwins(tmp_path, corpus())
    for index in twins:
        index.resources.summarizer.fail_on = "silk"
        index.insert_nodes([node(4 * i, "new") for i in range(9)])
    twins.check()
    assert twins.memory.state.unwritten
    assert [f.node_id for f in twins.stored.failures()] == twins.memory.state.unwritten
    twins.same(PROMPTS[0], similarity_top_k=60)
    for index in twins:
        index.resources.summarizer.fail_on = "\0"
        index.resources.extractor.fail_on = "silk"
        index.retry_failed()
    twins.check()
    ours, theirs = ({(f.node_id, f.step) for f in index.failures()} for index in twins)
    assert ours == theirs
    assert "questions" in {step for _, step in ours}
    for index in twins:
        index.resources.extractor.fail_on = "\0"
        assert index.retry_failed() == 0
    twins.check()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"summary_margin": 0.0, "keep_covered": True},
        {"max_summaries": 1, "summary_margin": 0.0},
        {"blend": 0.5, "lexical_weight": 0.0},
        {"token_budget": 60},
        GEMRAGRetriever.paper(),
    ],
)
def test_answers_and_reasons_are_those_in_memory(tmp_path: Path, options: dict[str, Any]):
    twins = MemoryTwins(tmp_path, corpus())
    for prompt in PROMPTS:
        twins.same(prompt, **options)
        ours, theirs = (index.as_retriever(**options).explain(prompt) for index in twins)
        for one, other in zip(ours, theirs, strict=True):
            assert (one.node_id, one.is_theme, one.question, one.themes, one.sources, one.fallback) == (
                other.node_id, other.is_theme, other.question, other.themes, other.sources, other.fallback,
            )  # fmt: skip
            assert (one.nearness, one.lexical, one.hub, one.question_similarity) == pytest.approx(
                (other.nearness, other.lexical, other.hub, other.question_similarity), abs=1e-5
            )


def test_of_a_filter_only_themes_all_of_whose_chunks_pass_are_found(tmp_path: Path):
    twins = MemoryTwins(tmp_path, corpus(), group_by=None)
    for topic in range(4):
        only = MetadataFilters(filters=[MetadataFilter(key="topic", value=topic)])
        for prompt in PROMPTS:
            # By cosines: with a filter, how rare a word is, is counted over all chunks.
            twins.same(prompt, filters=only, lexical_weight=0.0, summary_margin=0.0, similarity_top_k=60)
            twins.same(prompt, doc_ids=[f"doc{topic}-0", f"doc{topic}-1"], summary_margin=0.0, similarity_top_k=60)


def test_a_chunk_is_found_by_a_question_whatever_its_text(tmp_path: Path):
    class Odd(TwoQuestions):
        def extract_node(self, node: Any, context: Any) -> Any:
            return {"questions": ["who sang of marzipan?"] if node.node_id == "x301" else []}
            yield

    many = [node(i, f"d{i}") for i in range(400)]
    twins = MemoryTwins(tmp_path, many, extractor=Odd(), num_themes=0)
    for index in twins:
        found = index.as_retriever(similarity_top_k=1, lexical_weight=0.0).retrieve("who sang of marzipan?")
        assert [each.node.node_id for each in found] == ["x301"]


def test_a_write_leaves_large_groups_to_a_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    twins = MemoryTwins(tmp_path, corpus(), group_by=None)
    monkeypatch.setattr(builder, "_LARGE", 20)
    theme = next(iter(twins.stored.as_retriever(summary_margin=0.0).explain(PROMPTS[0])[0].themes))
    members = run_steps(MemoryRows(twins.stored.storage).themes([theme]))[theme].members
    for index in twins:
        index.delete_nodes([members[0]])
        index.insert_nodes([node(1, "new")])
    rows = MemoryRows(twins.stored.storage)
    assert run_steps(rows.pending())["null"]["due"]
    assert theme not in run_steps(rows.themes([theme]))
    for index in twins:
        assert index.write_summaries() == 0
    twins.check()


def test_a_prompt_reads_many_rows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = MemoryTwins(tmp_path, [node(i, f"d{i // 4}") for i in range(600)]).stored
    reads = count_reads(monkeypatch)
    refuse_other_reads(monkeypatch)
    assert index.as_retriever().retrieve(PROMPTS[0])
    assert len(reads) <= 30


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_reads_the_questions_near_to_it_and_those_of_the_best_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str
):
    twins = MemoryTwins(tmp_path, [node(i, f"d{i // 4}") for i in range(600)])
    asked, read = list[str](), StoredSpace.rows

    def counted(space: StoredSpace, records: Any) -> Any:
        asked.extend(records if space.name == QUESTIONS else ())
        return read(space, records)

    monkeypatch.setattr(StoredSpace, "rows", counted)
    ours, theirs = (each.as_retriever(similarity_top_k=10).retrieve(prompt) for each in twins)
    chunks = twins.memory.state.chunks
    # Several themes have the same score, and rounding orders them.
    assert [each.node_id in chunks and each.node_id for each in ours] == [
        each.node_id in chunks and each.node_id for each in theirs
    ]
    # A chunk of which some questions are read has the scores of these.
    np.testing.assert_allclose([each.score for each in ours], [each.score for each in theirs], atol=1e-2)
    assert 250 <= len(asked) <= 250 + 2 * 2 * 10 < len(twins.memory.state.chunk_layer.questions)
    assert len(set(asked)) == len(asked)
    shown = [each.node_id for each in ours if each.node_id in twins.memory.state.chunks]
    explained = {each.node_id: each.question for each in twins.stored.as_retriever(similarity_top_k=10).explain(prompt)}
    expected = {each.node_id: each.question for each in twins.memory.as_retriever(similarity_top_k=10).explain(prompt)}
    assert [explained[name] for name in shown] == [expected[name] for name in shown]


def test_the_paper_s_score_reads_all_questions_of_the_chunks_near_to_a_prompt(tmp_path: Path):
    twins = MemoryTwins(tmp_path, [node(i, f"d{i // 4}") for i in range(300)], paper=True)
    for prompt in PROMPTS:
        twins.same(prompt, **GEMRAGRetriever.paper())


def test_a_write_reads_the_chunks_of_its_documents_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = MemoryTwins(tmp_path, [node(i, f"d{i // 4}") for i in range(400)]).stored
    reads = count_reads(monkeypatch)
    index.insert_nodes([node(401 + i, "d100") for i in range(4)])
    index.delete_ref_doc("d100", delete_from_docstore=True)
    assert max(keys for _, keys in reads) < 60


def test_a_write_by_another_process_is_seen(tmp_path: Path):
    twins = MemoryTwins(tmp_path, corpus())
    other = twins.again()
    for index in (other, twins.memory):
        index.insert_nodes([node(7, "doc0-0"), node(8, "doc0-0")])
    for prompt in PROMPTS:
        twins.same(prompt, summary_margin=0.0, similarity_top_k=60)
    twins.check()


def test_sync_and_async_agree(tmp_path: Path):
    index = MemoryTwins(tmp_path, corpus()).stored
    retriever = index.as_retriever(summary_margin=0.0)
    assert retriever.retrieve(PROMPTS[0]) == asyncio.run(retriever.aretrieve(PROMPTS[0]))
    assert retriever.explain(PROMPTS[0]) == asyncio.run(retriever.aexplain(PROMPTS[0]))
    assert asyncio.run(index.arebuild()) == 0


def test_the_page_has_the_answer_and_what_is_near_to_it(tmp_path: Path):
    index = MemoryTwins(tmp_path, corpus()).stored
    html = index.visualize(tmp_path / "page.html", query=PROMPTS[0]).read_text(encoding="utf-8")
    answer = index.as_retriever().retrieve(PROMPTS[0])
    assert all(each.node.get_content() in html for each in answer)
    assert "near to the question" in html


def test_what_needs_all_of_the_memory_is_refused_by_name(tmp_path: Path):
    index = MemoryTwins(tmp_path, corpus()).stored
    with pytest.raises(ConfigurationError, match="best_first"):
        index.as_retriever(mode="best_first").retrieve(PROMPTS[0])
    found = index.as_retriever().retrieve(PROMPTS[0])
    expand = GEMRAGPostprocessor(index=index)
    for use in (
        lambda: index.themes,
        lambda: index.spectrum(),
        lambda: index.questions_of("n0-00"),
        lambda: expand.postprocess_nodes(found),
    ):
        with pytest.raises(ConfigurationError, match="served from stores"):
            use()


def keep_members(self: MemoryRows, themes: Any, *, add: bool) -> Any:
    return
    yield


def keep_sizes(self: MemoryRows, groups: dict[str, GroupRow], share: float) -> Any:
    return
    yield


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [(MemoryRows, "_change_members", keep_members), (MemoryRows, "put_groups", keep_sizes)],
)
def test_a_fault_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, fault: Any):
    monkeypatch.setattr(owner, name, fault)
    twins = MemoryTwins(tmp_path, corpus())
    with pytest.raises(AssertionError):
        twins.check()
