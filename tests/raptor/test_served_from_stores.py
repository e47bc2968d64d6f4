"""A tree that is served from stores: its rows are the tree of the index in memory, and a write reads a part of them."""

import asyncio
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import Document, NodeWithScore, TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from tests.raptor.summarizers import FirstWords
from tests.raptor.test_index import corpus
from tests.serving.twins import Twins, random_writes

from llama_index.ragkit import DerivedStruct
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.ray import build
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.testing import HashEmbedding
from llama_index.raptor import GraphClustering, RaptorIndex, RaptorPostprocessor, RaptorRetriever
from llama_index.raptor.tree_rows import TreeRows, tree_of
from llama_index.raptor.tree_view import TreeView

SOFT = {"clustering": GraphClustering(target_size=6, overlap_threshold=0.2)}


class DistinctEmbedding(HashEmbedding):
    """No two texts are equally near a third: of equally near chunks, the store would choose any."""

    def vector(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        noise = np.random.default_rng(seed).normal(scale=1e-3, size=self.dim)
        return [float(x) for x in super().vector(text) + noise]


class TreeTwins(Twins):
    cls = RaptorIndex

    def components(self) -> dict[str, Any]:
        return {"summarizer": FirstWords(), "embed_model": DistinctEmbedding(), **self.options}

    def check(self) -> None:
        """The rows are the tree in memory, and so are roots, texts and vectors."""
        rows, state = TreeRows(self.stored.storage), self.memory.state
        own = TreeRows(self.memory.storage)
        assert not run_steps(own.note_repairs(state.tree, state.chunks.ids, state.written, run_steps(own.all())))
        loaded = run_steps(self.memory.builder.load())
        assert (loaded.tree, loaded.written) == (state.tree, state.written)
        stored = run_steps(rows.all())
        assert tree_of(stored) == state.tree
        assert sorted(run_steps(rows.roots())) == state.roots
        assert run_steps(rows.unwritten()) == state.unwritten
        texts = run_steps(rows.texts(state.tree.summaries))
        assert {name: record["node"] for name, record in texts.items()} == {
            name: record["node"] for name, record in state.written.items()
        }
        for name in (name for name in stored if not stored[name]["level"]):
            assert stored[name]["chunks"] == 1
        vectors = run_steps(self.stored.storage.space("summaries").fetch(state.tree.summaries))
        names = sorted(vectors.ids)
        assert names == sorted(state.summaries.ids)
        if names:
            np.testing.assert_allclose(vectors.vectors_of(names), state.summaries.vectors_of(names), atol=1e-6)
        assert self.stored.storage.struct.counters.get("summaries", 0) == len(state.written)

    def same(self, question: str, **options: Any) -> None:
        ours, theirs = (each.as_retriever(**options).retrieve(question) for each in self)
        assert [each.node for each in ours] == [each.node for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-6)


def many(count: int, seed: int = 0) -> list[TextNode]:
    """Chunks of random words, with a few topics."""
    random, made = np.random.default_rng(seed), []
    for i in range(count):
        topic = random.integers(12)
        words = [f"word{topic}x{random.integers(9)}" for _ in range(8)]
        made.append(TextNode(id_=f"s{seed}-{i:03d}", text=" ".join(words), metadata={"topic": int(topic)}))
        made[-1].excluded_embed_metadata_keys = ["topic"]
    return made


@pytest.mark.parametrize("options", [{}, {"summaries": "eager"}, {"summaries": "on_request"}, SOFT, {"max_layers": 1}])
def test_any_sequence_of_writes_leaves_the_tree_of_memory(tmp_path: Path, options: dict[str, Any]):
    twins = TreeTwins(tmp_path, corpus(), **options)

    def changed(step: int) -> TextNode:
        return corpus()[step].model_copy(update={"text": f"bread oven changed {step}"})

    held = random_writes(twins, corpus(), many(60, seed=1), changed, 12)
    for index in twins:
        assert index.write_summaries() == 0
    twins.check()
    for index in twins:
        index.rebuild()
    twins.check()
    for index in twins:
        index.delete_nodes(held)
    twins.check()
    assert run_steps(TreeRows(twins.stored.storage).all()) == {}


def test_what_is_given_together_is_clustered_with_its_last_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("llama_index.ragkit.index.write_plan.AT_ONCE", 2)
    twins = TreeTwins(tmp_path, corpus())

    def changed(step: int) -> TextNode:
        return corpus()[step].model_copy(update={"text": f"bread oven changed {step}"})

    random_writes(twins, corpus(), many(60, seed=1), changed, 12)
    for index in twins:
        index.insert_nodes(many(45))
    twins.check()


def test_chunks_of_a_build_that_ended_early_are_found_and_clustered_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("llama_index.ragkit.index.write_plan.AT_ONCE", 20)
    twins = TreeTwins(tmp_path, [])
    rows, broken = TreeRows(twins.stored.storage), [TextNode(id_="z-broken", text="cannot be stored")]

    def embed(self: HashEmbedding, text: str) -> list[float]:
        if text == "cannot be stored":
            raise ValueError("broken")
        return whole(self, text)

    whole = HashEmbedding._get_text_embedding
    monkeypatch.setattr(HashEmbedding, "_get_text_embedding", embed)
    given = many(60)
    with pytest.raises(ValueError, match="broken"):
        twins.stored.insert_nodes([*given, *broken])
    assert run_steps(rows.waiting()) == sorted(node.node_id for node in given)
    assert set(run_steps(rows.roots()).values()) == {0}
    found = twins.again().as_retriever(similarity_top_k=3).retrieve(given[7].text)
    assert given[7].node_id in [each.node.node_id for each in found]
    twins.stored.delete_nodes([given[0].node_id])
    assert len(run_steps(rows.waiting())) == 59
    assert twins.stored.write_summaries() == 0
    twins.memory.insert_nodes(given[1:])
    twins.check()
    assert run_steps(rows.waiting()) == []


def test_shards_are_clustered_once_at_the_end(tmp_path: Path):
    twins = TreeTwins(tmp_path, [])
    documents = [Document(text=node.text, id_=node.node_id) for node in many(60)]

    def open_index() -> Any:
        return twins.again()

    def read(first: int) -> list[Document]:
        return documents[first : first + 20]

    built = build(open_index, [partial(read, first) for first in (0, 20, 40)], on="here", documents_at_once=7)
    assert [shard.error for shard in built] == ["", "", ""]
    twins.stored = twins.again()
    twins.memory = RaptorIndex.from_documents(documents, **twins.components())
    twins.check()


def test_layers_are_read_and_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, size in (("_SUMMARIES_AT_ONCE", 3), ("_NODES_AT_ONCE", 20), ("_MOST_TEXTS", 30)):
        monkeypatch.setattr(f"llama_index.raptor.tree_writer.{name}", size)
    twins = TreeTwins(tmp_path, many(300), max_cluster_tokens=60)
    monkeypatch.undo()
    whole = twins.build(many(300), **twins.components())
    assert whole.state.tree == twins.memory.state.tree
    assert whole.state.written.keys() == twins.memory.state.written.keys()
    twins.check()


def test_many_new_chunks_are_clustered_with_the_others(tmp_path: Path):
    twins = TreeTwins(tmp_path, corpus())
    for index in twins:
        index.insert_nodes(many(40))
    twins.check()


@pytest.mark.parametrize("at_once", [200, 30])
def test_new_chunks_that_are_nearest_to_one_another_join_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    monkeypatch.setattr("llama_index.raptor.builder._AT_ONCE", at_once)
    twins = TreeTwins(tmp_path, many(400))
    alike = [TextNode(id_=f"alike{i}", text=f"word3x1 word3x2 word3x5 extra{i}") for i in range(80)]
    for index in twins:
        index.insert_nodes(alike)
    twins.check()


def test_the_neighbours_of_all_chunks_of_a_write_are_looked_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    index = TreeTwins(tmp_path, many(400)).stored
    asked, search = list[int](), StoredSpace.records_near_each

    def counted(space: StoredSpace, vectors: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(len(vectors))
        return (yield from search(space, vectors, *args, **kwargs))

    monkeypatch.setattr(StoredSpace, "records_near_each", counted)
    index.insert_nodes(many(50, seed=1))
    assert asked[0] == 50
    assert len(asked) <= 4


def test_a_tree_of_more_chunks_than_a_question_reads_answers_as_in_memory(tmp_path: Path):
    twins = TreeTwins(tmp_path, many(900))
    twins.check()
    for question in ("word3x1 word3x2 word3x5", "word7x0", "word1x1 word9x2 word4x4"):
        for options in (
            {"similarity_top_k": 5},
            {"summary_margin": 1.0},
            {"summary_margin": None},
            RaptorRetriever.paper(),
            RaptorRetriever.paper("code"),
            {"lexical_weight": 0.0, "summary_margin": None},
            {"token_budget": 200},
            {"node_ids": [f"s0-{i:03d}" for i in range(0, 900, 3)]},
        ):
            twins.same(question, **options)


def test_of_a_filter_only_summaries_all_of_whose_chunks_pass_are_found(tmp_path: Path):
    twins = TreeTwins(tmp_path, many(400))
    for topic in range(12):
        only = MetadataFilters(filters=[MetadataFilter(key="topic", value=topic)])
        # By cosines: with a filter, how rare a word is, is counted over all chunks.
        options = {"filters": only, "summary_margin": None, "similarity_top_k": 100, "lexical_weight": 0.0}
        twins.same(f"word{topic}x1 word{topic}x2", **options)
        found = twins.stored.as_retriever(**options).retrieve(f"word{topic}x1")
        for summary in (each.node for each in found if "raptor_level" in each.node.metadata):
            leaves = twins.memory.leaves_of(summary.node_id)
            assert {twins.memory.state.chunks.metadata_of(leaf)["topic"] for leaf in leaves} == {topic}


def test_below_a_summary_that_fails_a_filter_nothing_more_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nodes = many(400)
    for number, node in enumerate(nodes):
        node.metadata["half"] = number % 2  # of the chunks of one topic
    twins = TreeTwins(tmp_path, nodes)
    storage, tree = twins.stored.storage, twins.memory.state.tree
    rows, counts = run_steps(TreeRows(storage).above(["s0-001"])), reads(monkeypatch)
    half = Selection(filters=MetadataFilters(filters=[MetadataFilter(key="half", value=1)]))
    passing = run_steps(TreeView(storage, TreeRows(storage))._passing(rows, ["s0-001"], half))
    lowest = {leaf for parent in tree.parents["s0-001"] for leaf in tree.leaves(parent)}
    assert passing.keys() == {leaf for leaf in lowest if int(leaf[-3:]) % 2}
    assert sum(counts) < 60


def test_explanations_have_the_ways_from_the_roots_and_the_sources(tmp_path: Path):
    twins = TreeTwins(tmp_path, many(400))
    for options in ({"summary_margin": None}, {"node_ids": [f"s0-{i:03d}" for i in range(200)]}):
        ours, theirs = (each.as_retriever(**options).explain("word3x1 word5x2") for each in twins)
        assert [each.sources for each in ours] == [each.sources for each in theirs]
        for mine, its in zip(ours, theirs, strict=True):
            assert [[node for node, _ in path] for path in mine.paths] == [[n for n, _ in path] for path in its.paths]
            assert [c for path in mine.paths for _, c in path] == pytest.approx([c for p in its.paths for _, c in p])
            assert (mine.level, mine.fallback) == (its.level, its.fallback)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of the tree each read returned."""
    counts: list[int] = []
    of = TreeRows.of

    def counted(self: TreeRows, nodes: Any) -> Any:
        rows = yield from of(self, nodes)
        counts.append(len(rows))
        return rows

    def refused(self: TreeRows) -> Any:
        raise AssertionError("all of the tree is read")
        yield

    monkeypatch.setattr(TreeRows, "of", counted)
    monkeypatch.setattr(TreeRows, "all", refused)
    return counts


@pytest.mark.parametrize("count", [300, 1200])
def test_a_write_reads_the_way_up_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int):
    twins = TreeTwins(tmp_path, many(count))
    counts = reads(monkeypatch)
    twins.stored.insert_nodes(many(1, seed=1))
    twins.stored.delete_nodes(["s1-000"])
    assert sum(counts) < 1000
    assert run_steps(twins.stored.storage.space("chunks").described(["s1-000"])).ids == []


def test_a_write_by_another_process_is_seen(tmp_path: Path):
    twins = TreeTwins(tmp_path, corpus())
    other = twins.again()
    for index in (other, twins.memory):
        index.insert_nodes([TextNode(id_="new", text="bread oven flour yeast crust")])
    twins.same("bread crust", similarity_top_k=60, summary_margin=None)


def test_the_page_has_the_answer_and_what_is_around_it(tmp_path: Path):
    index = TreeTwins(tmp_path, many(400)).stored
    html = index.visualize(tmp_path / "page.html", query="word3x1 word5x2").read_text(encoding="utf-8")
    answer = index.as_retriever().retrieve("word3x1 word5x2")
    assert all(each.node.get_content() in html for each in answer)
    assert "The page shows the answer" in html
    assert "chunks below" not in html


change = TreeRows.change


def keep_parents(self: TreeRows, new: Any, removed: Any) -> Any:
    yield from change(self, new, {})
    yield from self.forget(removed)


def count_none(self: DerivedStruct, **more: int) -> None:
    """Forgets how many summaries there are."""


@pytest.mark.parametrize(
    ("owner", "name", "fault"), [(TreeRows, "change", keep_parents), (DerivedStruct, "count", count_none)]
)
def test_a_fault_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, fault: Any):
    monkeypatch.setattr(owner, name, fault)
    twins = TreeTwins(tmp_path, corpus())
    for index in twins:
        index.insert_nodes(many(1))
    with pytest.raises(AssertionError):
        twins.check()


def test_of_a_write_that_fails_nothing_is_torn(tmp_path: Path):
    """The summaries of the way up fail; the next write makes up for them."""
    twins = TreeTwins(tmp_path, corpus())
    for index in twins:
        index.resources.summarizer.fail_on = "crust"
        index.insert_nodes([TextNode(id_="new", text="bread oven flour yeast crust")])
    twins.check()
    assert [each.node_id for each in twins.stored.failures()] == [each.node_id for each in twins.memory.failures()]
    twins.same("bread crust", similarity_top_k=60, summary_margin=None)
    for index in twins:
        index.resources.summarizer.fail_on = "\0"
        assert index.retry_failed() == 0
    twins.check()


@pytest.mark.parametrize("options", [{}, SOFT, {"summaries": "on_request"}], ids=["tree", "soft", "unwritten"])
def test_a_traversal_visits_what_it_visits_in_memory(tmp_path: Path, options: dict[str, Any]):
    twins = TreeTwins(tmp_path, many(300), **options)
    for index in twins:
        index.delete_nodes(["s0-007", "s0-131"])
        index.insert_nodes(many(9, seed=1))
    topic = MetadataFilters(filters=[MetadataFilter(key="topic", value=3)])
    late = MetadataFilters(filters=[MetadataFilter(key="topic", value=6, operator=FilterOperator.LT)])
    for question in ("word3x1 word3x2", "word7x0 word1x5"):
        for given in (
            {},
            {"beam_width": 2, "num_layers": 2},
            {"start_layer": 1, "beam_width": 3},
            {"min_cosine": 0.25, "similarity_top_k": 300},
            {"lexical_weight": 0.0, "start_layer": 0},
            {"filters": topic},
            {"filters": late, "lexical_weight": 0.0},
            {"node_ids": [f"s0-{i:03d}" for i in range(0, 300, 3)], "start_layer": 1},
        ):
            twins.same(question, mode="tree_traversal", **given)
    found = asyncio.run(twins.stored.as_retriever(mode="tree_traversal").aretrieve("word3x1"))
    assert found == twins.stored.as_retriever(mode="tree_traversal").retrieve("word3x1")
    ours, theirs = (each.as_retriever(mode="tree_traversal").explain("word3x1 word5x2") for each in twins)
    assert [each.sources for each in ours] == [each.sources for each in theirs]


@pytest.mark.parametrize("operator", [FilterOperator.EQ, FilterOperator.LT])
def test_a_traversal_under_a_filter_shows_nothing_of_other_chunks(tmp_path: Path, operator: FilterOperator):
    twins = TreeTwins(tmp_path, many(600))
    filters = MetadataFilters(filters=[MetadataFilter(key="topic", value=6, operator=operator)])
    options = {"mode": "tree_traversal", "filters": filters, "similarity_top_k": 40, "lexical_weight": 0.0}
    state, allowed = twins.memory.state, set()
    for name in state.chunks.ids:
        topic = state.chunks.metadata_of(name)["topic"]
        allowed |= {name} if topic == 6 or (topic < 6 and operator == FilterOperator.LT) else set()
    passing = {name for name in state.tree.summaries if state.tree.leaves(name) <= allowed}
    ours, theirs = (each.as_retriever(**options).explain("word5x1 word6x2") for each in twins)
    assert [each.node_id for each in ours] == [each.node_id for each in theirs]
    shown = {node for each in ours for path in each.paths for node, _ in path}
    assert shown <= allowed | passing
    assert shown == {node for each in theirs for path in each.paths for node, _ in path}
    page = tmp_path / "page.html"
    html = twins.stored.visualize(page, query="word5x1 word6x2", **options).read_text(encoding="utf-8")
    assert not [name for name in {*state.chunks.ids, *state.tree.summaries} - allowed - passing if name in html]


def test_a_traversal_reads_what_it_visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    twins = TreeTwins(tmp_path, many(1200))
    counts = reads(monkeypatch)
    twins.stored.as_retriever(mode="tree_traversal", beam_width=2, lexical_weight=0.0).retrieve("word3x1 word3x2")
    assert sum(counts) < 700


def test_what_needs_all_of_the_tree_is_refused_by_name(tmp_path: Path):
    index = TreeTwins(tmp_path, corpus()).stored
    for use in (lambda: index.tree, lambda: index.leaves_of("n0-00")):
        with pytest.raises(ConfigurationError, match="served from stores"):
            use()


@pytest.mark.parametrize("options", [{}, SOFT], ids=["tree", "soft"])
@pytest.mark.parametrize("filtered", [False, True])
def test_a_postprocessor_condenses_as_over_the_tree_in_memory(
    tmp_path: Path, options: dict[str, Any], filtered: bool
) -> None:
    twins, random = TreeTwins(tmp_path, many(120), **options), np.random.default_rng(1)
    filters = MetadataFilters(filters=[MetadataFilter(key="topic", value=0)]) if filtered else None
    ids = [*twins.memory.state.chunks.ids, *twins.memory.state.summaries.ids]
    seen: set[bool] = set()
    for coverage, size in ((0.2, 60), (0.5, 40), (0.5, 5), (1.0, 120)):
        chosen = [ids[place] for place in random.permutation(len(ids))[:size].tolist()]
        given = [
            NodeWithScore(node=TextNode(text="", id_=name), score=1.0 - place / 1000)
            for place, name in enumerate([*chosen[:3], "foreign", *chosen[3:]])
        ]
        ours, theirs = (
            RaptorPostprocessor(index=index, min_coverage=coverage, filters=filters).postprocess_nodes(given)
            for index in twins
        )
        assert [(each.node, each.score) for each in ours] == [(each.node, each.score) for each in theirs]
        kept = [each.node.node_id for each in ours]
        assert "foreign" in kept
        below = {leaf for name in kept if name != "foreign" for leaf in twins.memory.leaves_of(name)}
        assert not filtered or {node.metadata["topic"] for node in twins.memory.docstore.get_nodes(list(below))} <= {0}
        seen.add(len(ours) < len(given))
    assert True in seen
