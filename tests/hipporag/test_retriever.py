"""HippoRAGRetriever: linking, walks, scores, filters, explanations."""

import asyncio
import gc
import inspect
import weakref
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.page_data import page_data
from tests.shifted import ShiftedEmbedding

from llama_index.hipporag import (
    HippoRAGIndex,
    HippoRAGRetrievalEvent,
    HippoRAGRetriever,
    NounPhraseExtractor,
    PublishedWalk,
    RecordedExtractor,
)
from llama_index.hipporag import retriever as retriever_module
from llama_index.hipporag import state as state_module
from llama_index.hipporag.config import SearchConfig, Version
from llama_index.hipporag.graph import knowledge_graph
from llama_index.hipporag.search import graph_search
from llama_index.ragkit import FallbackEvent
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.vectors.question_scores import hybrid_nearness, result_scores

# A chain: the question names Ada; the answer stands two facts away, in a passage that shares no word with it.
CHAIN = {
    "ada": ("Ada Byron met Charles Babbage.", [["Ada Byron", "met", "Charles Babbage"]]),
    "engine": ("Babbage designed a machine.", [["Charles Babbage", "designed", "Difference Machine"]]),
    "museum": ("It stands in a museum.", [["Difference Machine", "stands in", "Science Museum"]]),
    "other": ("Bread is baked at night.", [["Bread", "is baked at", "night"]]),
    "silent": ("Nothing was read here.", []),
}


def index_of(texts: dict[str, Any] = CHAIN, **kwargs: Any) -> HippoRAGIndex:
    records = {name: {"entities": [], "triples": triples} for name, (_, triples) in texts.items()}
    nodes = [
        TextNode(
            id_=name,
            text=text,
            metadata={"tenant": "B" if name in ("engine", "other") else "A"},
            excluded_embed_metadata_keys=["tenant"],
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc {name}")},
        )
        for name, (text, _) in texts.items()
    ]
    model = kwargs.pop("embed_model", HashEmbedding(dim=256))
    return HippoRAGIndex(nodes=nodes, extractor=RecordedExtractor(records), embed_model=model, **kwargs)


@pytest.fixture(scope="module")
def index() -> HippoRAGIndex:
    return index_of(synonym_threshold=0.99)


def ids(results) -> list[str]:
    return [result.node.node_id for result in results]


WAYS: dict[str, dict[str, Any]] = {
    "text": {},
    "entities": {"linking": "entities"},
    "facts": {"linking": "facts", "facts_top_k": 1},
    "phrases alone": {"passage_seeds": "none", "published": PublishedWalk(ensemble="none", passage_nodes=False)},
    "average": {"published": PublishedWalk(ensemble="average"), "walk_weight": 0.99},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_chain_of_facts_is_followed(index: HippoRAGIndex, way: str):
    found = ids(index.as_retriever(similarity_top_k=3, **WAYS[way]).retrieve("Whom did Ada Byron meet?"))
    assert found[0] == "ada"
    assert set(found) == {"ada", "engine", "museum"}


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_floats_in_zero_to_one_and_descend(index: HippoRAGIndex, way: str):
    for question in ("Whom did Ada Byron meet?", "Nothing of this is known", "", "漢字", "x" * 5000):
        scores = [n.score for n in index.as_retriever(similarity_top_k=9, **WAYS[way]).retrieve(question)]
        assert len(scores) == 5
        assert all(type(score) is float and 0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_gives_what_single_questions_give(index: HippoRAGIndex, way: str):
    questions = ["Whom did Ada Byron meet?", "", "Where is bread baked at night?", "Science Museum", "Unknown Thing"]
    retriever = index.as_retriever(similarity_top_k=4, **WAYS[way])
    singles = [[(n.node.node_id, n.score) for n in retriever.retrieve(question)] for question in questions]
    batch = [[(n.node.node_id, n.score) for n in one] for one in retriever.retrieve_batch(questions)]
    abatch = [[(n.node.node_id, n.score) for n in one] for one in asyncio.run(retriever.aretrieve_batch(questions))]
    for one, other, third in zip(singles, batch, abatch, strict=True):
        assert [name for name, _ in one] == [name for name, _ in other] == [name for name, _ in third]
        np.testing.assert_allclose([s for _, s in one], [s for _, s in other], atol=1e-9)
    assert retriever.retrieve_batch([]) == []


def test_a_large_batch_is_answered_in_blocks(index: HippoRAGIndex, monkeypatch):
    questions = [f"{who} {i}?" for i in range(36) for who in ("Whom did Ada Byron meet", "Unknown Thing")]
    retriever = index.as_retriever(similarity_top_k=4)
    singles = [ids(retriever.retrieve(question)) for question in questions]
    alive: list[weakref.ref] = []
    most = []

    def counted(*args, **kwargs):
        gc.collect()
        most.append(sum(result() is not None for result in alive))
        found = search_many(*args, **kwargs)
        alive.extend(map(weakref.ref, found))
        return found

    search_many = retriever_module.search_many
    monkeypatch.setattr(retriever_module, "search_many", counted)
    assert [ids(found) for found in retriever.retrieve_batch(questions)] == singles
    assert len(alive) == len(questions)
    assert len(most) == 3  # 72 questions
    assert max(most) <= 1  # the last one, which the page of the index shows


def test_filtered_facts_are_parsed_once(monkeypatch):
    index = index_of()
    parsed = []
    original = state_module.facts_of
    monkeypatch.setattr(state_module, "facts_of", lambda keys: (parsed.append(1), original(keys))[1])
    chosen = list(index.docstore.docs)[:2]
    retriever = index.as_retriever(linking="facts", facts_top_k=1, node_ids=chosen)
    first = retriever.explain("Whom did Ada Byron meet?")
    assert first[0].linked
    assert retriever.explain("Whom did Ada Byron meet?") == first
    assert index.as_retriever(linking="facts", node_ids=chosen[:1]).retrieve("Whom did Ada Byron meet?")
    assert len(parsed) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_large_graph_is_walked_near_its_start_with_the_same_answer(index: HippoRAGIndex, way: str, monkeypatch):
    questions = ["Whom did Ada Byron meet?", "Where does the Difference Machine stand?"]
    retriever = HippoRAGRetriever(index, similarity_top_k=3, **WAYS[way])
    exact = retriever.retrieve_batch(questions)
    monkeypatch.setattr(knowledge_graph, "PUSH_FROM", 0)
    local = retriever.retrieve_batch(questions)
    for one, other in zip(exact, local, strict=True):
        assert ids(one) == ids(other)
        assert [r.score for r in other] == pytest.approx([r.score for r in one], abs=1e-4)


@pytest.mark.parametrize("large", [False, True])
def test_a_conjunction_finds_where_the_paths_of_two_names_meet(large: bool, monkeypatch):
    """Many work at Stanford and many on Alzheimer, one does both: told in two passages that name one each."""
    one = {f"s{i}": (f"Person {i}.", [[f"Person {i}", "works at", "Stanford"]]) for i in range(6)}
    two = {f"a{i}": (f"Scientist {i}.", [[f"Scientist {i}", "studies", "Alzheimer"]]) for i in range(6)}
    both = {"m1": ("Here.", [["Malenka", "is at", "Stanford"]]), "m2": ("There.", [["Malenka", "reads", "Alzheimer"]])}
    index = index_of({**one, **both, **two}, synonym_threshold=1.0)
    if large:
        monkeypatch.setattr(knowledge_graph, "PUSH_FROM", 0)
    question = "Who at Stanford studies Alzheimer?"
    options = {"similarity_top_k": 2, "passage_seeds": "none"}
    all_of, half = (PublishedWalk(ensemble="none", conjunction=share) for share in (1.0, 0.5))
    assert set(ids(index.as_retriever(published=all_of, **options).retrieve(question))) == {"m1", "m2"}
    scores = [n.score for n in index.as_retriever(**options, published=half).retrieve(question)]
    assert scores[0] == 1.0


def test_where_nothing_links_nearness_alone_decides_and_says_so(index: HippoRAGIndex):
    events: list[Any] = []

    class Handler(BaseEventHandler):
        def handle(self, event: Any, **kwargs: Any) -> None:
            events.append(event)

    handler = Handler()
    get_dispatcher().add_event_handler(handler)
    try:
        question = "machine designed in a museum?"
        found = index.as_retriever(similarity_top_k=5).retrieve(question)
        named = index.as_retriever().retrieve("Ada Byron")
    finally:
        get_dispatcher().event_handlers.remove(handler)
    reason = "no phrase of the question is in the graph"
    assert [event.reason for event in events if isinstance(event, FallbackEvent)] == [reason]
    assert [event.linked for event in events if isinstance(event, HippoRAGRetrievalEvent)] == [[], ["ada byron"]]
    assert named
    vector = np.array(HashEmbedding(dim=256).vector(question))
    cosines = {name: vector @ np.array(HashEmbedding(dim=256).vector(text)) for name, (text, _) in CHAIN.items()}
    near = {e.node_id: e for e in index.as_retriever(similarity_top_k=5).explain(question)}
    assert {name: e.cosine for name, e in near.items()} == pytest.approx(cosines, abs=1e-5)
    nearness = hybrid_nearness(
        *(np.array([getattr(e, part) for e in near.values()]) for part in ("cosine", "lexical")), 0.5
    )
    assert {n.node.node_id: n.score for n in found} == pytest.approx(
        dict(zip(near, result_scores(nearness, nearness).tolist(), strict=True))
    )
    assert all(e.fallback and e.walk is None for e in index.as_retriever().explain(question))
    empty = index_of({name: (text, []) for name, (text, _) in CHAIN.items()})
    assert empty.as_retriever(linking="facts").explain("Ada Byron")[0].fallback == "the graph has no phrases"
    assert len(empty.as_retriever(linking="entities").retrieve("Ada Byron")) == 5


def test_a_link_threshold_keeps_far_phrases_out(index: HippoRAGIndex):
    options = {"linking": "entities", "question_entities": {"q": ["Charles Dickens"]}}
    near = index.as_retriever(link_threshold=0.3, **options).explain("q")[0]
    assert [link.phrase for link in near.linked] == ["charles babbage"]
    far = index.as_retriever(link_threshold=0.99, **options).explain("q")[0]
    assert far.fallback == "no phrase is near to an entity of the question"
    several = index.as_retriever(published=PublishedWalk(links_per_entity=3), link_threshold=-1.0, **options).explain(
        "q"
    )[0]
    assert len(several.linked) == 3


def test_specific_phrases_start_with_more():
    texts = {f"p{i}": (f"Text {i}.", [["London", "has", f"Place {i}"]]) for i in range(4)}
    index = index_of({**texts, "x": ("Another text.", [["Rareword", "is", "something"]])}, synonym_threshold=0.99)
    by_use = {}
    for used in (True, False):
        (best, *_) = index.as_retriever(published=PublishedWalk(node_specificity=used)).explain(
            "Is it in London or Rareword?"
        )
        by_use[used] = {link.phrase: link.weight for link in best.linked}
    assert by_use[True] == {"london": 0.25, "rareword": 1.0}
    assert by_use[False] == {"london": 1.0, "rareword": 1.0}


def test_long_lists_do_not_come_first_for_their_length():
    listed = [["Ada Byron", "knew", f"Person {i}"] for i in range(12)]
    index = index_of({"list": ("A list.", listed), "short": ("Short.", [["Ada Byron", "knew", "Babbage"]])})
    walk = PublishedWalk(ensemble="none", passage_nodes=False)
    for published, first in ((walk, "list"), (replace(walk, length_normalization=1.0), "short")):
        retriever = index.as_retriever(published=published, passage_seeds="none")
        assert ids(retriever.retrieve("Ada Byron"))[0] == first


def test_the_ensemble_of_the_paper_asks_the_dense_scores_when_unsure(index: HippoRAGIndex):
    options = {"linking": "entities", "passage_seeds": "none"}
    sure = {**options, "question_entities": {"q": ["Ada Byron"]}}
    unsure = {**options, "question_entities": {"q": ["Ada Lovelace"]}}

    def told(ensemble: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        published = PublishedWalk(ensemble=ensemble, passage_nodes=False)
        explained = index.as_retriever(published=published, **kwargs).explain("q")
        return [(e.node_id, e.score, e.walk, e.cosine is not None) for e in explained]

    walk, certain = told(ensemble="none", **sure), told(ensemble="uncertainty", **sure)
    assert [row[:3] for row in certain] == [row[:3] for row in walk]
    assert [row[:2] for row in told(ensemble="uncertainty", **unsure)] == [
        row[:2] for row in told(ensemble="average", **unsure)
    ]
    assert told(ensemble="uncertainty", **unsure) != told(ensemble="none", **unsure)


def test_a_filter_hides_passages_and_what_only_they_say(index: HippoRAGIndex):
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="A")])
    alone = index_of({name: CHAIN[name] for name in ("ada", "museum", "silent")}, synonym_threshold=0.99)
    for options in WAYS.values():
        retriever = index.as_retriever(similarity_top_k=9, filters=filters, **options)
        found = retriever.retrieve("Whom did Ada Byron meet?")
        assert set(ids(found)) == {"ada", "museum", "silent"}
        shown = str(retriever.explain("Whom did Ada Byron meet?"))
        assert "designed" not in shown
        assert "bread" not in shown
        other = alone.as_retriever(similarity_top_k=9, **options).retrieve("Whom did Ada Byron meet?")
        assert [(n.node.node_id, n.score) for n in found] == [
            (n.node.node_id, pytest.approx(n.score, abs=1e-6)) for n in other
        ]
    assert ids(index.as_retriever(node_ids=["engine", "nobody"]).retrieve("Ada Byron")) == ["engine"]
    assert ids(index.as_retriever(doc_ids=["doc museum"]).retrieve("Ada Byron")) == ["museum"]
    assert index.as_retriever(doc_ids=[]).retrieve("Ada Byron") == []


def test_a_graph_of_the_published_rule_is_asked_by_that_rule():
    texts = {"a": ("Göttingen is a town.", [["Göttingen", "is a", "town"]]), "b": ("Bread.", [["Bread", "is", "food"]])}
    for explained in index_of(texts, normalizer="legacy").as_retriever().explain("Is Göttingen far?"):
        assert [link.phrase for link in explained.linked] == ["g ttingen"]


def test_an_explanation_shows_the_facts_on_the_way(index: HippoRAGIndex):
    retriever = index.as_retriever(similarity_top_k=5)
    explained = {e.node_id: e for e in retriever.explain("Whom did Ada Byron meet?")}
    assert asyncio.run(retriever.aexplain("Whom did Ada Byron meet?")) == list(explained.values())
    assert explained["museum"].facts == [
        ("ada byron", "met", "charles babbage"),
        ("charles babbage", "designed", "difference machine"),
        ("difference machine", "stands in", "science museum"),
    ]
    assert explained["museum"].active[0][0] == "difference machine"
    assert [(link.asked, link.phrase, link.cosine) for link in explained["ada"].linked] == [
        ("Ada Byron", "ada byron", 1.0)
    ]
    assert explained["other"].facts == []
    assert explained["ada"].walk == 1.0
    assert [e.score for e in explained.values()] == [n.score for n in retriever.retrieve("Whom did Ada Byron meet?")]


def test_near_phrases_are_crossed_and_shown():
    texts = {
        "a": ("First.", [["Ada Byron", "lived in", "old London town"]]),
        "b": ("Second.", [["London town", "lies on", "Thames"]]),
    }
    index = index_of(texts, synonym_threshold=0.6)
    explained = {e.node_id: e for e in index.as_retriever(synonyms=True).explain("Ada Byron")}
    assert ("old london town", "is near to", "london town") in explained["b"].facts
    apart = {e.node_id: e for e in index.as_retriever().explain("Ada Byron")}
    assert apart["b"].active == [] or apart["b"].walk < explained["b"].walk


def test_the_retriever_lists_every_option_with_its_default():
    named = inspect.signature(HippoRAGRetriever).parameters
    assert {name: named[name].default for name in vars(SearchConfig())} == vars(SearchConfig())


@pytest.mark.parametrize("ensemble", ["trust", "average"])
@pytest.mark.parametrize(("lexical_weight", "part"), [(0, "cosine"), (1, "lexical")])
def test_without_the_walk_the_order_is_that_of_nearness(
    index: HippoRAGIndex, ensemble: str, lexical_weight: float, part: str
):
    question = "Ada Byron in London"
    near = {e.node_id: getattr(e, part) for e in index.as_retriever().explain(question)}
    retriever = index.as_retriever(
        published=PublishedWalk(ensemble=ensemble), walk_weight=0, lexical_weight=lexical_weight
    )
    assert [near[name] for name in ids(retriever.retrieve(question))] == pytest.approx(
        sorted(near.values(), reverse=True)
    )


def test_an_explanation_says_how_far_the_walk_was_trusted(index: HippoRAGIndex):
    explained = index.as_retriever().explain("Whom did Ada Byron meet?")
    assert all(0 < e.trust <= 1 and not e.fallback for e in explained)
    assert explained[0].lexical > 0


# "Mistress" is a name in one passage, and a common word in many; "Snorro" is in his own passages alone.
COMMON = {
    "name": ("The Mistress met Snorro.", [["Mistress", "met", "Snorro"]]),
    "chain": ("Snorro kept a raven.", [["Snorro", "kept", "raven"]]),
    **{f"word {i}": (f"The mistress of house {i} slept.", []) for i in range(30)},
    **{f"other {i}": (f"Bread number {i} was baked.", []) for i in range(10)},
}


def test_a_name_whose_words_are_in_many_passages_is_trusted_less_in_memory_and_from_stores(tmp_path: Path):
    few = ["name", "chain", "word 0", *(f"other {i}" for i in range(10))]  # only passages that may be shown count
    found = []
    for context in (None, storage_context(f"sqlite:///{tmp_path / 'index.db'}")):
        index = index_of(COMMON, storage_context=context)
        asked = [("Mistress", {}), ("Snorro", {}), ("Mistress", {"node_ids": few}), ("Mistress", {"lexical_weight": 0})]
        retrievers = ((name, index.as_retriever(passage_seeds="none", **options)) for name, options in asked)
        found.append([each.explain(f"Whom did the {name} meet?")[0].trust for name, each in retrievers])
    common, rare, shown, dense = found[0]
    assert max(common, dense) < 0.02 < 0.2 < min(rare, shown)
    assert found[1] == pytest.approx(found[0])


def test_a_walk_that_leads_elsewhere_than_the_words_of_the_question_is_not_followed():
    """The name of the question is in one passage, all its other words in another that the graph does not reach."""
    texts = {
        "name": ("Ada Byron lived in London.", [["Ada Byron", "lived in", "London"]]),
        "words": ("invoices payable within thirty days incur reminders and penalties", []),
        "more": ("Otto Lindqvist founded the glassworks.", [["Otto Lindqvist", "founded", "the glassworks"]]),
    }
    index = index_of(texts)
    question = "Which invoices payable within thirty days incur penalties and reminders, asks Ada Byron?"
    explained = index.as_retriever(lexical_weight=1, passage_seeds="none").explain(question)
    assert explained[0].node_id == "words"
    assert explained[0].trust == 0
    assert "does not reach" in explained[0].fallback


def test_the_published_searches():
    published = index_of(**HippoRAGIndex.paper("v2"))
    entities = {"question_entities": {"Whom did Ada Byron meet?": ["Ada Byron"]}, "filter_facts": False}
    for version in get_args(Version):
        retriever = published.as_retriever(**{**HippoRAGRetriever.paper(version), **entities})
        assert ids(retriever.retrieve("Whom did Ada Byron meet?"))[0] == "ada", version
    assert HippoRAGRetriever.v1_code(published).options.damping == 0.1
    assert HippoRAGRetriever.v1(published).options.question_entities == "llm"
    assert HippoRAGRetriever.v2(published).options.filter_facts
    for versions in (HippoRAGIndex.paper, HippoRAGRetriever.paper):
        with pytest.raises(ConfigurationError, match="v3"):
            versions("v3")


def test_the_ablations_of_the_walk_reach_the_linked_phrases_and_their_neighbours():
    """A chain of passages: ada - babbage - engine - brass."""
    texts = {
        "one": ("Ada met Babbage.", [["ada", "met", "babbage"]]),
        "two": ("Babbage drew the engine.", [["babbage", "drew", "engine"]]),
        "three": ("The engine was made of brass.", [["engine", "was made of", "brass"]]),
    }
    index = index_of(texts, **HippoRAGIndex.paper())
    entities = {"question_entities": {"Where is Ada?": ["Ada"]}, "similarity_top_k": 3}
    reached = {}
    for version in ("v1_nodes", "v1_neighbors", "v1"):
        retriever = index.as_retriever(**{**HippoRAGRetriever.paper(version), "synonyms": False, **entities})
        reached[version] = {n.node.node_id for n in retriever.retrieve("Where is Ada?") if n.get_score() > 0}
    assert reached == {"v1_nodes": {"one"}, "v1_neighbors": {"one", "two"}, "v1": {"one", "two", "three"}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"linking": "guess"},
        {"link_threshold": 2},
        {"damping": 1.0},
        {"published": {"max_steps": 1}},
        {"walk_weight": 1.5},
        {"passage_seeds": "nearest", "published": PublishedWalk(passage_nodes=False)},
        {"question_entities": "magic"},
        {"similarity_top_k": 0},
        {"subject_weight": 0},
    ],
)
def test_options_out_of_range_are_refused(index: HippoRAGIndex, wrong: dict[str, Any]):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        index.as_retriever(**wrong)


@pytest.mark.parametrize("wrong", [{"links_per_entity": 0}, {"max_steps": -1}, {"edges": "all"}, {"ensemble": "sum"}])
def test_published_options_out_of_range_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        PublishedWalk(**wrong)


def test_a_page_shows_the_graph_around_a_question(index: HippoRAGIndex, tmp_path):
    fresh = index_of()
    before = fresh.visualize(tmp_path / "before.html").read_text(encoding="utf-8")
    assert "charles babbage" in before
    page = fresh.visualize(tmp_path / "after.html", query="Whom did Ada Byron meet?", similarity_top_k=2)
    html = page.read_text(encoding="utf-8")
    assert "Whom did Ada Byron meet?" in html
    assert "It stands in a museum" in html  # the page has the whole index, so that a search finds everything
    first = fresh.last_query.answer[0][0]
    shown = page_data(page)
    chain = shown["panels"][0]["items"][0]["snippet"].split(" → ")
    assert chain[0] == "ada byron"
    lit = [node for node in shown["view"]["nodes"] if node.get("lit")]
    assert f"passage {first}" in {node["id"] for node in lit}
    assert set(chain) <= {node["text"] for node in lit if node["id"].startswith("phrase ")}
    assert fresh.visualize(tmp_path / "again.html").read_text(encoding="utf-8") == html
    fresh.as_retriever().retrieve("zzz")
    assert "nothing: no phrase" in fresh.visualize(tmp_path / "dense.html").read_text(encoding="utf-8")


def test_no_way_is_drawn_to_what_a_walk_that_is_not_trusted_did_not_find(index, tmp_path, monkeypatch):
    question = "Whom did Ada Byron meet?"
    trusted = page_data(index.visualize(tmp_path / "trusted.html", query=question))
    monkeypatch.setattr(graph_search, "walk_trust", lambda *of, **given: 0.01)
    doubted = page_data(index.visualize(tmp_path / "doubted.html", query=question))
    ways = [
        [item["snippet"] for item in page["panels"][0]["items"] if " → " in item["snippet"]]
        for page in (trusted, doubted)
    ]
    assert ways[0]
    assert not ways[1]


def test_no_way_of_more_than_four_facts_is_drawn(tmp_path):
    names = ["Ada Byron", "Bert Cole", "Cora Dunn", "Dora Earl", "Ezra Fox", "Fay Gill", "Guy Hart", "Ida Ives"]
    chain = {b: (f"{a} met {b}.", [[a, "met", b]]) for a, b in pairwise(names)}
    near = "Whom did Guy Hart meet at the fair?"  # a walk begins there too
    chain["Ida Ives"] = (near, chain["Ida Ives"][1])
    question = "Whom did Ada Byron meet at the fair?"
    made = index_of(chain).visualize(tmp_path / "page.html", query=question, similarity_top_k=7)
    snippets = [item["snippet"] for item in page_data(made)["panels"][0]["items"]]
    assert near in snippets
    assert max(snippet.count(" → ") for snippet in snippets) in range(1, 5)


def test_one_passage_scores_and_is_explained():
    index = index_of({"ada": CHAIN["ada"]})
    for question in ("Ada Byron", "nothing"):
        for options in WAYS.values():
            (one,) = index.as_retriever(**options).retrieve(question)
            assert 0 < one.score <= 1
            assert index.as_retriever(**options).explain(question)[0].node_id == "ada"


def test_a_question_that_names_nothing_known_is_linked_by_its_terms():
    """In a question with capitals only names are linked, unless none of them is in the graph."""
    texts = {
        "drug": ("Chlorambucil is given.", [["chlorambucil", "is given for", "acute leukemia"]]),
        "cell": ("Its way through the cell.", [["chlorambucil", "raises", "cytosolic p53"]]),
        "other": ("Rome is old.", [["Rome", "is", "an old city"]]),
    }
    retriever = index_of(texts, synonym_threshold=0.99).as_retriever(similarity_top_k=2)
    by_terms = retriever.explain("What does May say of cytosolic p53?")
    assert {found.node_id for found in by_terms} == {"drug", "cell"}
    assert {link.phrase for found in by_terms for link in found.linked} == {"cytosolic p53"}
    by_name = retriever.explain("Does Rome know cytosolic p53?")
    assert {link.phrase for found in by_name for link in found.linked} == {"rome"}


def test_a_question_whose_terms_share_a_head_finds_each():
    nodes = [TextNode(id_="a", text="It is of the crime genres."), TextNode(id_="b", text="A tale of horror genres.")]
    asked = HippoRAGIndex(nodes=nodes, extractor=NounPhraseExtractor(terms=True), embed_model=HashEmbedding(dim=64))
    (found,) = asked.as_retriever(similarity_top_k=1).explain("which of the crime and horror genres")
    assert {(link.asked, link.phrase) for link in found.linked} == {("crime", "crime genres"), ("horror genres",) * 2}


@pytest.mark.parametrize("terms", [True, False])
def test_in_a_graph_of_names_no_term_is_linked(terms: bool):
    """There a term that reads as a phrase of the graph, such as a heading, is there by chance."""
    nodes = [
        TextNode(id_="head", text="Fair Value\nIt is what Rome pays."),
        TextNode(id_="other", text="Bread is baked."),
    ]
    asked = HippoRAGIndex(nodes=nodes, extractor=NounPhraseExtractor(terms=terms), embed_model=HashEmbedding(dim=64))
    (found,) = asked.as_retriever(similarity_top_k=1).explain("What did May say of fair value?")
    assert [link.phrase for link in found.linked] == (["fair value"] if terms else [])
    assert bool(found.fallback) is not terms


@pytest.mark.parametrize("common", [0.5, 2.0])
@pytest.mark.parametrize("question", ["Whom did Ada Byron meet?", "machine in a museum", "Who designed the engine?"])
def test_the_scale_of_cosines_changes_no_score(common: float, question: str):
    records = {name: {"entities": [], "triples": triples} for name, (_, triples) in CHAIN.items()}
    plain, shifted = (
        HippoRAGIndex(
            nodes=[TextNode(id_=name, text=text) for name, (text, _) in CHAIN.items()],
            extractor=RecordedExtractor(records),
            embed_model=ShiftedEmbedding(common=c, dim=256),
        )
        .as_retriever(similarity_top_k=9)
        .retrieve(question)
        for c in (0.0, common)
    )
    assert {r.node_id: r.score for r in plain} == pytest.approx({r.node_id: r.score for r in shifted}, abs=1e-4)
