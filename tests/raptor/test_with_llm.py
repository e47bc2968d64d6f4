"""RAPTOR over a real client and a scripted server: failures, kills, and what a delete leaves in the cache."""

import asyncio
import threading
import time
import zlib

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import Asked, LLMServer, Reply
from tests.processes import Worker

from llama_index.ragkit import LLMSummarizer
from llama_index.ragkit.errors import CacheRequiredError
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.testing import HashEmbedding
from llama_index.raptor import RaptorIndex

TOPICS = [
    "loom silk weaver thread",
    "engine cards gears wheels",
    "river bridge boats harbour",
    "bread oven flour yeast",
]
QUICK = RetryPolicy(max_attempts=2, min_wait=0.0, max_wait=0.0)


def documents() -> list[Document]:
    return [
        Document(text=f"{topic} number{i} {topic.split()[i % 4]}.", id_=f"D{t}-{i}")
        for t, topic in enumerate(TOPICS)
        for i in range(12)
    ]


def client(url: str) -> OpenAILike:
    return OpenAILike(
        model="m", api_base=url, api_key="none", is_chat_model=True, max_retries=0, timeout=10, reuse_client=False
    )


def options(url: str, **kwargs) -> dict:
    return {
        "llm": client(url),
        "embed_model": HashEmbedding(),
        "summarizer": LLMSummarizer(retry=QUICK, min_in_text=0),
        "transformations": [SentenceSplitter()],
        **kwargs,
    }


def answer(asked: Asked) -> str:
    numbers = sorted({word.strip(".,") for word in asked.prompt.split() if word.startswith("number")})
    # No two answers are the same: cores before 0.14.10 drop results of equal text.
    return f"It tells of {', '.join(numbers) or 'the whole'}, in {zlib.crc32(asked.prompt.encode())}."


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_tree_is_written_by_a_language_model(how: str):
    with LLMServer(answer) as server:
        if how == "sync":
            index = RaptorIndex.from_documents(documents(), **options(server.url, num_workers=4))
        else:
            index = asyncio.run(RaptorIndex.afrom_documents(documents(), **options(server.url, num_workers=4)))
        assert len(server.answered) == len(index.tree.summaries) > 4
        assert server.most_at_once <= 4
        everything = index.as_retriever(similarity_top_k=99, summary_margin=None).retrieve("loom")
        texts = [n.node.text for n in everything]
        assert sum(text.startswith("It tells of") for text in texts) == len(index.tree.summaries)


def test_a_summary_that_the_server_refuses_is_failed_and_bought_later():
    broken = threading.Event()
    broken.set()

    def script(asked: Asked) -> Reply | str:
        return (
            Reply("no", status=500) if broken.is_set() and "oven flour yeast number3" in asked.prompt else answer(asked)
        )

    with LLMServer(script) as server:
        index = RaptorIndex.from_documents(documents(), fallback=None, **options(server.url))
        assert index.index_struct.counters["failed"] == 1
        broken.clear()
        assert index.retry_failed() == 0
        assert not index.state.unwritten


def test_an_empty_answer_is_a_failure_and_not_a_summary():
    with LLMServer(lambda asked: "  ") as server:
        index = RaptorIndex.from_documents(documents()[:6], fallback=None, **options(server.url))
        assert index.state.unwritten
        assert len(index.as_retriever(similarity_top_k=9).retrieve("loom")) == 6


WORKER = """
import sys
from tests.raptor.test_with_llm import RaptorIndex, documents, options
index = RaptorIndex.from_documents(documents(), **options(sys.argv[1], cache=sys.argv[2], num_workers=2))
print("done", len(index.tree.summaries), flush=True)
"""


@pytest.mark.slow
def test_a_killed_build_that_starts_again_pays_for_no_summary_twice(tmp_path):
    def slow(asked: Asked) -> Reply:
        return Reply(answer(asked), delay=0.15)

    with LLMServer(slow) as server:
        in_flight = 0
        for enough in (2, 4):
            run = Worker(WORKER, server.url, str(tmp_path / "cache.db"))
            while len(server.answered) < enough:
                time.sleep(0.01)
            run.kill()
            run.wait()
            time.sleep(0.3)
            in_flight += 2
        summaries = int(Worker(WORKER, server.url, str(tmp_path / "cache.db")).communicate().split()[-1])
        assert len(set(server.answered)) == summaries
        assert len(server.answered) <= summaries + in_flight


def files(folder) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir())).lower()


def test_a_deleted_document_is_gone_from_the_cache_too(tmp_path):
    cache, stored = tmp_path / "cache", tmp_path / "stored"
    canary = Document(text="loom silk weaver thread numberqzxcanary.", id_="C")
    with LLMServer(answer) as server:
        index = RaptorIndex.from_documents([*documents(), canary], **options(server.url, cache=cache / "c.db"))
        assert b"qzxcanary" in files(cache)
        index.storage_context.persist(str(stored))
        context = StorageContext.from_defaults(persist_dir=str(stored))
        without = load_index_from_storage(context, **options(server.url))
        with pytest.raises(CacheRequiredError, match="cache="):
            without.delete_ref_doc("C", delete_from_docstore=True)
        assert "C" in without.ref_doc_info
        loaded = load_index_from_storage(context, **options(server.url, cache=cache / "c.db"))
        paid = len(server.answered)
        loaded.delete_ref_doc("C", delete_from_docstore=True)
        assert len(server.answered) == paid
        loaded.storage_context.persist(str(tmp_path / "after"))
        assert b"qzxcanary" not in files(cache) + files(tmp_path / "after")
        assert loaded.write_summaries() == 0
        before_rebuild = len(server.answered)
        again = RaptorIndex.from_documents(documents(), **options(server.url, cache=cache / "c.db"))
        assert len(server.answered) - before_rebuild < len(again.tree.summaries)  # what others use was kept


def test_prompts_are_reached_through_the_index():
    with LLMServer(answer) as server:
        index = RaptorIndex.from_documents(documents()[:4], **options(server.url))
        (name,) = [name for name in index.get_prompts() if name.startswith("summarizer:")]
        prompt = index.get_prompts()[name]
        changed = PromptTemplate("PLEASE " + prompt.get_template())
        index.update_prompts({name: changed})
        assert index.resources.summarizer.get_prompts()[name.split(":")[1]].get_template().startswith("PLEASE ")
