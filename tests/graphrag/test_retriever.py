"""Searches: local, global, with ratings, with relevance tests, with follow-up questions, and their explanations."""

import asyncio
from typing import Any

import pytest
from llama_index.core import QueryBundle, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode
from tests.graphrag.scripted import LIGHTS, answer, corpus, fenced, nodes
from tests.graphrag.test_index import SMALL, offline, with_llm
from tests.shifted import ShiftedEmbedding
from tests.together.test_observing import recorded

from llama_index.graphrag import (
    GraphRAGIndex,
    GraphRAGPostprocessor,
    GraphRAGQueryEngine,
    PublishedOptions,
    ReportMapReduce,
    ReportWriter,
)
from llama_index.ragkit import FallbackEvent, HybridRetriever, RetryPolicy
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.ragkit.text.tokens import count_tokens

QUESTION = "Where did Bede Orr see it?"
PRIMER = "Answer the question from the numbered passages"
ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)


def ids(found: list[NodeWithScore]) -> list[str]:
    return [result.node.node_id for result in found]


def test_chunks_about_the_entities_of_a_question_come_first() -> None:
    retriever = offline(corpus()).as_retriever(similarity_top_k=2, seed_chunks=0, published=PublishedOptions(spread=0))
    assert set(ids(retriever.retrieve("Which things concern Bede Orr?"))) == {"lights-0", "lights-1"}
    why = retriever.explain("Which things concern Bede Orr?")[0]
    assert [(link.entity, link.kind, link.asked) for link in why.linked] == [("bede orr", "name", "Bede Orr")]
    assert any("Bede Orr" in statement for statement in why.statements)
    assert why.share == 1
    assert 0 < why.trust <= 1
    assert why.lexical > 0
    assert why.fallback == ""


def test_a_chunk_that_shares_no_word_with_the_question_is_found_through_the_graph() -> None:
    chain = [
        "Ada Byron met Charles Babbage.",
        "Charles Babbage designed the Difference Machine.",
        *(f"Number {i} is {word} here." for i, word in enumerate(["bread", "silk", "salt", "rain", "rope", "tin"])),
    ]
    index = offline(nodes(chain, "chain"))
    ranked = {
        weight: ids(
            index.as_retriever(similarity_top_k=8, structure_weight=weight).retrieve("Whom did Ada Byron meet?")
        )
        for weight in (0, 4)
    }
    assert ranked[4][:2] == ["chain-0", "chain-1"]
    assert ranked[0].index("chain-1") >= ranked[4].index("chain-1")


def test_without_structure_the_ranking_is_that_of_nearness() -> None:
    index = offline(corpus())
    basic = index.as_retriever(mode="basic", similarity_top_k=6).retrieve(QUESTION)
    plain = index.as_retriever(structure_weight=0, similarity_top_k=6).retrieve(QUESTION)
    assert [(r.node_id, r.score) for r in plain] == [(r.node_id, r.score) for r in basic]
    hybrid = HybridRetriever(corpus(), HashEmbedding(), similarity_top_k=6).retrieve(QUESTION)
    assert [(r.node_id, r.score) for r in basic] == [(r.node_id, r.score) for r in hybrid]
    dense = VectorStoreIndex(corpus(), embed_model=HashEmbedding()).as_retriever(similarity_top_k=6).retrieve(QUESTION)
    assert ids(index.as_retriever(mode="basic", lexical_weight=0, similarity_top_k=6).retrieve(QUESTION)) == ids(dense)


MODES = [
    {},
    {"context": "mixed", "token_budget": 200},
    {"entities_top_k": 3, "seed_chunks": 0},
    {"mode": "basic"},
    {"mode": "global", "token_budget": 60},
    {"mode": "global", "published": PublishedOptions(relevance_budget=3)},
]


@pytest.mark.parametrize("common", [0.5, 2.0])
@pytest.mark.parametrize("options", MODES, ids=str)
def test_the_scale_of_cosines_changes_no_score(common: float, options: dict[str, Any]) -> None:
    plain, shifted = (
        offline(corpus(), embed_model=ShiftedEmbedding(common=c, dim=256), llm=ScriptedLLM(answer), entity_vectors=True)
        .as_retriever(similarity_top_k=9, **options)
        .retrieve("Where did Bede Orr see silk?")
        for c in (0.0, common)
    )
    assert ids(plain) == ids(shifted)
    assert [r.score for r in plain] == pytest.approx([r.score for r in shifted], abs=1e-4)


def test_links_by_vectors_need_vectors_of_entities() -> None:
    with pytest.raises(ConfigurationError, match="entity_vectors"):
        offline(corpus()).as_retriever(entities_top_k=3)
    index = offline(corpus(), entity_vectors=True)
    question = "the guild of velsin weavers"  # names no entity as a whole

    def links(**options: Any) -> list[tuple[str, str]]:
        why = index.as_retriever(seed_chunks=0, **options).explain(question)
        return [(link.entity, link.kind) for link in why[0].linked]

    assert ("velsin guild", "vector") not in links()
    assert ("velsin guild", "vector") in links(entities_top_k=3)
    assert len(links(entities_top_k=1)) == len(links()) + 1
    # The 100th nearest name has the weight 0, and the nearest 1.
    assert links(entities_top_k=3, link_threshold=1) == links(entities_top_k=1)


def test_a_question_without_an_entity_is_a_similarity_search_and_says_so() -> None:
    index = offline([TextNode(id_="n", text="no names here at all"), TextNode(id_="m", text="nor here")])
    for mode in ("local", "global", "drift"):
        why = index.as_retriever(mode=mode).explain("what is it?")
        assert {each.node_id for each in why} == {"n", "m"}
        assert all(each.fallback for each in why)


def test_a_mixed_context_keeps_to_its_budget_and_names_its_sources() -> None:
    index = offline(corpus())
    found = index.as_retriever(context="mixed", token_budget=120).retrieve(QUESTION)
    assert sum(count_tokens(result.text) for result in found) <= 120
    kinds = [result.node.node_id in index.docstore.docs for result in found]
    assert set(kinds) == {True, False}
    for result in found:
        if result.node.node_id not in index.docstore.docs:
            assert result.node.child_nodes
            assert {child.node_id for child in result.node.child_nodes} <= set(index.docstore.docs)


def test_a_cut_has_each_entity_once_and_fits_the_budget() -> None:
    index = offline(corpus(), report_tokens=12, context_tokens=60)
    for budget in (40, 120, 1000):
        retriever = index.as_retriever(mode="global", token_budget=budget)
        found = retriever.retrieve(QUESTION)
        assert sum(count_tokens(result.text) for result in found) <= budget
        cut = index.last_query.found.cut
        rows = [row for community in cut.communities for row in index.communities.members(community).tolist()]
        assert len(rows) == len(set(rows))
    level = index.as_retriever(mode="global", level=0)
    level.retrieve(QUESTION)
    assert sorted(index.last_query.found.cut.communities) == index.communities.roots.tolist()


def test_report_nodes_are_marked_and_point_at_their_sources() -> None:
    index = offline([*nodes(LIGHTS, "lights", file_name="lights.txt")])
    (result,) = index.as_retriever(mode="global").retrieve(QUESTION)
    assert result.node.metadata["graphrag_report"] == "statements"
    assert result.node.metadata["file_name"] == "lights.txt"
    assert {child.node_id for child in result.node.child_nodes} == {"lights-0", "lights-1", "lights-2"}
    assert "graphrag" not in result.node.get_content(metadata_mode="llm")


def test_ratings_open_communities_from_the_roots_down() -> None:
    index, llm = with_llm(corpus(), reports="deferred")
    llm.prompts.clear()
    found = index.as_retriever(mode="global", rating_threshold=1).retrieve(QUESTION)
    assert all("Rate each numbered report" in prompt for prompt in llm.prompts)
    cut = index.last_query.found.cut
    assert [index.communities.is_leaf[community] for community in cut.communities] == [True] * len(cut.communities)
    assert found
    assert index.last_query.found.calls == len(llm.prompts)


def test_relevant_chunks_are_those_that_the_model_finds_relevant() -> None:
    index, llm = with_llm(corpus())
    llm.prompts.clear()
    found = index.as_retriever(mode="global", published=PublishedOptions(relevance_budget=6)).retrieve(
        "Who kept the lamp?"
    )
    assert set(ids(found)) == {"lights-0", "lights-2"}
    assert len(llm.prompts) == 6
    few = index.as_retriever(mode="global", published=PublishedOptions(relevance_budget=1))
    llm.prompts.clear()
    few.retrieve("Who kept the lamp?")
    assert len(llm.prompts) == 1


def test_follow_up_questions_lead_to_the_chunks_that_the_answers_rest_on() -> None:
    index, llm = with_llm(corpus(), reports="deferred")
    llm.prompts.clear()
    retriever = index.as_retriever(mode="drift", max_calls=5)
    found = retriever.retrieve(QUESTION)
    assert found
    assert len(llm.prompts) <= 5
    answers = retriever.explain(QUESTION)[0].answers
    assert [given.question for given in answers][:2] == [QUESTION, "Who wrote?"]
    assert {node for given in answers for node in given.nodes} == set(ids(found))
    assert all(0 <= result.get_score() <= 1 for result in found)


def test_the_first_answers_are_made_of_parts_of_the_nearest_reports() -> None:
    index, llm = with_llm(corpus(), reports="deferred")

    def primers(**options: Any) -> list[str]:
        llm.prompts.clear()
        index.as_retriever(mode="drift", rounds=0, **options).retrieve(QUESTION)
        return [
            prompt for prompt in llm.prompts if "as well as they allow" in prompt and "follow-up" not in prompt[:40]
        ]

    communities = len(index.communities)
    assert communities > 1
    (whole,) = primers()
    parts = primers(published=PublishedOptions(primer_calls=5))
    assert len(parts) == min(5, communities)
    passages = [text for part in parts for text in fenced(part, "passage")]
    assert sorted(passages) == sorted(fenced(whole, "passage"))
    assert len(primers(published=PublishedOptions(primer_calls=5), max_calls=3)) == 1
    assert index.last_query is not None
    assert index.last_query.found.calls == 2


def test_a_first_answer_that_fails_fails_alone() -> None:
    index, llm = with_llm(corpus(), reports="deferred")
    good, failing = llm._script, ["?"]
    llm._script = lambda prompt: failing.pop() if PRIMER in prompt and failing else good(prompt)
    why = index.as_retriever(mode="drift", rounds=0, published=PublishedOptions(primer_calls=5), retry=ONCE).explain(
        QUESTION
    )
    assert why[0].answers
    assert all("first answers failed" in each.fallback for each in why)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "drift"},
        {"mode": "global", "published": PublishedOptions(relevance_budget=3)},
        {"mode": "global", "rating_threshold": 1},
    ],
)
def test_a_model_that_fails_costs_no_answer(options: dict[str, Any]) -> None:
    index, _ = with_llm(corpus(), reports="deferred")
    retriever = index.as_retriever(llm=ScriptedLLM(""), retry=ONCE, **options)
    explained = retriever.explain(QUESTION)
    found = retriever.retrieve(QUESTION)
    if options != {"mode": "global", "rating_threshold": 1}:
        assert found
    assert all("No usable reply" in why.fallback for why in explained)


def test_asynchronous_searches_find_the_same() -> None:
    for options in (
        {},
        {"mode": "global"},
        {"mode": "drift"},
        {"mode": "global", "published": PublishedOptions(relevance_budget=4)},
    ):
        one, other = (with_llm(corpus())[0].as_retriever(**options) for _ in range(2))
        found = [(r.node.node_id, r.get_score()) for r in one.retrieve(QUESTION)]
        awaited = [(r.node.node_id, r.get_score()) for r in asyncio.run(other.aretrieve(QUESTION))]
        assert awaited == found


def test_a_global_answer_is_made_of_points_with_sources() -> None:
    index, _ = with_llm(corpus(), reports="deferred", report_tokens=800, context_tokens=4000)
    response = GraphRAGQueryEngine.over(index).query("What happened?")
    assert str(response) == "The answer."
    made = response.metadata["graphrag"]
    assert made.calls == 2
    assert all("Byron" in point.text for point in made.points)
    assert {node for point in made.points for node in point.nodes} <= set(index.docstore.docs)
    assert made.without_score > 0
    awaited = asyncio.run(GraphRAGQueryEngine.over(index).aquery("What happened?"))
    assert awaited.metadata["graphrag"].points == made.points


def test_without_a_model_a_global_answer_says_that_no_map_ran() -> None:
    index = offline(corpus(), llm=MockLLM())
    text = str(GraphRAGQueryEngine.over(index).query("What happened?"))
    assert text.startswith("No language model is set")
    assert "Ada Byron" in text


def test_a_batch_that_fails_fails_alone_and_the_order_of_batches_decides_nothing() -> None:
    def script(prompt: str) -> str:
        return "nothing to read" if "Velsin" in prompt else answer(prompt)

    synthesizer = ReportMapReduce(ScriptedLLM(script), batch_tokens=1, retry=ONCE)
    given = [NodeWithScore(node=node, score=1.0) for node in corpus()]
    response = synthesizer.synthesize("What happened?", given)
    made = response.metadata["graphrag"]
    assert len(made.failed) == 3
    assert {node for point in made.points for node in point.nodes} == {"lights-0", "lights-2"}
    turned = synthesizer.synthesize("What happened?", given[::-1]).metadata["graphrag"]
    assert turned.points == made.points


@pytest.mark.parametrize("reply", ["?", "It was Ada Byron."])
def test_where_no_batch_gives_points_the_answer_is_made_of_the_reports_and_says_so(reply: str) -> None:
    llm = ScriptedLLM(lambda prompt: "?" if "List what" in prompt else reply)
    given = [NodeWithScore(node=node, score=1.0) for node in corpus()]
    with recorded() as (events, _):
        response = ReportMapReduce(llm, batch_tokens=1, retry=ONCE).synthesize("Who?", given)
    made = response.metadata["graphrag"]
    assert len(made.failed) == len(given) == made.calls - 1
    (told,) = (event for event in events if isinstance(event, FallbackEvent))
    assert (told.method, told.question) == ("graphrag", "Who?")
    assert all(reason in told.reason for reason in made.failed.values())
    assert str(response).startswith("The map step failed, so this answer comes from the reports themselves.")
    expected = [node.text for node in corpus()] if reply == "?" else [reply]
    assert all(text in str(response) for text in expected)


def test_where_the_answer_fails_it_lists_the_points_and_says_so() -> None:
    llm = ScriptedLLM(lambda prompt: answer(prompt) if "List what" in prompt else "")
    given = [NodeWithScore(node=node, score=1.0) for node in corpus()]
    response = ReportMapReduce(llm, retry=ONCE).synthesize("Who?", given)
    made = response.metadata["graphrag"]
    assert "The reply is empty" in made.unwritten
    assert str(response).startswith("There is no answer:")
    assert all(f"- ({point.score:.0f}) {point.text}" in str(response) for point in made.points)
    assert made.points


def test_where_some_batches_fail_and_the_others_say_nothing_the_answer_is_made_of_those() -> None:
    first = corpus()[0].text
    llm = ScriptedLLM(lambda p: ("?" if first in p else '{"points": []}') if "List what" in p else "It was Ada Byron.")
    given = [NodeWithScore(node=node, score=1.0) for node in corpus()]
    response = ReportMapReduce(llm, batch_tokens=1, retry=ONCE).synthesize("Who?", given)
    assert str(response).endswith("so this answer comes from the reports themselves. It was Ada Byron.")
    assert first in llm.prompts[-1]
    assert corpus()[1].text not in llm.prompts[-1]


def test_the_synthesizer_serves_any_query_engine() -> None:
    engine = VectorStoreIndex(corpus(), embed_model=HashEmbedding()).as_query_engine(
        response_synthesizer=ReportMapReduce(ScriptedLLM(answer)), similarity_top_k=3
    )
    assert str(engine.query("Who is Ada Byron?"))
    with pytest.raises(ConfigurationError, match="batch_tokens"):
        ReportMapReduce(ScriptedLLM(answer), batch_tokens=0)
    with pytest.raises(ConfigurationError, match="no prompt 'extract'"):
        ReportMapReduce(ScriptedLLM(answer), prompts={"extract": None})  # type: ignore[dict-item]


def test_a_postprocessor_adds_what_is_said_elsewhere_of_the_same_entities() -> None:
    index = offline(corpus())
    given = [NodeWithScore(node=corpus()[0], score=0.5)]
    processed = GraphRAGPostprocessor(index).postprocess_nodes(given, QueryBundle("Who?"))
    assert set(ids(processed)) == {"lights-0", "lights-1", "lights-2"}
    assert ids(GraphRAGPostprocessor(index, max_added=0).postprocess_nodes(given)) == ["lights-0"]
    assert ids(processed)[0] == "lights-0"


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "nowhere"},
        {"context": "all"},
        {"link_threshold": 2},
        {"published": {"report_share": 0.1}},
        {"level": -1},
        {"rating_threshold": 6},
        {"max_calls": 1},
    ],
    ids=str,
)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        offline(corpus(), **SMALL).as_retriever(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"report_share": 0.7, "statement_share": 0.7},
        {"primer_calls": 0},
        {"feedback": -1},
        {"spread": 1.0},
        {"relevance_budget": 0},
    ],
)
def test_wrong_published_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        PublishedOptions(**wrong)


def test_a_question_about_the_whole_makes_no_more_calls_and_reads_no_more_than_estimated() -> None:
    def useful(prompt: str) -> str:  # every report has a point
        return answer(prompt).replace('"score": 0', '"score": 70')

    llm = ScriptedLLM(useful)
    given = {"summarizer": ReportWriter(min_in_text=0), **SMALL}
    index = GraphRAGIndex(corpus(), llm=llm, embed_model=HashEmbedding(), **given)
    for _ in range(2):  # the second time, the reports are there
        cost = index.estimate_question(QUESTION)
        llm.prompts.clear()
        GraphRAGQueryEngine.over(index).query(QUESTION)
        written = sum("Write a report about a group" in prompt for prompt in llm.prompts)
        assert (len(llm.prompts) - written, written) == (cost.calls, cost.report_calls)
        assert 0 < sum(map(count_tokens, llm.prompts)) <= cost.tokens
    assert cost.report_calls == 0
