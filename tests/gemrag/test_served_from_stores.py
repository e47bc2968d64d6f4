"""GEM-RAG served from stores: rows of groups, questions and themes, which writes keep as in memory."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.gemrag.test_index import TOPICS, TwoQuestions, corpus
from tests.raptor.summarizers import FirstWords
from tests.serving.places import everything_in
from tests.serving.reads import count_reads, refuse_other_reads
from tests.serving.twins import Twins

from llama_index.gemrag import (
    GEMRAGIndex,
    GEMRAGPostprocessor,
    GEMRAGRetriever,
    KeyphraseQuestionExtractor,
    builder,
    group_reader,
)
from llama_index.gemrag.group_reader import GroupReader
from llama_index.gemrag.memory_rows import GROUPS, OF_GROUP, QUESTIONS, THEME_QUESTIONS, UNWRITTEN, MemoryRows
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.gemrag.themes.grouping import ChunkGroup, group_sizes, own_groups
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import make_engine
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.derived_nodes import node_from_record
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.testing import HashEmbedding

PROMPTS = ("silk of the loom", "what turned the gears and wheels?", "boats in the harbour", "yeast number3")


def contents_of(state: GEMRAGState) -> Any:
    """What a state holds, whichever way it was made."""
    layers = (state.chunk_layer, state.theme_layer)
    ids = [sorted(part.ids) for layer in layers for part in (layer.texts, layer.questions)]
    return ids, state.themes, state.written, state.themes_of


class AllWords(FirstWords):
    """The words of all texts, so that no two themes are alike."""

    def summarize(self, texts: Any, **kwargs: Any) -> Any:
        return " ".join(sorted({word for text in texts for word in text.split()})), []
        yield


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
        sizes = run_steps(rows.groups(run_steps(rows.names(GROUPS))))
        assert {name: group.size for name, group in sizes.items()} == group_sizes(own_sizes, self.memory.config)
        in_memory = MemoryRows(self.memory.storage)
        assert sizes == run_steps(in_memory.groups(run_steps(in_memory.names(GROUPS))))
        assert not run_steps(in_memory.note_repairs(state, self.memory.config))
        assert contents_of(run_steps(self.memory.builder.load())) == contents_of(state)
        names = run_steps(rows.themes_of_groups(run_steps(rows.names(OF_GROUP))))
        themes = run_steps(rows.themes(names))
        assert {n: (t.group, t.members) for n, t in themes.items()} == {
            n: (t.group, t.members) for n, t in state.themes.items()
        }
        texts = run_steps(rows.texts(names))
        assert {n: (r["node"], r["error"]) for n, r in texts.items()} == {
            n: (r["node"], r["error"]) for n, r in state.written.items()
        }
        assert run_steps(rows.names(UNWRITTEN)) == state.unwritten
        of_chunks = run_steps(rows.chunks(state.chunks.ids))
        assert {i: tuple(row["themes"]) for i, row in of_chunks.items() if row["themes"]} == state.themes_of
        assert set(run_steps(storage.records.get_all("gem_chunks"))) == set(state.chunks.ids)
        for space, layer in ((QUESTIONS, state.chunk_layer), (THEME_QUESTIONS, state.theme_layer)):
            found = run_steps(rows.questions_of(space, layer.texts.ids))
            assert sorted(i for ids in found.values() for i in ids) == sorted(layer.questions.ids)
            vectors = run_steps(storage.space(space).fetch(layer.questions.ids))
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


SOME = MetadataFilters(filters=[MetadataFilter(key="topic", value=1)])


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> MemoryTwins:
    """More chunks and themes than a question reads."""
    nodes = [node(i, f"d{i // 4}", f"w{7 * i % 31} w{11 * i % 53}") for i in range(400)]
    return MemoryTwins(tmp_path_factory.mktemp("large"), nodes, summarizer=AllWords())


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
    assert run_steps(MemoryRows(twins.stored.storage).names(GROUPS)) == []
    left = everything_in(make_engine(twins.url))
    assert not any(word in left for topic in TOPICS for word in topic.split())


@pytest.mark.parametrize("group_by", ["ref_doc_id", "document_id", "topic"])
def test_chunks_without_a_document_or_a_value_share_a_graph(tmp_path: Path, group_by: str):
    nodes = [TextNode(id_=f"b{i}", text=f"{TOPICS[i % 2]} number{i}") for i in range(12)]
    twins = MemoryTwins(tmp_path, [*corpus(3), *nodes], group_by=group_by)
    twins.check()
    assert any(members[0][0] == "b" for members in twins.memory.themes.values())
    for index in twins:
        index.delete_nodes(["b1", "b2"])
        index.insert_nodes([TextNode(id_="b20", text=TOPICS[3])])
    twins.check()


def test_chunks_without_a_document_that_an_earlier_version_stored_share_a_graph(tmp_path: Path):
    """It stored them as a group that it never found again."""
    nodes = [TextNode(id_=f"b{i}", text=f"{TOPICS[i % 2]} number{i}") for i in range(12)]
    twins = MemoryTwins(tmp_path, [*corpus(3), *nodes], refresh_share=0.0)
    records = twins.stored.storage.records
    for collection in ("gem_long", "gem_groups"):
        row = run_steps(records.get(collection, '"None"'))
        run_steps(records.put(collection, [("null", row)]))
        run_steps(records.delete(collection, ['"None"']))
    rows = run_steps(records.get_all("gem_chunks"))
    of_none = [(name, {**row, "own": "null"}) for name, row in rows.items() if row["own"] == '"None"']
    run_steps(records.put("gem_chunks", of_none))
    for index in (twins.again(), twins.memory):
        index.insert_nodes([TextNode(id_="b20", text=TOPICS[3])])
    twins.check()
    assert {row["own"] for row in run_steps(records.get_many("gem_chunks", ["b0", "b20"])).values()} == {'"None"'}


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


def test_questions_that_are_not_embedded_are_explained_as_in_memory(tmp_path: Path):
    twins = MemoryTwins(tmp_path, corpus(), extractor=KeyphraseQuestionExtractor())
    wander(twins, 5, 4, twins.check)
    for prompt in PROMPTS:
        twins.same(prompt)
        ours, theirs = ([why.question for why in each.as_retriever().explain(prompt)] for each in twins)
        assert ours == theirs
    assert any(ours)
    assert not len(twins.memory.state.chunk_layer.questions)


def test_a_theme_of_another_group_keeps_its_text_and_is_found_by_the_new_one(tmp_path: Path):
    twins = MemoryTwins(tmp_path, corpus())
    for index in twins:
        rows = MemoryRows(index.storage)
        (name, theme), *_ = run_steps(rows.all_themes()).items()
        run_steps(rows.put_themes({name: Theme("other", theme.members, theme.weights)}, {name: theme}))
        assert run_steps(rows.themes_of_groups(["other"])) == [name]
        assert name not in run_steps(rows.themes_of_groups([theme.group]))
        assert run_steps(rows.names(UNWRITTEN)) == []
        assert all(name in row["themes"] for row in run_steps(rows.chunks(theme.members)).values())


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


def test_a_prompt_reads_many_rows_at_once(large: MemoryTwins, monkeypatch: pytest.MonkeyPatch):
    reads = count_reads(monkeypatch)
    refuse_other_reads(monkeypatch)
    assert large.stored.as_retriever().retrieve(PROMPTS[0])
    assert len(reads) <= 30


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_reads_the_questions_near_to_it_and_those_of_the_best_chunks(
    large: MemoryTwins, monkeypatch: pytest.MonkeyPatch, prompt: str
):
    asked, read = list[str](), StoredSpace.rows

    def counted(space: StoredSpace, records: Any) -> Any:
        asked.extend(records if space.name == QUESTIONS else ())
        return read(space, records)

    monkeypatch.setattr(StoredSpace, "rows", counted)
    ours, theirs = (each.as_retriever(similarity_top_k=10).retrieve(prompt) for each in large)
    assert [each.node_id for each in ours] == [each.node_id for each in theirs]
    # A chunk of which some questions are read has the scores of these.
    np.testing.assert_allclose([each.score for each in ours], [each.score for each in theirs], atol=1e-2)
    assert 250 <= len(asked) <= 250 + 2 * 2 * 10 < len(large.memory.state.chunk_layer.questions)
    assert len(set(asked)) == len(asked)
    shown = [each.node_id for each in ours if each.node_id in large.memory.state.chunks]
    explained = {each.node_id: each.question for each in large.stored.as_retriever(similarity_top_k=10).explain(prompt)}
    expected = {each.node_id: each.question for each in large.memory.as_retriever(similarity_top_k=10).explain(prompt)}
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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"edge_weight": 0.0},
        {"edge_weight": 1.0},
        {"similarity_top_k": 30, "summary_margin": 0.0, "keep_covered": True},
        {"lexical_weight": 0.0, "max_summaries": 1},
        {"filters": SOME},
        {"node_ids": [f"x{i:03d}" for i in range(0, 400, 3)]},
        GEMRAGRetriever.paper(),
    ],
)
def test_a_best_first_search_selects_what_it_selects_in_memory(large: MemoryTwins, options: dict[str, Any]):
    options = {**options, "mode": "best_first"}
    large.same(PROMPTS[1], **options)
    ours, theirs = (index.as_retriever(**options).explain(PROMPTS[0]) for index in large)
    assert [each.via for each in ours] == [each.via for each in theirs]


@pytest.mark.parametrize("prompt", [PROMPTS[1], None])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"edge_weight": 1.0},
        {"edge_weight": 0.0, "lexical_weight": 1.0},
        {"add_themes": True, "top_n": 20},
        {"add_themes": True, "filters": SOME},
        {"max_summaries": 0, "top_n": 40, "token_budget": 300},
    ],
)
def test_a_search_from_nodes_selects_what_it_selects_in_memory(
    large: MemoryTwins, options: dict[str, Any], prompt: str | None
):
    """Chunks, a theme and a node of no index; some of them do not pass the filter."""
    given = [large.memory.docstore.docs[name] for name in ("x003", "x300", "x077")]
    theme = next(iter(large.memory.state.written.values()))["node"]
    given += [node_from_record(theme), TextNode(text="of no index")]
    scored = [NodeWithScore(node=each, score=1 - place / 10) for place, each in enumerate(given)]
    ours, theirs = (
        GEMRAGPostprocessor(index=index, **options).postprocess_nodes(scored, query_str=prompt) for index in large
    )
    assert [each.node for each in ours] == [each.node for each in theirs]
    assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-6)
    assert len(theirs) > len(given) or "token_budget" in options


def test_a_best_first_search_reads_what_it_comes_near_to(large: MemoryTwins, monkeypatch: pytest.MonkeyPatch):
    reads = count_reads(monkeypatch)
    refuse_other_reads(monkeypatch)
    assert large.stored.as_retriever(mode="best_first", similarity_top_k=5).retrieve(PROMPTS[0])
    assert len(reads) <= 100


def test_themes_and_spectra_are_those_in_memory(tmp_path: Path):
    twins = MemoryTwins(tmp_path, corpus())
    ours, theirs = (index.themes for index in twins)
    assert ours == theirs != {}
    for group in ("", "doc0-0"):
        ours, theirs = (index.spectrum(group) for index in twins)
        np.testing.assert_allclose(ours.values, theirs.values, atol=1e-6)
        assert (ours.num_themes, ours.num_nodes) == (theirs.num_themes, theirs.num_nodes)
    for index in twins:
        with pytest.raises(ConfigurationError, match="No chunk belongs to the group 'doc9'"):
            index.spectrum("doc9")


def test_what_needs_all_of_the_memory_is_refused_by_name(tmp_path: Path):
    index = MemoryTwins(tmp_path, corpus()).stored
    for use in (lambda: index.state, lambda: index.questions_of("n0-00"), index.to_networkx):
        with pytest.raises(ConfigurationError, match="served from stores"):
            use()


def keep_members(self: MemoryRows, themes: Any, *, add: bool) -> Any:
    return
    yield


def keep_sizes(self: MemoryRows, groups: dict[str, ChunkGroup], share: float) -> Any:
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
