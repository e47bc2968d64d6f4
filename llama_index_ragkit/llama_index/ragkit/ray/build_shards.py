"""Shards of documents are inserted into an index, on Ray or one after another.

A worker opens the index, reads a shard, splits, extracts and embeds it, and writes it into the stores; nothing passes
through the process that calls :func:`build`. Workers extract and embed at the same time, which is where the time goes
with a real model; their writes take turns, a transaction each.

What a method derives from everything that is given together, such as RAPTOR's tree, waits for the end, when one process
derives it.

Documents that are stored unchanged are skipped by their hashes, and ids of nodes follow from their content. So a build
that was killed is resumed by calling it again with the same shards.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Any, Literal

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import Document

from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError, RagKitError
from llama_index.ragkit.extras import need
from llama_index.ragkit.index.derived_index import DerivedIndex
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.validation import check_choice, check_count

__all__ = ["BuiltShard", "Shard", "build"]

logger = logging.getLogger(__name__)

Shard = Callable[[], Iterable[Document]]
"""Reads the documents of a shard, in the worker; their ids must be the same at each call."""

_PATIENCE = 20  # writes that may be overtaken in a row, each after it has been planned some times


@dataclass(frozen=True)
class BuiltShard:
    """What was done with a shard.

    Attributes
    ----------
    number : of the shard, from 0
    documents : how many it has
    written : how many of them were new or had changed
    seconds : what it took
    error : why it ended early; empty if it did not
    """

    number: int
    documents: int
    written: int
    seconds: float
    error: str = ""


def build(
    open_index: Callable[[], BaseIndex[Any]],
    shards: Sequence[Shard],
    *,
    on: Literal["auto", "ray", "here"] = "auto",
    workers: int | None = None,
    documents_at_once: int = 100,
) -> list[BuiltShard]:
    """Insert the documents of shards into an index that is served from stores.

    Ray is started on this machine unless the process is connected to a cluster (`ray.init(address=...)`). Functions are
    sent to its workers, which need the same packages and access to the stores.

    Parameters
    ----------
    open_index : opens the index, in each worker: `load_index_from_storage(storage_context(url, vectors=...), ...)`.
        It must exist; an empty one is made by `HippoRAGIndex([], storage_context=storage_context(url, vectors=...))`
    shards : a function each, which reads documents
    on : where shards are built. "ray": on Ray; "here": in this process, one after another; "auto": on Ray if it is
        installed
    workers : shards at the same time on Ray; as many as Ray has processors
    documents_at_once : documents of one write. The larger, the fewer transactions; the smaller, the less is done again
        after a worker was killed

    Returns
    -------
    What was done with each shard, in order. A shard that failed does not end the others.

    Raises
    ------
    ConfigurationError
        If a parameter is invalid, or the index is not served from stores.
    RagKitError
        If every shard failed: the first reason.
    ImportError
        If Ray was asked for and is not installed.

    Examples
    --------
    >>> from functools import partial
    >>> def open_index():
    ...     context = storage_context("postgresql://user@host/database", vectors=pgvector)
    ...     return load_index_from_storage(context, embed_model=model, extractor=extractor)
    >>> def read(folder):
    ...     return SimpleDirectoryReader(folder, filename_as_id=True).load_data()
    >>> build(open_index, [partial(read, folder) for folder in folders])  # doctest: +SKIP
    """
    check_choice("on", on, ("auto", "ray", "here"))
    check_count("documents_at_once", documents_at_once, 1)
    check_count("workers", workers, 1, none_ok=True)
    index = _checked(open_index())
    tasks = [(open_index, shard, number, documents_at_once) for number, shard in enumerate(shards)]
    on_ray = on == "ray" or (on == "auto" and find_spec("ray") is not None)
    done = []
    for built in _on_ray(tasks, workers) if on_ray else (_build_shard(*task) for task in tasks):
        logger.log(
            logging.ERROR if built.error else logging.INFO,
            "Shard %d: %d documents, %d written, %.1f s%s",
            built.number, built.documents, built.written, built.seconds, f"; {built.error}" if built.error else "",
        )  # fmt: skip
        done.append(built)
    if done and all(built.error for built in done):
        raise RagKitError(f"No shard could be built. The first: {done[0].error}")
    if index.builder.waits_for_all:
        run_steps(index.writer.revise(index.builder.derive_waiting))
    return sorted(done, key=lambda built: built.number)


def _checked(index: BaseIndex[Any]) -> DerivedIndex[Any, Any]:
    if not isinstance(index, DerivedIndex) or index.storage.is_whole:
        raise ConfigurationError(
            f"Workers write to an index that is served from stores, and this {type(index).__name__} is not: make it "
            "over a storage context with vectors= that all of them can open."
        )
    return index


def _on_ray(tasks: Sequence[tuple[Any, ...]], workers: int | None) -> Iterator[BuiltShard]:
    ray = need("ray", 'build(on="ray")', "llama-index-ragkit[ray]")
    started = not ray.is_initialized()
    if started:
        ray.init(num_cpus=workers, include_dashboard=False)
    try:
        remote = ray.remote(_build_shard)
        at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        rest = iter(tasks)
        running = {remote.remote(*task): task[2] for task in islice(rest, at_once)}
        while running:
            (ended, *_), _ = ray.wait(list(running))
            number = running.pop(ended)
            try:
                yield ray.get(ended)
            except ray.exceptions.RayError as error:  # a worker was killed
                yield BuiltShard(number, 0, 0, 0.0, _reason(error))
            running.update({remote.remote(*task): task[2] for task in islice(rest, 1)})
    finally:
        if started:
            ray.shutdown()


def _build_shard(open_index: Callable[[], BaseIndex[Any]], shard: Shard, number: int, at_once: int) -> BuiltShard:
    """Insert the documents of one shard; errors are told, for the others go on."""
    start, seen, written = time.monotonic(), 0, 0
    error = ""
    try:
        index = _checked(open_index())
        index.writer.more_follows = True
        documents = iter(shard())
        while some := list(islice(documents, at_once)):
            written += sum(_write(index, some))
            seen += len(some)
    except Exception as raised:
        error = _reason(raised)
    return BuiltShard(number, seen, written, round(time.monotonic() - start, 3), error)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {redact(str(error))[:300]}"


def _write(index: BaseIndex[Any], documents: Sequence[Document]) -> list[bool]:
    """Which documents were new or changed. Beside many workers a write may be overtaken again and again."""
    for _ in range(_PATIENCE):
        try:
            return index.refresh_ref_docs(documents)
        except ConcurrentWriteError as error:
            overtaken = error
    raise overtaken
