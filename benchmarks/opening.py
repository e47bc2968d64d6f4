"""`python -m benchmarks.opening`: what a saved index costs to open, and the memory of a process that asks it.

An index of each method is built over the made-up documents of `benchmarks.one_path`, saved to a folder, and opened by
another process, which asks a hundred questions:

    python -m benchmarks.opening --chunks 20000 --out before.json
    python -m benchmarks.opening --compare before.json after.json

With `--folder` indexes stay, and are not built again. Seconds are those of the process, on one thread. Private memory
is that of the process alone, what the libraries take included (the row "no index"); mapped memory is files, which the
system can drop.
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from llama_index.core import load_index_from_storage
from llama_index.core.node_parser import MarkdownNodeParser

from benchmarks import one_path
from benchmarks.apart import ONE_THREAD, apart
from benchmarks.measuring import Times, run_or_compare
from benchmarks.one_path import METHODS, SECTIONS, TOP, WordVectors, document
from llama_index.ragkit import load_storage_context, persist

__all__ = ["built", "main", "opened"]

DIMENSION, QUESTIONS = 384, 100
COLUMNS = ("open s", "first question ms", "question ms", "private MB", "mapped MB", "disk MB")
_SMAPS = Path("/proc/self/smaps_rollup")


def memory() -> dict[str, int]:
    """Megabytes of this process that are its own, and those of files, on Linux."""
    lines = (line.split() for line in _SMAPS.read_text(encoding="ascii").splitlines() if line.endswith("kB"))
    sizes = {words[0]: int(words[1]) for words in lines}
    private = sizes["Anonymous:"]
    return {"private MB": private // 1024, "mapped MB": (sizes["Rss:"] - private) // 1024}


def built(method: str, chunks: int, folder: str) -> float:
    """Build an index and save it; returns the seconds."""
    one_path.DIMENSION = DIMENSION
    cls, components = METHODS[method]
    options = {"embed_model": WordVectors(), **components(), "transformations": [MarkdownNodeParser()]}
    times = Times()
    documents = [document(number) for number in range(chunks // SECTIONS)]
    index = times.run(lambda: cls.from_documents(documents, **options))
    persist(index.storage_context, folder)
    return times.cpu_s[0]


def opened(method: str, chunks: int, folder: str) -> dict[str, Any]:
    """Open the index of a folder and ask it; without a method, the memory that the libraries take."""
    if not method:
        return memory()
    one_path.DIMENSION = DIMENSION
    options = {"embed_model": WordVectors(), **METHODS[method][1]()}
    opening, asking = Times(), Times()
    index = opening.run(lambda: load_index_from_storage(load_storage_context(folder), **options))
    retriever = index.as_retriever(similarity_top_k=TOP)
    asked = one_path.made_up_questions(chunks, QUESTIONS)
    answers = [one_path.digest(asking.run(partial(retriever.retrieve, text))) for text in asked]
    first, *rest = (1000 * seconds for seconds in asking.cpu_s)
    disk = sum(path.stat().st_size for path in Path(folder).iterdir()) >> 20
    found = (opening.cpu_s[0], first, statistics.median(rest), *memory().values(), disk)
    return {**{name: round(value, 2) for name, value in zip(COLUMNS, found, strict=True)}, "answers": answers}


def measurements(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each method as it was measured, after a process without an index."""
    yield {"method": "no index", "chunks": 0, **apart(opened, "", 0, "", **ONE_THREAD)}
    with tempfile.TemporaryDirectory() as temporary:
        for chunks, method in product(options.chunks, options.methods):
            place = (options.folder or Path(temporary)) / f"{method}-{chunks}"
            if not place.exists():
                apart(built, method, chunks, str(place), **ONE_THREAD)
            yield {"method": method, "chunks": chunks, **apart(opened, method, chunks, str(place), **ONE_THREAD)}


def compared(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table of two runs, a line a method."""
    yield f"| method | chunks | {' | '.join(COLUMNS)} | answers |\n|{'---|' * (len(COLUMNS) + 3)}"
    earlier = {(row["method"], row["chunks"]): row for row in before}
    for row in after:
        old = earlier.get((row["method"], row["chunks"]), {})
        cells = [f"{old.get(name, '')} → {row[name]}" if name in row else "" for name in COLUMNS]
        same = "" if "answers" not in old else "the same" if old["answers"] == row["answers"] else "differ"
        yield f"| {row['method']} | {row['chunks']} | {' | '.join(cells)} | {same} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line, or compare two runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opening", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--methods", nargs="+", choices=sorted(METHODS), default=sorted(METHODS))
    parser.add_argument("--chunks", nargs="+", type=int, default=[20_000])
    parser.add_argument("--folder", type=Path, help="where indexes stay, as METHOD-CHUNKS")
    run_or_compare(parser, arguments, measurements, compared)


if __name__ == "__main__":
    from benchmarks import opening  # a process of its own finds what it calls by the name of the module

    opening.main()
