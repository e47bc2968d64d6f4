"""PG-RAG over a real client and a scripted server: replies of every kind, failures, verification, key points."""

import asyncio
import json
import re
from itertools import cycle

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import Asked, LLMServer, Reply

from llama_index.pgrag import MindMapExtractor, PGRAGIndex, TwoStageMindMapExtractor
from llama_index.pgrag.evaluation import aquest_eval, quest_eval
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

QUICK = RetryPolicy(max_attempts=2, min_wait=0.0, max_wait=0.0)
TEXT = "The lamp of Marl Head burned whale oil. Ada Byron lit it in 1871. The tower is 40 metres tall."


def client(url: str, timeout: float = 10) -> OpenAILike:
    return OpenAILike(
        model="m", api_base=url, api_key="none", is_chat_model=True, max_retries=0, timeout=timeout, reuse_client=False
    )


def kind(asked: Asked) -> str:
    return "points" if "Key points:" in asked.prompt else "map"


def body(asked: Asked) -> str:
    return re.search(r"<text-\w+ number=\"1\">\n(.*?)\n</", asked.prompt, re.DOTALL)[1]


def reply_of(statements: str | list[str], topic: str = "The lamp of Marl Head") -> str:
    """A reply that puts each statement under its first word."""
    lines = statements
    if isinstance(lines, str):
        lines = [f"{sentence.strip()}." for sentence in lines.split(".") if sentence.strip()]
    tree = ", ".join(f"{json.dumps(line.split()[0])}: {json.dumps(line)}" for line in lines)
    return f'{{"topic": {json.dumps(topic)}, "statements": {json.dumps(lines)}, "mind_map": {{{tree}}}}}'


def answer(asked: Asked) -> str:
    """A good model: statements are the sentences."""
    if kind(asked) == "points":
        return '{"key_points": ["The lamp burned whale oil.", "Ada Byron lit the lamp."]}'
    return f"```json\n{reply_of(body(asked))}\n```"


def extract(server: LLMServer, text: str = TEXT, **kwargs):
    extractor = MindMapExtractor(llm=client(server.url), retry=QUICK, embed_model=HashEmbedding(), **kwargs)
    return run_steps(extractor.extract([TextNode(id_="n", text=text)]))[0]


def with_map(reply: str):
    return lambda asked: reply if kind(asked) == "map" else answer(asked)


def test_one_call_makes_a_verified_mind_map():
    with LLMServer(answer) as server:
        found = extract(server)
        assert len(server.asked) == 1
    assert found.record["topic"] == "The lamp of Marl Head"
    assert ["Ada", "Ada Byron lit it in 1871."] in found.record["paths"]
    assert found.record["verified"] is True
    assert found.record["checks"][0]["rouge_l"] == pytest.approx(1.0)


def test_statements_that_fail_are_asked_for_again_with_what_is_wrong_and_the_best_are_kept_and_flagged(caplog):
    replies = iter([reply_of(["Ada."]), reply_of(["The lamp burned oil."]), reply_of(["The tower."])])
    with LLMServer(lambda asked: next(replies)) as server:
        index = PGRAGIndex(
            nodes=[TextNode(id_="n", text=TEXT)],
            extractor=MindMapExtractor(llm=client(server.url), retry=QUICK, min_rouge_l=0.75),
            embed_model=HashEmbedding(),
        )
        assert len(server.asked) == 3
        first, second, _ = (asked.prompt for asked in server.asked)
        assert second.startswith(first)
        assert "An earlier answer could not be used: The statements do not keep to the wording" in second
        assert "ROUGE-L is 0.10, and at least 0.75 is needed" in second
        assert '"Ada."' not in second
    assert len(index.graph.facts) == 1
    assert index.unverified() == ["n"]
    assert "unverified()" in caplog.text
    assert index.as_retriever().retrieve("lamp")


def test_a_regeneration_that_passes_ends_the_asking_and_verification_can_be_off():
    replies = iter([reply_of(["Ada."]), reply_of(TEXT)])
    with LLMServer(lambda asked: next(replies)) as server:
        assert extract(server).record["verified"] is True
        assert len(server.asked) == 2
    with LLMServer(lambda asked: reply_of(["Ada."])) as server:
        record = extract(server, verify=False).record
        assert len(server.asked) == 1
        assert "verified" not in record


def test_facts_that_the_text_does_not_hold_are_dropped_and_counted():
    with LLMServer(lambda asked: reply_of([*TEXT.split(". "), "Cats purr loudly."])) as server:
        record = extract(server).record
        assert record["dropped"] == {"facts": 1}
        assert "purr" not in str(record["paths"])
        assert "purr" in str(extract(server, min_in_text=0).record["paths"])


def test_a_long_text_is_read_in_parts_under_one_topic():
    text = " ".join(f"Keeper number {i} lit the lamp of Marl Head in the year {1800 + i}." for i in range(40))
    with LLMServer(answer) as server:
        record = extract(server, text, part_tokens=100).record
        prompts = [asked.prompt for asked in server.asked]
    assert len(prompts) == len(record["checks"]) > 3
    assert [prompt.count("Known topic: (none)") == 2 for prompt in prompts] == [True, *[False] * (len(prompts) - 1)]
    assert "Known topic: The lamp of Marl Head" in prompts[1]


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ('{"T": {"a": "1", "a": "2"}}', 2),
        ('Sure! {"T": {"a": ["1", "2", {"b": "3"}]}} Anything else?', 3),
        ('{"topic": "T", "One": {"a": "1"}, "Two": {"b": "2"}}', 2),
        ('<think>{"no": "1"}</think>{"T": {"a": "unknown", "b": "2"}}', 1),
        ("{'T': {'a': '1', 'b': '2',}}", 2),
        ('{"T": {"a": "1", "b": "2", "c": {"d": "3', 2),
    ],
)
def test_maps_of_every_shape_are_read(reply: str, facts: int):
    with LLMServer(with_map(reply)) as server:
        assert len(extract(server, min_in_text=0).record["paths"]) == facts


@pytest.mark.parametrize("reply", ["no JSON", "{}", '{"T": {"a": "none"', Reply("no", status=500)])
def test_a_map_that_cannot_be_had_makes_a_failed_node_that_is_bought_later(reply):
    broken = [True]

    def script(asked: Asked):
        return reply if broken[0] and kind(asked) == "map" else answer(asked)

    with LLMServer(script) as server:
        index = PGRAGIndex.from_documents(
            [Document(text=TEXT, id_="D")],
            extractor=MindMapExtractor(llm=client(server.url), retry=QUICK),
            embed_model=HashEmbedding(),
            transformations=[SentenceSplitter()],
            fallback=None,
        )
        assert len(index.graph.facts) == 0
        # Nothing is found by facts, so the node itself is the answer.
        assert [n.node.get_content() for n in index.as_retriever().retrieve("lamp")] == [TEXT]
        assert index.retry_failed() == 1
        broken[0] = False
        assert index.retry_failed() == 0
        assert len(index.graph.facts) == 3


def test_a_server_that_is_busy_once_is_asked_again_and_one_that_hangs_is_a_failure():
    seen = []

    def busy(asked: Asked):
        seen.append(kind(asked))
        return Reply("slow down", status=429) if seen.count(kind(asked)) == 1 else answer(asked)

    with LLMServer(busy) as server:
        assert extract(server).record["verified"] is True
        assert len(seen) == 2
    with LLMServer(lambda asked: Reply("late", delay=30)) as server:
        extractor = MindMapExtractor(
            llm=client(server.url, timeout=0.3), retry=RetryPolicy(max_attempts=1), embed_model=HashEmbedding()
        )
        found = run_steps(extractor.extract([TextNode(id_="n", text=TEXT)]))[0]
        assert found.record is None
        assert "1 of 1 attempts" in found.error


def test_what_was_bought_is_not_bought_again(tmp_path):
    documents = [Document(text=TEXT, id_="D")]
    options = {"embed_model": HashEmbedding(), "transformations": [SentenceSplitter()], "cache": tmp_path / "c.db"}
    with LLMServer(answer) as server:
        for _ in range(2):
            extractor = MindMapExtractor(llm=client(server.url), retry=QUICK)
            index = PGRAGIndex.from_documents(documents, extractor=extractor, **options)
        assert len(server.asked) == 1
        index.delete_ref_doc("D", delete_from_docstore=True)


@pytest.mark.parametrize("extractor_cls", [MindMapExtractor, TwoStageMindMapExtractor])
@pytest.mark.parametrize("passes", [True, False])
def test_an_estimate_tells_the_calls_that_must_be_paid_and_those_that_verification_may_add(extractor_cls, passes):
    poor = cycle([reply_of(["The lamp."]), reply_of(["The tower."]), reply_of(["Ada."])])
    with LLMServer(lambda asked: reply_of(TEXT) if passes else next(poor)) as server:
        extractor = extractor_cls(llm=client(server.url), retry=QUICK, min_rouge_l=0.75)
        documents, split = [Document(text=TEXT)], [SentenceSplitter()]
        said = PGRAGIndex.estimate(documents, extractor=extractor, transformations=split)
        assert server.asked == []
        PGRAGIndex.from_documents(documents, extractor=extractor, transformations=split, embed_model=HashEmbedding())
        assert len(server.asked) == (said.calls if passes else said.calls + said.more_calls)
        assert said.more_calls == 2


def test_an_estimate_counts_the_texts_that_verification_embeds():
    said, embedded = [], []
    for verify in (True, False):
        with LLMServer(answer) as server:
            extractor = MindMapExtractor(llm=client(server.url), retry=QUICK, verify=verify)
            documents, model = [Document(text=TEXT, id_="D")], HashEmbedding()
            said.append(PGRAGIndex.estimate(documents, extractor=extractor))
            PGRAGIndex.from_documents(documents, extractor=extractor, embed_model=model)
            embedded.append(len(model.texts))
    assert said[0].embedded_texts - said[1].embedded_texts == embedded[0] - embedded[1] == 2
    assert said[1].more_calls == 0


@pytest.mark.parametrize("how", ["sync", "async"])
def test_key_points_come_from_the_model_or_are_the_question(how: str, caplog):
    broken: list[Reply | str] = []

    def script(asked: Asked):
        return broken[0] if broken and kind(asked) == "points" else answer(asked)

    with LLMServer(script) as server:
        llm = client(server.url)
        index = PGRAGIndex(
            nodes=[TextNode(id_="n", text=TEXT)],
            llm=llm,
            embed_model=HashEmbedding(),
            extractor=MindMapExtractor(retry=QUICK),
        )
        retriever = index.as_retriever(key_points="llm", similarity_top_k=3)
        explain = (
            (lambda: retriever.explain("Who?")) if how == "sync" else lambda: asyncio.run(retriever.aexplain("Who?"))
        )
        points = {why.key_point for why in explain()}
        assert points == {"The lamp burned whale oil.", "Ada Byron lit the lamp."}
        for reply in (Reply("no", status=400), "I'm sorry, but I can't help with that.", "null", '["N/A"]', "17"):
            caplog.clear()
            broken[:] = [reply]
            assert {why.key_point for why in explain()} == {"Who?"}
            assert "the question itself is used" in caplog.text
        broken[:] = ['{"key_points": ["Oil", "None", "17"]}']
        assert {why.key_point for why in explain()} == {"Oil"}
        asked = len(server.asked)
        given = QueryBundle("Who?", custom_embedding_strs=["The tower is tall."])
        assert {why.key_point for why in retriever.explain(given)} == {"The tower is tall."}
        assert len(server.asked) == asked


@pytest.mark.parametrize("how", ["sync", "async"])
def test_rag_quest_eval(how: str):
    def script(asked: Asked) -> str:
        if "Questions:" in asked.prompt:
            return '["whale oil", "<Unanswerable>"]'
        return '[{"question": "What burned?", "answer": "oil"}, {"question": "Who lit it?", "answer": "Ada"}]'

    with LLMServer(script) as server:
        if how == "sync":
            found = quest_eval(TEXT, "It burned whale oil.", client(server.url), retry=QUICK)
        else:
            found = asyncio.run(aquest_eval(TEXT, "It burned whale oil.", client(server.url), retry=QUICK))
    assert found.replies == ["whale oil", ""]
    assert found.precision == pytest.approx(2 / 3 / 2)
    assert found.recall == 0.5
    assert found.f1 == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))
