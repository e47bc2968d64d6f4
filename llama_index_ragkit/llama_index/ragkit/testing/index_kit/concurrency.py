"""Do readers and writers get on with each other?"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from llama_index.core import Document

from llama_index.ragkit.testing.corpus import TEXTS, chunks
from llama_index.ragkit.testing.index_kit.harness import IndexHarness

__all__ = ["ConcurrencyTests"]


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
