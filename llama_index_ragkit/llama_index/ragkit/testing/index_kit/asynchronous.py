"""Do the asynchronous methods do what the synchronous ones do, and do readers and writers get on with each other?"""

import asyncio
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llama_index.core import Document

from llama_index.ragkit.testing.corpus import QUESTION, TEXTS, chunks, texts_and_scores
from llama_index.ragkit.testing.index_kit.harness import IndexHarness
from llama_index.ragkit.testing.models import ScriptedLLM

__all__ = ["AsyncTests", "ConcurrencyTests"]

NEW = Document(text="Zanzibar exports cloves.", id_="z")


class AsyncTests(IndexHarness):
    """Every write and read has an asynchronous counterpart with the same outcome, on any event loop."""

    def test_an_index_built_asynchronously_is_the_same(self) -> None:
        """`afrom_documents` makes what `from_documents` makes."""
        documents = [Document(text=text, id_=f"D{i}") for i, text in enumerate(TEXTS)]
        one, other = self.from_documents(documents), asyncio.run(self.afrom_documents(documents))
        assert self.ask(other) == self.ask(one)
        assert other.ref_doc_info.keys() == one.ref_doc_info.keys()
        assert other.refresh_ref_docs(documents) == [False] * len(documents)

    def test_asynchronous_writes_and_reads_equal_synchronous_ones(self) -> None:
        """The same writes in the same order lead to the same index."""
        one, other = self.build(chunks("d", 5)), self.build(chunks("d", 5))
        one.insert(NEW)
        one.insert_nodes(chunks("e", 3))
        one.delete_nodes(["d-1"])
        one.update_ref_doc(Document(text="Pemba exports cloves.", id_="z"))
        one.delete_ref_doc("e", delete_from_docstore=True)

        async def work() -> list[tuple[str, float]]:
            await other.ainsert(NEW)
            await other.ainsert_nodes(chunks("e", 3))
            await other.adelete_nodes(["d-1"])
            await other.aupdate_ref_doc(Document(text="Pemba exports cloves.", id_="z"))
            await other.adelete_ref_doc("e", delete_from_docstore=True)
            return texts_and_scores(await self.retriever(other, similarity_top_k=50).aretrieve(QUESTION))

        found = asyncio.run(work())
        assert found == self.ask(other) == self.ask(one)
        assert set(other.ref_doc_info) == set(one.ref_doc_info) == {"d", "z"}

    def test_synchronous_methods_work_inside_a_running_loop(self) -> None:
        """As in a notebook: nothing is run on a second loop that the first would have to wait for."""
        expected = self.build(chunks("d", 3))
        expected.insert(NEW)

        async def work() -> list[tuple[str, float]]:
            index = self.build(chunks("d", 3))
            index.insert(NEW)
            assert index.as_query_engine(llm=ScriptedLLM("An answer.")).query(QUESTION).source_nodes
            return self.ask(index)

        assert asyncio.run(work()) == self.ask(expected)

    def test_an_index_outlives_its_event_loop(self) -> None:
        """Nothing is bound to the loop of the first call: web servers and scripts use one after another."""
        index = self.build(chunks("d", 3))
        for i in range(3):
            asyncio.run(index.ainsert(Document(text=f"Note {i} on cloves.", id_=f"n{i}")))
            found = asyncio.run(self.retriever(index, similarity_top_k=50).aretrieve("cloves"))
            assert any(f"Note {i}" in result.node.get_content() for result in found)

    def test_questions_at_once_have_the_answers_of_questions_in_turn(self) -> None:
        """One retriever serves many coroutines."""
        index = self.build([*chunks("d", 6), *chunks("e", 3)])
        retriever = self.retriever(index, similarity_top_k=50)

        async def all_at_once() -> list[list[tuple[str, float]]]:
            return [texts_and_scores(found) for found in await asyncio.gather(*map(retriever.aretrieve, TEXTS))]

        assert asyncio.run(all_at_once()) == [self.ask(index, text) for text in TEXTS]

    def test_a_long_question_takes_no_longer_on_the_event_loop(self) -> None:
        """Threads compute the answer to a question, so that a server can answer others meanwhile."""
        index = self.build(chunks("d", 6))
        retriever = self.retriever(index)
        short, long = "北京大学 " * 20, "北京大学 " * 200
        asyncio.run(retriever.aretrieve(long))  # makes what the first question needs
        assert _calls_on_loop(retriever.aretrieve(long)) - _calls_on_loop(retriever.aretrieve(short)) < len(long) / 4


def _calls_on_loop(work: Coroutine[Any, Any, Any]) -> int:
    """How many Python functions a coroutine calls in the thread of its event loop."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    async def counted() -> None:
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            await work
        finally:
            sys.setprofile(before)

    asyncio.run(counted())
    return calls


def _note(i: int) -> Document:
    return Document(text=f"{TEXTS[i % 6]} note {i}", id_=f"n{i}")


class ConcurrencyTests(IndexHarness):
    """A reader sees the index before or after a write, never between; writers take turns."""

    def test_readers_see_the_index_before_or_after_a_write(self) -> None:
        """Threads that read during writes get only answers that an index gives without threads."""
        index, alone = self.build(chunks("d", 6)), self.build(chunks("d", 6))
        states = [self.ask(alone)]
        for i in range(4):
            alone.insert(_note(i))
            states.append(self.ask(alone))
        stop = threading.Event()

        def read() -> list[list[tuple[str, float]]]:
            seen = [self.ask(index)]
            while not stop.is_set():
                answer = self.ask(index)
                if answer != seen[-1]:
                    seen.append(answer)
            return seen

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            try:
                for i in range(4):
                    index.insert(_note(i))
            finally:
                stop.set()
            for reader in readers:
                assert all(answer in states for answer in reader.result())

    def test_threads_that_write_take_turns(self) -> None:
        """No write is lost."""
        index = self.build(chunks("d", 3))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(index.insert, map(_note, range(8))))
        assert set(index.ref_doc_info) == {"d", *(f"n{i}" for i in range(8))}
        assert {text for text, _ in self.ask(index)} >= {_note(i).text for i in range(8)}

    def test_coroutines_that_write_take_turns(self) -> None:
        """No write is lost on one event loop, nor on the next."""
        index = self.build(chunks("d", 3))

        async def write(first: int) -> None:
            await asyncio.gather(*(index.ainsert(_note(i)) for i in range(first, first + 4)))

        asyncio.run(write(0))
        asyncio.run(write(4))
        assert set(index.ref_doc_info) == {"d", *(f"n{i}" for i in range(8))}
        assert {text for text, _ in self.ask(index)} >= {_note(i).text for i in range(8)}
