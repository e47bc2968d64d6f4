"""GEM-RAG over a real client and a scripted server: questions and themes, faults, kills, the cache."""

import asyncio
import json
import re
import time
import zlib

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import Asked, LLMServer, Reply
from tests.processes import Worker

from llama_index.gemrag import GEMRAGIndex, UtilityQuestionExtractor
from llama_index.ragkit import LLMSummarizer
from llama_index.ragkit.errors import CacheRequiredError, ConfigurationError, ExtractionError
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.testing import HashEmbedding

TOPICS = ["loom silk weaver thread", "engine cards gears wheels", "river bridge boats harbour"]
QUICK = RetryPolicy(max_attempts=2, min_wait=0.0, max_wait=0.0)


def documents(per_topic: int = 6) -> list[Document]:
    return [
        Document(text=f"{topic} number{i}{t} {topic.split()[i % 4]}.", id_=f"D{t}-{i}")
        for t, topic in enumerate(TOPICS)
        for i in range(per_topic)
    ]


def client(url: str, **kwargs) -> OpenAILike:
    settings = {"timeout": 10, "reuse_client": False, **kwargs}
    return OpenAILike(model="m", api_base=url, api_key="none", is_chat_model=True, max_retries=0, **settings)


def options(url: str, **kwargs) -> dict:
    return {
        "llm": client(url),
        "embed_model": HashEmbedding(),
        "extractor": UtilityQuestionExtractor(num_questions=2, retry=QUICK),
        "summarizer": LLMSummarizer(retry=QUICK, min_in_text=0),
        "transformations": [SentenceSplitter()],
        "group_by": None,
        "num_themes": 3,
        **kwargs,
    }


def is_question(asked: Asked) -> bool:
    return "questions" in asked.prompt and "Summary:" not in asked.prompt


def numbers(asked: Asked) -> list[str]:
    return sorted(set(re.findall(r"number\d+", asked.prompt)))


def answer(asked: Asked) -> str:
    mark = zlib.crc32(asked.prompt.encode())
    if is_question(asked):
        return json.dumps(
            {"questions": [f"What of {' '.join(numbers(asked))} in {mark}?", f"Why {numbers(asked)[0]} {mark}?"]}
        )
    return f"It tells of {', '.join(numbers(asked))}, in {mark}."


@pytest.mark.parametrize("how", ["sync", "async"])
def test_questions_in_one_call_a_node_and_themes_by_a_language_model(how: str):
    with LLMServer(lambda asked: Reply(answer(asked), delay=0.05)) as server:
        if how == "sync":
            index = GEMRAGIndex.from_documents(documents(), **options(server.url, num_workers=4))
        else:
            index = asyncio.run(GEMRAGIndex.afrom_documents(documents(), **options(server.url, num_workers=4)))
    counts = index.index_struct.counters
    assert counts == {"chunks": 18, "questions": 36, "themes": 3, "failed_themes": 0}
    assert len(server.asked) == 18 + 2 * 3
    assert 1 < server.most_at_once <= 4
    for name in index.themes:
        assert len(index.questions_of(name)) == 2
    found = index.as_retriever(similarity_top_k=30, keep_covered=True).retrieve("number30")
    assert any("It tells of" in r.node.get_content() for r in found)


REPLIES = {
    "fenced": '```json\n{"questions": ["A loom?", "A thread?"]}\n```',
    "thoughts": '<think>{"questions": ["no"]}</think> {"questions": ["A loom?", "A thread?"]}',
    "duplicate keys": '{"questions": ["A loom?"], "questions": ["A thread?"]}',
    "cut": '{"questions": ["A loom?", "A thread?", "and th',
    "a list": '{"questions": [{"question": "A loom?"}, {"question": "A thread?"}]}',
    "doubles": '{"questions": ["A loom?", "a  LOOM?", "", "A thread?", "?!"]}',
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_replies_that_models_give_are_read(reply: str):
    with LLMServer(lambda asked: reply) as server:
        index = GEMRAGIndex.from_documents(documents(1)[:1], **options(server.url))
    assert index.questions_of(next(iter(index.docstore.docs))) == ["A loom?", "A thread?"]


FAULTS = {
    "broken": Reply("I cannot do that."),
    "empty": Reply('{"questions": []}'),
    "429": Reply("slow down", status=429),
    "500": Reply("oops", status=500),
    "hang": Reply("late", delay=30),
    "cut off": Reply('{"questions": ["A?"]}', cut=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_node_that_fails_is_found_by_its_text_and_asked_again(fault: Reply):
    broken = True

    def script(asked: Asked):
        return fault if broken and is_question(asked) and "number10" in asked.prompt else answer(asked)

    with LLMServer(script) as server:
        index = GEMRAGIndex.from_documents(documents(2), **options(server.url, llm=client(server.url, timeout=1)))
        (failed,) = [failure.node_id for failure in index.failures() if failure.node_id in index.docstore.docs]
        assert "number10" in index.docstore.docs[failed].get_content()
        first = index.as_retriever(similarity_top_k=1).retrieve(index.docstore.docs[failed].get_content())
        assert first[0].node.node_id == failed
        broken = False
        assert index.retry_failed() == 0
        assert len(index.questions_of(failed)) == 2


def test_one_bad_reply_is_asked_for_again():
    def script(asked: Asked):
        if not is_question(asked):
            return answer(asked)
        return answer(asked) if "numbered lines" in asked.prompt else "nonsense"

    with LLMServer(script) as server:
        index = GEMRAGIndex.from_documents(documents(1), **options(server.url))
    assert index.index_struct.counters["questions"] == 6


def test_on_error_raise_ends_the_write():
    with LLMServer(lambda asked: Reply("no", status=400)) as server, pytest.raises(ExtractionError):
        GEMRAGIndex.from_documents(documents(1), **options(server.url, on_error="raise"))


def test_only_themes_whose_members_changed_are_bought_again():
    with LLMServer(answer) as server:
        index = GEMRAGIndex.from_documents(documents(), **options(server.url))
        before = index.themes
        server.asked.clear()
        index.insert(Document(text="river bridge boats harbour number99 river.", id_="new"))
        index.write_summaries()
        new = index.themes.keys() - before.keys()
        assert len(server.asked) == 1 + 2 * len(new)
        assert new != index.themes.keys()
        server.asked.clear()
        index.rebuild()
        assert server.asked == []


def test_a_delete_leaves_nothing_in_the_cache_and_asks_for_nothing(tmp_path):
    with LLMServer(answer) as server:
        index = GEMRAGIndex.from_documents(documents(), **options(server.url, cache=tmp_path / "cache.db"))
        index.storage_context.persist(str(tmp_path / "storage"))
        asked = len(server.asked)
        bare = load_index_from_storage(
            StorageContext.from_defaults(persist_dir=str(tmp_path / "storage")), **options(server.url)
        )
        with pytest.raises(CacheRequiredError):
            bare.delete_ref_doc("D0-3", delete_from_docstore=True)
        index.delete_ref_doc("D0-3", delete_from_docstore=True)
        assert len(server.asked) == asked
    for name in ("cache.db", "cache.db-wal"):
        path = tmp_path / name
        assert not path.exists() or b"number30" not in path.read_bytes()
    index.storage_context.persist(str(tmp_path / "after"))
    assert not any(b"number30" in path.read_bytes() for path in (tmp_path / "after").iterdir())


def test_prompts_can_be_seen_and_replaced():
    index = GEMRAGIndex(nodes=[], embed_model=HashEmbedding(), **{"extractor": UtilityQuestionExtractor()})
    assert "extractor:questions" in index.get_prompts()
    index.update_prompts({"extractor:questions": PromptTemplate("Ask {num_questions} of {text}.")})
    assert index.get_prompts()["extractor:questions"].get_template() == "Ask {num_questions} of {text}."
    with pytest.raises(ConfigurationError):
        UtilityQuestionExtractor(num_questions=-1)
    with pytest.raises(ConfigurationError):
        UtilityQuestionExtractor(prompts={"questions": PromptTemplate("nothing")})


WORKER = """
import sys
from tests.gemrag.test_with_llm import GEMRAGIndex, documents, options

GEMRAGIndex.from_documents(documents(), **options(sys.argv[1], cache=sys.argv[2]))
print("done", flush=True)
"""


def test_a_build_that_was_killed_pays_for_nothing_twice(tmp_path):
    def script(asked: Asked):
        time.sleep(0.02)
        return answer(asked)

    with LLMServer(script) as server:
        run = Worker(WORKER, server.url, str(tmp_path / "cache.db"))
        end = time.monotonic() + 60
        while len(server.answered) < 8 and time.monotonic() < end:
            time.sleep(0.01)
        run.kill()
        run.wait()
        paid = len(server.answered)
        assert paid >= 8
        assert "done" in Worker(WORKER, server.url, str(tmp_path / "cache.db")).communicate()
        # What was in flight at the kill may have been sent without having reached the cache.
        assert len(server.answered) <= 18 + 2 * 3 + 4
