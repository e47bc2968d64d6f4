"""Aspects and questions written by an LLM, through a real client and a scripted server."""

import asyncio
import json
import re

import pytest
from llama_index.core import Settings
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import Document, TextNode
from llama_index.llms.openai_like import OpenAILike
from tests.cases import TEXTS
from tests.llm_server import Asked, LLMServer, Reply

from llama_index.mrag import (
    MRAGIndex,
    MRAGPostprocessor,
    MRAGRetriever,
    MultiAspectGenerator,
    multi_aspect_table,
    random_baseline,
)
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import LabelledQuery, evaluate_retriever, multi_aspect_metrics
from llama_index.ragkit.llm.retry import RetryPolicy

QUICK = RetryPolicy(max_attempts=3, min_wait=0.0, max_wait=0.0)
GOOD = json.dumps({"queries": ["silk of Lyon", "engine cards", "river", "loom", "one too many"]})


def client(server: LLMServer, **kwargs) -> OpenAILike:
    settings = {"is_chat_model": True, "max_retries": 0, "timeout": 5, "reuse_client": False, **kwargs}
    return OpenAILike(model="m", api_base=server.url, api_key="none", **settings)


def script(*replies: Reply | str):
    left = list(replies)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


def index() -> MRAGIndex:
    return MRAGIndex([TextNode(text=text, id_=f"n{i}") for i, text in enumerate(TEXTS)])


def aspects_of(retriever, question: str = "What of the looms?") -> set[str]:
    return {aspect for why in retriever.explain(question) for aspect in why.aspects}


@pytest.mark.parametrize("how", ["sync", "async"])
def test_queries_of_the_llm_vote_beside_the_question(how):
    with LLMServer(script(f"<think>hm</think>\n```json\n{GOOD}\n```")) as server:
        retriever = index().as_retriever(similarity_top_k=6, aspects="llm", llm=client(server))
        ask = retriever.retrieve if how == "sync" else lambda q: asyncio.run(retriever.aretrieve(q))
        assert len(ask("What of the looms?")) == 6
        assert len(server.asked) == 1
        assert "What of the looms?" in server.asked[0].prompt
        assert aspects_of(retriever) == {"What of the looms?", "silk of Lyon", "engine cards", "river", "loom"}


def test_fusion_of_the_paper_asks_the_queries_alone_and_fuses_their_rankings():
    with LLMServer(script(GOOD)) as server:
        built = index()
        retriever = built.as_retriever(similarity_top_k=6, llm=client(server), **MRAGRetriever.paper("fusion"))
        fused = {n.node.node_id: n.get_score() for n in retriever.retrieve("What of the looms?")}
        assert aspects_of(retriever) == {"silk of Lyon", "engine cards", "river", "loom"}
    places: dict[str, list[int]] = {}
    for query in ("silk of Lyon", "engine cards", "river", "loom"):
        alone = built.as_retriever(similarity_top_k=6, **MRAGRetriever.paper()).retrieve(query)
        scores = [n.get_score() for n in alone]
        for n in alone:
            places.setdefault(n.node.node_id, []).append(sum(score > n.get_score() for score in scores))
    slow = {name: sum(60 / (60 + place) for place in found) / 4 for name, found in places.items()}
    assert fused == pytest.approx(slow)


def test_fusion_without_the_llm_asks_the_sentences():
    with LLMServer(script(Reply("never JSON"))) as server:
        keywords = MRAGRetriever.paper("fusion")
        retriever = index().as_retriever(similarity_top_k=6, llm=client(server), retry=QUICK, **keywords)
        assert aspects_of(retriever, "What of the looms? And the river?") == {"What of the looms?", "And the river?"}


@pytest.mark.parametrize(
    "bad",
    [
        Reply("no JSON at all"),
        Reply('{"queries": []}'),
        Reply("slow down", status=429, headers={"retry-after": "0"}),
        Reply("broken", status=500),
    ],
)
def test_what_fails_is_asked_again(bad):
    with LLMServer(script(bad, bad, GOOD)) as server:
        retriever = index().as_retriever(similarity_top_k=6, aspects="llm", llm=client(server), retry=QUICK)
        assert "silk of Lyon" in aspects_of(retriever)
        assert len(server.asked) == 3


@pytest.mark.parametrize("bad", [Reply("never JSON"), Reply("down", status=503), Reply(GOOD, delay=3)])
def test_retrieval_goes_on_without_the_llm(bad, caplog):
    with LLMServer(script(bad)) as server:
        retriever = index().as_retriever(
            similarity_top_k=6, aspects="llm", llm=client(server, timeout=0.3), retry=QUICK
        )
        assert len(retriever.retrieve("What of the looms?")) == 6
        assert "returned no queries" in caplog.text
        assert aspects_of(retriever) == set()  # one aspect, the question: nearness without votes


def test_duplicate_keys_are_merged():
    with LLMServer(script('{"queries": ["silk"], "queries": ["cards"]}')) as server:
        retriever = index().as_retriever(similarity_top_k=6, aspects="llm", llm=client(server))
        assert {"silk", "cards"} & aspects_of(retriever)


def test_the_llm_of_the_index_and_a_prompt_of_the_users_are_used():
    with LLMServer(script(GOOD)) as server:
        Settings.llm = client(server)
        retriever = index().as_retriever(aspects="llm")
        retriever.update_prompts({"aspects": PromptTemplate("MINE {question} {num_queries}")})
        retriever.retrieve("looms")
        assert server.asked[0].prompt.startswith("MINE")
        with pytest.raises(ConfigurationError, match="aspects"):
            retriever.update_prompts({"other": PromptTemplate("{question}")})


def test_the_postprocessor_asks_too():
    with LLMServer(script(GOOD)) as server:
        Settings.llm = client(server)
        built = index()
        nodes = built.as_retriever().retrieve("x")
        assert len(MRAGPostprocessor(index=built, aspects="llm").postprocess_nodes(nodes, query_str="looms")) == len(
            nodes
        )
        assert len(server.asked) == 1


# -- the generator ----------------------------------------------------------------------------------


def documents() -> list[Document]:
    return [
        Document(text=f"Facts of {c}{i}.", id_=f"{c}{i}", metadata={"category": c, "title": f"Title {c}{i}"})
        for c in "abcd"
        for i in range(3)
    ]


def story(asked: Asked) -> str:
    titles = re.findall(r"Title \w+", asked.prompt)
    return "".join(f"Once upon a time {i}. " for i in range(8)) + ", ".join(dict.fromkeys(titles)) + "."


@pytest.mark.parametrize("how", ["sync", "async"])
def test_questions_hold_one_document_of_each_category(how):
    with LLMServer(story) as server:
        generator = MultiAspectGenerator(client(server), retry=QUICK)
        if how == "sync":
            made = generator.generate_queries(documents(), aspects=(1, 3), per_count=4, seed=5)
        else:
            made = asyncio.run(generator.agenerate_queries(documents(), aspects=(1, 3), per_count=4, seed=5))
    assert [len(query.gold) for query in made.queries] == [1] * 4 + [3] * 4
    assert made.failures == {}
    assert made.queries[0].id == "n01-000"
    for query in made.queries:
        assert len({gold[0] for gold in query.gold}) == len(query.gold)
        assert all(f"Title {gold}" in query.question for gold in query.gold)


def test_a_story_without_a_title_is_asked_for_again_and_at_last_recorded():
    calls: dict[str, int] = {}

    def forgetful(asked: Asked) -> str:
        title = re.findall(r"Title \w+", asked.prompt)[0]  # the second prompt also says what was wrong
        calls[title] = calls.get(title, 0) + 1
        return story(asked) if calls[title] % 3 == 2 and title.startswith("Title a") else "Too short."

    with LLMServer(forgetful) as server:
        made = MultiAspectGenerator(client(server), retry=QUICK).generate_queries(
            documents(), aspects=(1,), per_count=12
        )
    assert {query.gold[0][0] for query in made.queries} == {"a"}
    assert len(made.queries) + len(made.failures) == 12
    assert all("characters" in reason for reason in made.failures.values())


def test_the_same_seed_draws_the_same_documents_in_any_order():
    with LLMServer(story) as server:
        generator = MultiAspectGenerator(client(server), retry=QUICK)
        one = generator.generate_queries(documents(), aspects=(2,), per_count=3)
        other = generator.generate_queries(documents()[::-1], aspects=(2,), per_count=3)
    assert [q.gold for q in one.queries] == [q.gold for q in other.queries]


@pytest.mark.parametrize(("change", "named"), [({"aspects": (5,)}, "4"), ({"aspects": (0,)}, "1 to 4")])
def test_more_aspects_than_categories_are_refused(change, named):
    with pytest.raises(ConfigurationError, match=named):
        MultiAspectGenerator().generate_queries(documents(), **change)


def test_documents_need_a_category_and_a_title():
    with pytest.raises(ConfigurationError, match="title"):
        MultiAspectGenerator().generate_queries([Document(text="x", metadata={"category": "a"})], aspects=(1,))


def test_documents_are_written_by_category():
    def answer(asked: Asked) -> str:
        if '"topics"' in asked.prompt:
            return json.dumps({"topics": ["One", "Two", "Two", "Three"]}) if "lamps" in asked.prompt else "nothing"
        return "".join(f"A long enough article about something {i}. " for i in range(5))

    with LLMServer(answer) as server:
        made = MultiAspectGenerator(client(server), retry=QUICK).generate_documents(["lamps", "ships"], per_category=2)
    assert [(d.metadata["category"], d.metadata["title"]) for d in made] == [("lamps", "One"), ("lamps", "Two")]
    assert len({d.id_ for d in made}) == 2


# -- measures ---------------------------------------------------------------------------------------


def test_chance_is_what_random_rankings_score_on_average():
    import random

    category_of = {f"{c}{i}": c for c, size in (("a", 6), ("b", 3), ("c", 1)) for i in range(size)}
    queries = [LabelledQuery("q", "?", gold=("a1", "b0", "c0"))]
    chance = random_baseline(queries, category_of)
    metrics = multi_aspect_metrics(category_of)
    draw, names = random.Random(0), sorted(category_of)
    rankings = [draw.sample(names, len(names)) for _ in range(20000)]
    for name, metric in metrics.items():
        mean = sum(metric(ranking, queries[0].gold) for ranking in rankings) / len(rankings)
        assert chance.scores[name][0] == pytest.approx(mean, abs=0.01)


def test_the_table_has_chance_in_its_last_row():
    built = index()
    category_of = {f"n{i}": "ab"[i % 2] for i in range(6)}
    queries = [LabelledQuery("q", f"{TEXTS[0]} {TEXTS[3]}", gold=("n0", "n3"))]
    scored = evaluate_retriever(built.as_retriever(), queries, name="mrag", metrics=multi_aspect_metrics(category_of))
    table = multi_aspect_table([scored], queries, category_of)
    assert [line.split("|")[1].strip() for line in table.splitlines()] == ["system", "---", "mrag", "random"]
    with pytest.raises(ConfigurationError, match="category"):
        random_baseline([LabelledQuery("q", "?", gold=("unknown",))], category_of)
