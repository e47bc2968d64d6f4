"""`python -m benchmarks.one_path`: what each method costs the processor, in memory and served from stores.

An index is built over made-up documents, asked, written to, saved, and opened by another process, through LlamaIndex's
classes and keywords of ours that stay, so that one file measures commits before and after a change:

    python -m benchmarks.one_path --out before.json
    python -m benchmarks.one_path --compare before.json after.json

Seconds are those of the process, user and system, on one thread, so that what else the machine does counts for little;
each figure is the least of `--repeats` runs. Of an answer two digests are kept: of its node ids, and of its scores to
four places.
"""

import argparse
import hashlib
import inspect
import re
import statistics
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core import Document, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from benchmarks.apart import ONE_THREAD, apart
from benchmarks.made_up_texts import zipf_words
from benchmarks.measuring import Times, peak_mb, resident_mb, run_or_compare
from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.mrag import MRAGIndex, SplitEmbedding
from llama_index.pgrag import OutlineExtractor, PGRAGIndex
from llama_index.ragkit import ExtractiveSummarizer, MatrixVectorStore, load_storage_context, persist
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import HashEmbedding
from llama_index.raptor import RaptorIndex
from llama_index.sprag import RuleContext, SpRAGIndex

__all__ = ["digest", "made_up_questions", "main", "opened", "used"]

TOP, DIMENSION = 10, 128
SECTIONS, TOPICS = 10, 10  # chunks of a document; one document in so many passes a filter
PASSES = 3  # over all questions; each counts by its fastest
MARKED = 1.1  # ratio
_LETTERS = str.maketrans("0123456789wq", "aeioumnrstbn")  # of words that have digits otherwise
_THINGS = ("bridge", "engine", "harbour", "loom", "mill")

METHODS: Mapping[str, tuple[Any, Callable[[], dict[str, Any]]]] = {
    "core": (VectorStoreIndex, dict),  # LlamaIndex's own, in memory only
    "gemrag": (GEMRAGIndex, lambda: {"extractor": KeyphraseQuestionExtractor(), "summarizer": ExtractiveSummarizer()}),
    "graphrag": (GraphRAGIndex, lambda: {"extractor": CooccurrenceExtractor(), "summarizer": ExtractiveSummarizer()}),
    "hipporag": (HippoRAGIndex, lambda: {"extractor": NounPhraseExtractor()}),
    "mrag": (MRAGIndex, lambda: {"embed_model": SplitEmbedding(WordVectors(), num_heads=4)}),
    "pgrag": (PGRAGIndex, lambda: {"extractor": OutlineExtractor()}),
    "raptor": (RaptorIndex, lambda: {"summarizer": ExtractiveSummarizer()}),
    "sprag": (SpRAGIndex, lambda: {"extractor": RuleContext()}),
}
WAYS, _KEY = ("memory", "stores"), ("method", "way", "chunks", "step")


class WordVectors(HashEmbedding):
    """The sum of a random vector for each word: texts that share words are near to each other, at next to no cost."""

    def _get_text_embedding(self, text: str) -> list[float]:
        total = np.sum([_vector(word) for word in re.findall(r"\w+", text.lower()) or [""]], axis=0)
        return (total / np.linalg.norm(total)).tolist()  # type: ignore[no-any-return]


@lru_cache(None)
def _vector(word: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIMENSION)


def section(number: int) -> tuple[str, str]:
    """A section of a document, and a question about it; names and words are as frequent as those of a language."""
    rng = np.random.default_rng([number, 4])
    one, other, third, fourth = (_words(rng, 2).title() for _ in range(4))
    thing, place = rng.choice(_THINGS), f"{_words(rng, 1).title()}stadt"
    heading, rest = "##" if number % SECTIONS else "#", " ".join(f"{_words(rng, 15).capitalize()}." for _ in range(2))
    built = f"The {thing} of {third} was built by {fourth} in {rng.integers(1700, 2000)}."
    text = f"{heading} The {thing} of {third}\n\n{one} met {other} in {place}. {built} {rest}"
    return text, f"Who built the {thing} of {third}? Whom did {one} meet in {place}?"


def _words(rng: np.random.Generator, count: int) -> str:
    return zipf_words(rng, count).translate(_LETTERS)


def document(number: int, sections: int = SECTIONS) -> Document:
    """A document of so many sections, each a chunk, with its topic as metadata."""
    text = "\n\n".join(section(number * SECTIONS + i)[0] for i in range(sections))
    made = Document(text=text, id_=f"d{number}", metadata={"topic": number % TOPICS})
    made.excluded_embed_metadata_keys = made.excluded_llm_metadata_keys = ["topic"]
    return made


def made_up_questions(chunks: int, count: int) -> list[str]:
    return [section(int(i))[1] for i in np.random.default_rng(5).choice(chunks, count, replace=False)]


def digest(found: Sequence[NodeWithScore]) -> str:
    parts = ([each.node.node_id for each in found], [f"{each.get_score():.4f}" for each in found])
    return " ".join(hashlib.sha256("\n".join(part).encode()).hexdigest()[:8] for part in parts)


def _ask(retrievers: Sequence[Any], asked: Sequence[str]) -> dict[str, Any]:
    """Milliseconds of a question, and the answers; each question goes to the next retriever."""
    retrievers[0].retrieve(asked[0])  # not counted: what is loaded at first use
    passes, found = [], list[list[NodeWithScore]]()
    for _ in range(PASSES):
        times = Times()
        turn = zip(cycle(retrievers), asked, strict=False)
        found = [times.run(partial(retriever.retrieve, question)) for retriever, question in turn]
        passes.append(times.cpu_s)
    fastest = [1000 * min(each) for each in zip(*passes, strict=True)]
    answers = [digest(each) for each in found]
    return {"median": statistics.median(fastest), "mean": statistics.mean(fastest), "answers": answers}


def _context(way: str, folder: str, spaces: dict[str, Any]) -> Any:
    if way == "memory":
        return load_storage_context(folder) if any(Path(folder).iterdir()) else StorageContext.from_defaults()
    known = inspect.signature(storage_context).parameters
    name = "vectors" if "vectors" in known else "vector_stores"  # of an older commit that is compared with
    stores = {name: lambda space, _: spaces.setdefault(space, MatrixVectorStore())}
    return storage_context(f"sqlite:///{folder}/index.db", **stores)


def _figures(times: Mapping[str, Times]) -> dict[str, dict[str, Any]]:
    """Medians, in the unit that the name of a step ends with."""
    unit = {"s": 1, "ms": 1000}
    return {step: {"median": unit[step.split()[-1]] * statistics.median(each.cpu_s)} for step, each in times.items()}


def used(method: str, way: str, chunks: int, questions: int, writes: int, folder: str) -> dict[str, Any]:
    """Build an index, ask it and write to it, and leave it in a folder; figures by step."""
    cls, components = METHODS[method]
    spaces: dict[str, Any] = {}
    options = {"embed_model": WordVectors(), **components(), "transformations": [MarkdownNodeParser()]}
    if way == "stores" and "serve_from" in inspect.signature(cls).parameters:
        options["serve_from"] = "stores"
    count = chunks // SECTIONS
    documents, new = ([document(number) for number in range(*ends)] for ends in ((count,), (count, count + writes)))
    asked, times, context = (
        made_up_questions(chunks, questions),
        defaultdict[str, Times](Times),
        _context(way, folder, spaces),
    )
    index = times["build s"].run(lambda: cls.from_documents(documents, storage_context=context, **options))
    built_mb = peak_mb()
    retriever = index.as_retriever(similarity_top_k=TOP)
    topics = [MetadataFilters(filters=[MetadataFilter(key="topic", value=topic)]) for topic in range(TOPICS)]
    narrowed = [index.as_retriever(similarity_top_k=TOP, filters=topic) for topic in topics]
    asking = {"question ms": _ask([retriever], asked), "filtered question ms": _ask(narrowed, asked)}
    works: list[tuple[str, Callable[[], Any]]] = [("insert ms", partial(index.insert, each)) for each in new]
    short = (document(number, 1) for number in range(count + writes, count + 2 * writes))
    works += [("insert of one chunk ms", partial(index.insert, each)) for each in short]
    gone = (each.id_ for each in documents[:: max(1, count // writes)][:writes])
    works += [("delete ms", partial(index.delete_ref_doc, each, delete_from_docstore=True)) for each in gone]
    for (step, write), text in zip(works, cycle(asked), strict=False):
        times[step].run(write)
        times["question after a write ms"].run(partial(retriever.retrieve, text))
    if way == "memory":
        times["persist s"].run(partial(persist, index.storage_context, folder))
    for space, store in spaces.items():
        store.persist(f"{folder}/{space}.vectors")
    return {**_figures(times), **asking, "build, peak MB": {"median": built_mb}}


def opened(method: str, way: str, chunks: int, questions: int, folder: str) -> dict[str, Any]:
    """Open the index of a folder; figures by step."""
    files = Path(folder).glob("*.vectors")
    spaces: dict[str, Any] = {path.stem: MatrixVectorStore.from_persist_path(str(path)) for path in files}
    options = {"embed_model": WordVectors(), **METHODS[method][1]()}
    asked, times = made_up_questions(chunks, questions), defaultdict[str, Times](Times)
    index = times["open s"].run(lambda: load_index_from_storage(_context(way, folder, spaces), **options))
    retriever = index.as_retriever(similarity_top_k=TOP)
    times["first question ms"].run(partial(retriever.retrieve, asked[0]))
    figures = _figures(times)
    figures["first question ms"]["answers"] = [digest(retriever.retrieve(question)) for question in asked]
    return {**figures, "opened, resident MB": {"median": resident_mb()}, "opened, peak MB": {"median": peak_mb()}}


def _least(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The runs of one step as one."""
    least: dict[str, Any] = {name: round(min(run[name] for run in runs), 4) for name in runs[0] if name != "answers"}
    if "answers" in runs[0]:
        alike = zip(*(run["answers"] for run in runs), strict=True)
        least["answers"] = [" or ".join(dict.fromkeys(each)) for each in alike]
    return least


def measurements(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each step of each method and way as it was measured."""
    for method in options.methods:
        for way in options.ways if method != "core" else ["memory"]:
            runs = []
            for _ in range(options.repeats):
                with tempfile.TemporaryDirectory() as folder:
                    given = (method, way, options.chunks, options.questions)
                    made = apart(used, *given, options.writes, folder, **ONE_THREAD)
                    runs.append({**made, **apart(opened, *given, folder, **ONE_THREAD)})
            for step in runs[0]:
                found = _least([run[step] for run in runs])
                yield {"method": method, "way": way, "chunks": options.chunks, "step": step, **found}


def compared(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table of two runs, a line a step."""
    yield "| method | way | step | before | after | ratio | |\n|---|---|---|---|---|---|---|"
    earlier = {tuple(row[name] for name in _KEY): row for row in before}
    for row, old in ((row, earlier.get(tuple(row[name] for name in _KEY), {})) for row in after):
        for name in (name for name in ("median", "mean") if name in row and name in old):
            ratio = row[name] / max(old[name], 1e-9)
            marks = [f"above {MARKED}"] if ratio > MARKED else []
            pairs = list(zip(old.get("answers", ()), row.get("answers", ()), strict=True)) if name == "median" else []
            if differ := sum(one != other for one, other in pairs):
                nodes = sum(one.split()[0] != other.split()[0] for one, other in pairs)
                marks.append(f"{differ} of {len(pairs)} answers differ, {nodes} of them in their nodes")
            step = row["step"] if name == "median" else f"{row['step']}, mean"
            cells = (row["method"], row["way"], step, f"{old[name]:.4g}", f"{row[name]:.4g}", f"{ratio:.2f}")
            yield f"| {' | '.join(cells)} | {'; '.join(marks)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line, or compare two runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_path", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--methods", nargs="+", choices=sorted(METHODS), default=sorted(METHODS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--chunks", type=int, default=3000)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--writes", type=int, default=20, help="inserts, and as many deletes")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each method and way")
    run_or_compare(parser, arguments, measurements, compared)


if __name__ == "__main__":
    from benchmarks import one_path  # a process of its own finds what it calls by the name of the module

    one_path.main()
