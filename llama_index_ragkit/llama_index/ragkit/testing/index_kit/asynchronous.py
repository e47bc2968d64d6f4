"""Do the asynchronous methods do what the synchronous ones do, and do both work on an event loop?"""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

from llama_index.core import Document

from llama_index.ragkit.testing.corpus import QUESTION, TEXTS, chunks, texts_and_scores
from llama_index.ragkit.testing.index_kit.harness import IndexHarness
from llama_index.ragkit.testing.models import ScriptedLLM

__all__ = ["AsyncTests"]

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
