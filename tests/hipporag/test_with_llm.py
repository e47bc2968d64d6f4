"""HippoRAG over a real client and a scripted server: extraction, questions, facts, failures, kills, forgetting."""

import asyncio
import json
import re
import threading
import time

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import Asked, LLMServer, Reply
from tests.processes import Worker

from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, IRCoTRetriever, OpenIEExtractor
from llama_index.ragkit.errors import CacheRequiredError, ExtractionError
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.testing import HashEmbedding

QUICK = RetryPolicy(max_attempts=2, min_wait=0.0, max_wait=0.0)
TEXTS = [
    "Ada Byron met Charles Babbage.",
    "Charles Babbage designed Analytical Engine.",
    "Analytical Engine used Punched Cards.",
    "Punched Cards steered Jacquard Loom.",
]


def documents() -> list[Document]:
    return [Document(text=text, id_=f"D{i}") for i, text in enumerate(TEXTS)]


def client(url: str, timeout: float = 10) -> OpenAILike:
    return OpenAILike(
        model="m", api_base=url, api_key="none", is_chat_model=True, max_retries=0, timeout=timeout, reuse_client=False
    )


def options(url: str, **kwargs) -> dict:
    return {
        "llm": client(url),
        "embed_model": HashEmbedding(dim=256),
        "extractor": OpenIEExtractor(retry=QUICK),
        "transformations": [SentenceSplitter()],
        **kwargs,
    }


def fenced(prompt: str, name: str) -> list[str]:
    return re.findall(rf'<{name}-\w+ number="\d+">\n(.*?)\n</{name}', prompt, re.DOTALL)


NAME = re.compile(r"(?:[A-Z]\w+ )+[A-Z]\w+|[A-Z]\w+")


def answer(asked: Asked) -> str:
    """What a good model says: names are runs of capitals, a triple is two names with what stands between."""
    if "numbered facts" in asked.prompt:
        (question,) = fenced(asked.prompt, "question")
        words = set(question.lower().replace("?", "").split())
        facts = fenced(asked.prompt, "fact")
        return json.dumps(
            {"facts": [i for i, fact in enumerate(facts, 1) if words & set(fact.replace(";", "").split())]}
        )
    if "entities of the question" in asked.prompt:
        return json.dumps({"named_entities": NAME.findall(fenced(asked.prompt, "question")[0])})
    (text,) = fenced(asked.prompt, "text")
    names = NAME.findall(text)
    if "triples" not in asked.prompt:
        return json.dumps({"named_entities": names})
    middle = text.removeprefix(names[0]).split(names[-1])[0].strip()
    return json.dumps({"triples": [[names[0], middle, names[-1]]]})


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_graph_is_read_by_a_language_model(how: str):
    with LLMServer(lambda asked: Reply(answer(asked), delay=0.2)) as server:
        if how == "sync":
            index = HippoRAGIndex.from_documents(documents(), **options(server.url, num_workers=3))
        else:
            index = asyncio.run(HippoRAGIndex.afrom_documents(documents(), **options(server.url, num_workers=3)))
        assert len(server.answered) == 2 * len(TEXTS)
        assert 1 < server.most_at_once <= 3
        assert set(index.state.facts) >= {("ada byron", "met", "charles babbage")}
        assert "{{" not in server.asked[0].prompt
        found = HippoRAGRetriever.v1(index, similarity_top_k=2).retrieve("Whom did Ada Byron meet?")
        assert [n.text for n in found] == TEXTS[:2]
        assert len(server.answered) == 2 * len(TEXTS) + 1


REPLIES = {
    "in a fence": '```json\n{"named_entities": ["Ada Byron"]}\n```',
    "with thoughts": '<think>{"named_entities": ["No"]}</think> {"named_entities": ["Ada Byron"]}',
    "cut off": '{"named_entities": ["Ada Byron", "Charles',
    "duplicate keys": '{"named_entities": ["Ada Byron"], "named_entities": ["Lyon"]}',
    "numbers and objects": '{"named_entities": ["Ada Byron", 1843, {"name": "x"}, null, ""]}',
}


@pytest.mark.parametrize("kind", REPLIES)
def test_replies_that_can_be_read_are_read(kind: str):
    def script(asked: Asked) -> str:
        return (
            '{"triples": [["a", "b"], ["Ada Byron", "born", 1815], "x"]}'
            if "triples" in asked.prompt
            else REPLIES[kind]
        )

    with LLMServer(script) as server:
        extractor = OpenIEExtractor(retry=QUICK, min_in_text=0)
        index = HippoRAGIndex.from_documents(documents()[:1], **options(server.url, extractor=extractor))
        phrases = set(index.state.phrases)
        assert {"ada byron", "1815"} <= phrases
        assert ("lyon" in phrases) == (kind == "duplicate keys")
        assert ("1843" in phrases) == (kind == "numbers and objects")


@pytest.mark.parametrize(
    "reply", ["no idea", "{}", '{"triples": "none"}', "", Reply("slow down", status=429), Reply("no", 500)]
)
def test_what_cannot_be_read_fails_the_node_and_is_bought_later(reply):
    broken = threading.Event()
    broken.set()

    def script(asked: Asked) -> Reply | str:
        if broken.is_set() and TEXTS[1] in asked.prompt and "triples" in asked.prompt:
            return reply if not isinstance(reply, Reply) else Reply(reply.content, status=int(reply.status or 500))
        return answer(asked)

    with LLMServer(script) as server:
        index = HippoRAGIndex.from_documents(documents(), **options(server.url))
        assert index.retry_failed() == 1
        assert len(index.as_retriever(similarity_top_k=9).retrieve("Analytical Engine")) == 4
        broken.clear()
        assert index.retry_failed() == 0
        assert ("charles babbage", "designed", "analytical engine") in index.state.facts
        broken.set()
        with pytest.raises(ExtractionError):
            HippoRAGIndex.from_documents(documents(), **options(server.url, on_error="raise"))


def test_a_server_that_hangs_fails_the_node_and_not_the_build():
    def script(asked: Asked) -> Reply:
        return Reply(answer(asked), delay=5.0 if TEXTS[2] in asked.prompt else 0.0)

    with LLMServer(script) as server:
        settings = options(server.url, llm=client(server.url, timeout=1))
        index = HippoRAGIndex.from_documents(documents(), **settings)
        assert len(index.failures()) == 1
        assert index.retry_failed() == 1


def test_facts_are_filtered_by_a_language_model():
    with LLMServer(answer) as server:
        index = HippoRAGIndex.from_documents(documents(), **options(server.url))
        retriever = HippoRAGRetriever.v2(index, similarity_top_k=2, retry=QUICK)
        explained = retriever.explain("What did Charles Babbage do?")
        assert {link.phrase for link in explained[0].linked} == {"ada byron", "charles babbage", "analytical engine"}
        server.script = lambda asked: '{"facts": []}'
        assert retriever.explain("What?")[0].fallback == "none of the facts near to the question helps"
        server.script = lambda asked: "I would rather not."
        server.script = lambda asked: '{"facts": [99, -1, 0]}'
        assert "The numbers of the facts are 1 to 4" in retriever.explain("What?")[0].fallback
        server.script = lambda asked: "I would rather not."
        failed = retriever.explain("What?")  # a dense answer
        assert all(why.fallback.startswith("No usable reply of the LLM") and why.walk is None for why in failed)
        assert [why.node_id for why in failed] == [found.node.node_id for found in retriever.retrieve("What?")]


def test_a_question_without_entities_falls_back():
    with LLMServer(answer) as server:
        index = HippoRAGIndex.from_documents(documents(), **options(server.url))
        explained = HippoRAGRetriever.v1(index).explain("what is this?")
        assert explained[0].fallback == "the question names no entity"
        assert len(explained) == 4


WORKER = """
import sys
from tests.hipporag.test_with_llm import HippoRAGIndex, documents, options
index = HippoRAGIndex.from_documents(documents(), **options(sys.argv[1], cache=sys.argv[2], num_workers=1))
print("done", flush=True)
"""


@pytest.mark.slow
def test_a_killed_build_that_starts_again_pays_for_nothing_twice(tmp_path):
    with LLMServer(lambda asked: Reply(answer(asked), delay=0.2)) as server:
        run = Worker(WORKER, server.url, str(tmp_path / "cache.db"))
        while len(server.answered) < 3:
            time.sleep(0.01)
        run.kill()
        run.wait()
        time.sleep(0.4)
        assert "done" in Worker(WORKER, server.url, str(tmp_path / "cache.db")).communicate()
        assert len(set(server.answered)) == 2 * len(TEXTS)
        assert len(server.answered) <= 2 * len(TEXTS) + 1  # what was in flight


def test_a_deleted_document_is_gone_from_the_cache_too(tmp_path):
    def files(folder) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(folder.iterdir())).lower()

    cache = tmp_path / "cache"
    canary = Document(text="Qzx Canary met Ada Byron.", id_="C")
    with LLMServer(answer) as server:
        index = HippoRAGIndex.from_documents([*documents(), canary], **options(server.url, cache=cache / "c.db"))
        index.storage_context.persist(str(tmp_path / "stored"))
        assert b"qzx canary" in files(cache)
        assert b"qzx canary" in files(tmp_path / "stored")
        context = StorageContext.from_defaults(persist_dir=str(tmp_path / "stored"))
        with pytest.raises(CacheRequiredError, match="cache="):
            load_index_from_storage(context, **options(server.url)).delete_ref_doc("C", delete_from_docstore=True)
        loaded = load_index_from_storage(context, **options(server.url, cache=cache / "c.db"))
        paid = len(server.answered)
        loaded.delete_ref_doc("C", delete_from_docstore=True)
        assert len(server.answered) == paid
        loaded.storage_context.persist(str(tmp_path / "after"))
        assert b"qzx" not in files(cache) + files(tmp_path / "after")


def test_prompts_are_reached_and_replaced():
    with LLMServer(answer) as server:
        index = HippoRAGIndex.from_documents(documents()[:1], **options(server.url))
        assert {"extractor:entities", "extractor:triples"} <= set(index.get_prompts())
        retriever = HippoRAGRetriever.v1(index)
        retriever.update_prompts({"question": PromptTemplate("PLEASE list the entities of the question {question}")})
        retriever.retrieve("Who is Ada Byron?")
        assert server.asked[-1].prompt.startswith("PLEASE ")


# -- chains of thought -------------------------------------------------------------------------------


def thinking(asked: Asked) -> str:
    if "Next step" not in asked.prompt:
        return answer(asked)
    steps = asked.prompt.split("Steps so far:\n")[-1]
    if "Analytical Engine" in steps:
        return "So the answer is: Punched Cards."
    return "Charles Babbage designed Analytical Engine." if "Babbage" in steps else "Ada Byron met Charles Babbage."


@pytest.mark.parametrize("how", ["sync", "async"])
def test_thoughts_are_the_next_queries(how: str):
    with LLMServer(thinking) as server:
        index = HippoRAGIndex.from_documents(documents(), **options(server.url))
        inner = index.as_retriever(similarity_top_k=1)
        chain = IRCoTRetriever(inner, llm=client(server.url), max_steps=4, similarity_top_k=3, retry=QUICK)
        question = "What did the machine of Ada Byron's friend use?"
        found = chain.retrieve(question) if how == "sync" else asyncio.run(chain.aretrieve(question))
        thoughts = [asked for asked in server.asked if "Next step" in asked.prompt]
        assert len(thoughts) == 3
        assert {n.text for n in found} == {TEXTS[0], TEXTS[1]}
        assert [n.score for n in found] == sorted((n.score for n in found), reverse=True)
        queries = [question, "Ada Byron met Charles Babbage.", "Charles Babbage designed Analytical Engine."]
        scores = [n.score for query in queries for n in inner.retrieve(query) if n.text == TEXTS[0]]
        assert next(n.score for n in found if n.text == TEXTS[0]) == pytest.approx(max(scores))
        alone = IRCoTRetriever(inner, llm=client(server.url), max_steps=1).retrieve(question)
        assert [n.text for n in alone] == [n.text for n in inner.retrieve(question)]
        assert len([asked for asked in server.asked if "Next step" in asked.prompt]) == 3


def test_a_model_that_fails_ends_the_chain_with_what_was_found():
    with LLMServer(lambda asked: Reply("no", status=500) if "Next step" in asked.prompt else answer(asked)) as server:
        index = HippoRAGIndex.from_documents(documents(), **options(server.url))
        chain = IRCoTRetriever(index.as_retriever(similarity_top_k=2), llm=client(server.url), retry=QUICK)
        assert len(chain.retrieve("Ada Byron")) == 2
