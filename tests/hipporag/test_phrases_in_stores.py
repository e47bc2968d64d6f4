"""Vectors of phrases and facts, and lists of similar phrases, in stores: those of an index in memory."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import load_index_from_storage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.hipporag.test_index import picture
from tests.serving.twins import Twins, random_writes

from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, PublishedWalk, RecordedExtractor
from llama_index.hipporag.graph.passage import LISTED, LISTS, cosine_of, phrase_number
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

NAMES = [
    f"{first} {last}" for first in ("Ada", "Charles", "Mary") for last in ("Byron", "Babbage", "Somerville", "King")
]
QUESTION = "Whom did Ada Byron meet?"
EAGER = {"phrase_vectors": True, "fact_vectors": True}
SEARCHES: list[dict[str, Any]] = [
    {"synonyms": True},
    {"synonyms": True, "published": PublishedWalk(edges="published")},
    {
        "linking": "entities",
        "question_entities": {"Whom did Ada Byron meet?": ["Ada Byron", "Mary"]},
        "published": PublishedWalk(links_per_entity=2),
    },
    {"linking": "facts", "facts_top_k": 3},
]


def node(number: int, text: str = "") -> TextNode:
    return TextNode(id_=f"n{number}", text=text or f"passage {number}", metadata={"half": number % 2})


def record(key: str) -> dict[str, Any]:
    rng = np.random.default_rng(list(key.encode()))
    one, other, third = (str(name) for name in rng.choice(NAMES, 3))
    return {"entities": [third], "triples": [[one, str(rng.choice(["met", "wrote to"])), other]], "subject": []}


class PhraseTwins(Twins):
    cls = HippoRAGIndex

    def components(self) -> dict[str, Any]:
        texts = [f"passage {number}{more}" for number in range(40) for more in ("", *(f" {i}" for i in range(12)))]
        extractor = RecordedExtractor({text: record(text) for text in texts})
        return {"embed_model": HashEmbedding(dim=6), "extractor": extractor, **self.options}

    def check(self) -> None:
        storage, wanted = self.stored.storage, picture(self.memory)
        lists = run_steps(storage.records.get_all("similar"))
        near = {i: dict(zip(r["ids"], np.round(r["cosines"], 6).tolist(), strict=True)) for i, r in lists.items()}
        assert near == wanted["stored lists"]
        phrases, facts = (run_steps(storage.space(name).described()) for name in ("phrases", "facts"))
        assert sorted(row.key for row in phrases.records) == wanted["phrases"]
        assert sorted(row.key for row in facts.records) == wanted["fact vectors"]
        assert self.edges(wanted["phrases"]) == wanted["similar"]

    def edges(self, phrases: list[str]) -> dict[tuple[str, str], float]:
        """The lists as the rows of the graph have them."""
        name = {phrase_number(phrase): phrase for phrase in phrases}
        with self.stored.storage.stores.graph().reader() as reader:
            rows = reader.fetch(np.array(list(name), np.int64))
        owners, records = np.repeat(rows.nodes, np.diff(rows.indptr)).tolist(), rows.records
        found: dict[int, dict[tuple[str, str], float]] = {LISTS: {}, LISTED: {}}
        cosines = cosine_of(records["count"]).round(6).tolist()
        for owner, other, kind, cosine in zip(
            owners, records["neighbor"].tolist(), records["kind"].tolist(), cosines, strict=True
        ):
            if kind in found:
                pair = (name[owner], name[other])
                found[kind][pair if kind == LISTS else pair[::-1]] = cosine
        assert found[LISTS] == found[LISTED]
        return found[LISTS]


def ranked(index: Any, **options: Any) -> list[tuple[str, float]]:
    found = index.as_retriever(similarity_top_k=10, **options).retrieve(QUESTION)
    return [(each.node_id, pytest.approx(each.score, abs=1e-6)) for each in found]


@pytest.mark.parametrize("cap", [2, 100])
def test_vectors_and_lists_are_those_in_memory_after_random_writes(tmp_path: Path, cap: int) -> None:
    twins = PhraseTwins(
        tmp_path, [node(number) for number in range(12)], synonym_threshold=0.2, max_synonyms=cap, **EAGER
    )
    new = [node(number) for number in range(12, 40)]
    held = random_writes(twins, [node(number) for number in range(12)], new, lambda i: node(i, f"passage {i} {i}"), 12)
    half = MetadataFilters(filters=[MetadataFilter(key="half", value=1)])
    for options in SEARCHES:
        for narrowed in ({}, {"filters": half}, {"node_ids": held[::3]}):
            assert ranked(twins.stored, **options, **narrowed) == ranked(twins.memory, **options, **narrowed)
    assert ranked(twins.again(), **SEARCHES[0]) == ranked(twins.memory, **SEARCHES[0])
    for index in twins:
        index.delete_nodes(held)
    twins.check()
    assert all(not len(run_steps(twins.stored.storage.space(name).described())) for name in ("phrases", "facts"))
    assert all(not len(store.snapshot()) for store in twins.spaces.values())


def test_a_search_that_needs_vectors_makes_them_for_all_processes(tmp_path: Path) -> None:
    twins = PhraseTwins(tmp_path, [node(number) for number in range(12)], synonym_threshold=0.2)
    other = twins.again()
    assert set(twins.stored.index_struct.spaces) == {"chunks"}
    assert ranked(twins.stored, linking="facts") == ranked(twins.memory, linking="facts")
    assert set(twins.stored.index_struct.spaces) == {"chunks", "facts"}
    for options in SEARCHES:
        assert ranked(twins.stored, **options) == ranked(twins.memory, **options)
    twins.check()
    other.insert_nodes([node(12), node(13)])
    twins.memory.insert_nodes([node(12), node(13)])
    other.delete_nodes(["n1", "n4"])
    twins.memory.delete_nodes(["n1", "n4"])
    twins.check()
    assert ranked(other, **SEARCHES[0]) == ranked(twins.stored, **SEARCHES[0]) == ranked(twins.memory, **SEARCHES[0])


def test_a_model_that_fails_leaves_the_index_whole_and_the_next_search_goes_on(tmp_path: Path) -> None:
    class Failing(HashEmbedding):
        fails: bool = False

        def _get_text_embedding(self, text: str) -> list[float]:
            if self.fails and text.startswith("mary"):
                raise ValueError("no vector today")
            return super()._get_text_embedding(text)

    twins = PhraseTwins(tmp_path, [node(number) for number in range(12)], synonym_threshold=0.2)
    index = load_index_from_storage(twins.context(), **{**twins.components(), "embed_model": (model := Failing(dim=6))})
    model.fails = True
    for _ in range(2):
        with pytest.raises(ValueError, match="no vector today"):
            ranked(index, synonyms=True)
    model.fails = False
    assert ranked(index, synonyms=True) == ranked(twins.memory, synonyms=True)
    twins.stored = index
    twins.memory.as_retriever(linking="facts").retrieve(QUESTION)
    index.as_retriever(linking="facts").retrieve(QUESTION)
    twins.check()


def test_what_needs_all_of_an_index_is_refused_by_name(tmp_path: Path) -> None:
    twins = PhraseTwins(tmp_path, [node(0)])
    with pytest.raises(ConfigurationError, match=r"passage_seeds='each'.*'nearest' or 'none'"):
        twins.stored.as_retriever(**twins.cls.retriever_cls.paper("v2"))


class OtherScripts(PhraseTwins):
    """Passages that share a phrase without a Latin letter, which is empty by the published rule."""

    def components(self) -> dict[str, Any]:
        names = ["Ada Byron", "東京", "Mary King", "Кабул", "Charles Babbage"]
        triples = [[[one, "met", other]] for one, other in pairwise(names)]
        records = {f"passage {i}": {"entities": [], "triples": triple} for i, triple in enumerate(triples)}
        return {**super().components(), "extractor": RecordedExtractor(records)}


@pytest.mark.parametrize("version", ["v1", "v1_ensemble", "v1_neighbors", "v1_code"])
def test_published_searches_are_those_in_memory_with_names_in_other_scripts(tmp_path: Path, version: Any) -> None:
    twins = OtherScripts(tmp_path, [node(number) for number in range(4)], **HippoRAGIndex.paper())
    published = {**HippoRAGRetriever.paper(version), "question_entities": {QUESTION: ["Ada Byron"]}}
    assert ranked(twins.stored, **published) == ranked(twins.memory, **published)


def test_explanations_name_synonyms(tmp_path: Path) -> None:
    twins = PhraseTwins(tmp_path, [node(number) for number in range(12)], synonym_threshold=0.2, **EAGER)
    ours, theirs = (index.as_retriever(synonyms=True).explain(QUESTION) for index in twins)
    assert [each.facts for each in ours] == [each.facts for each in theirs]
    assert load_index_from_storage(twins.context(), **twins.components())
