"""How long the pages of large indexes take to open: each method over made-up passages, in a headless Chromium.

`RAG_PAGE_CHUNKS` is the number of passages, 20,000 unless told otherwise. No model is used: vectors are those of hashed
words, and what a method extracts or writes, it does without an LLM.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.apart import apart
from benchmarks.made_up_names import passages
from benchmarks.measuring import timed

__all__ = ["measurements"]

METHODS = ("raptor", "gemrag", "hipporag", "graphrag", "pgrag", "mrag", "sprag")
CHUNKS = int(os.environ.get("RAG_PAGE_CHUNKS", "20000"))
A_DOCUMENT = 10  # passages of one
SENTENCE_WORDS = 14
OPENINGS = 5
TO_REACH = 3.0  # seconds
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def measurements() -> Iterator[dict[str, Any]]:
    """Measure; each method in a process of its own."""
    for method in METHODS:
        yield from apart(pages, method, CHUNKS)


def pages(method: str, chunks: int) -> list[dict[str, Any]]:
    """The pages of an index without a question and with one."""
    index = _index(method, chunks)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for asked, question in (("", None), (", with an answer", _question(chunks))):
            path, write_s, _ = timed(partial(index.visualize, Path(folder) / "page.html", query=question))
            found.append(
                {
                    "name": f"page of {method} over {chunks:,} passages{asked}",
                    "mb": round(path.stat().st_size / 2**20, 1),
                    "write_s": round(write_s, 2),
                    "open_s": [round(seconds, 2) for seconds in opened(path, OPENINGS)],
                    "to_reach_s": TO_REACH,
                }
            )
    return found


def opened(path: Path, times: int) -> list[float]:
    """Seconds from naming a page to a fresh browser until it is drawn and takes clicks, for each of some openings."""
    from tests.chromium import Browser

    found = []
    for _ in range(times):
        with Browser() as browser:
            started = time.perf_counter()
            browser.open(path, settle=0)
            browser.run(DRAWN)
            found.append(time.perf_counter() - started)
    return found


def _question(chunks: int) -> str:
    first, second, *_ = next(iter(passages(chunks, 0, 1).values())).named
    return f"What do {first.title()} and {second.title()} have to do with each other?"


def _documents(chunks: int) -> Iterator[list[str]]:
    """Texts of the passages of each document: a heading, then a sentence a name."""
    words = np.random.default_rng(0)
    for start in range(0, chunks, A_DOCUMENT):
        found = []
        for passage in passages(chunks, start, min(chunks, start + A_DOCUMENT)).values():
            subject, *others = (name.title() for name in passage.named)
            filler = [" ".join(f"word{n}" for n in words.integers(0, 5000, SENTENCE_WORDS - 6)) for _ in others]
            lines = [f"{subject} knows {other} by {text}." for other, text in zip(others, filler, strict=True)]
            found.append(f"# {subject}\n\n{' '.join(lines)}")
        yield found


def _index(method: str, chunks: int) -> Any:
    from examples.demo_methods import METHODS as AVAILABLE
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    from llama_index.mrag import SplitEmbedding
    from llama_index.ragkit.testing import HashEmbedding

    found = next(each for each in AVAILABLE if each.name == method)
    model = HashEmbedding()
    nodes = [
        TextNode(
            id_=f"n{d:05d}-{i}",
            text=text,
            metadata={"file_name": f"document {d}.md"},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{d:05d}")},
        )
        for d, texts in enumerate(_documents(chunks))
        for i, text in enumerate(texts)
    ]
    embed_model = SplitEmbedding(model, num_heads=4) if method == "mrag" else model
    return found.cls(nodes=nodes, embed_model=embed_model, **found.offline())
