"""Writing the summaries of an index, and the public methods of an index that has them."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from llama_index.ragkit.errors import ExtractionError, ParseError
from llama_index.ragkit.extraction.failure_watch import FailureWatch, all_failed
from llama_index.ragkit.extraction.summarizers import Summarizer
from llama_index.ragkit.index.builder import Failure, SummaryBuilder
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.writer import IndexWriter
from llama_index.ragkit.llm.usage import counted
from llama_index.ragkit.steps import Steps, arun_steps, gather, run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record

__all__ = ["SummaryMethods", "SummaryWriter", "Written"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written:
    """A summary."""

    text: str
    cache_keys: list[str]  # the entries of the cache that it used
    error: str = ""  # why the summarizer failed, where another wrote it
    by: str = ""  # the class that wrote it in place of the one that failed, if one did
    repeated: int = 0  # how often the reply repeated its end, or a sentence, which was cut

    def record(self) -> Record:
        """What is stored of it beside the text."""
        record: Record = {"cache_keys": self.cache_keys}
        if self.by:
            record |= {"failed": self.error, "by": self.by}
        if self.repeated:
            record["dropped"] = {"repeated": self.repeated}
        return record


class SummaryWriter:
    """Writes summaries, several at a time, and releases their entries in the extraction cache.

    Parameters
    ----------
    storage, resources : of the index
    max_tokens : the requested length of a summary
    """

    def __init__(self, storage: IndexStorage, resources: Resources, max_tokens: int) -> None:
        self._storage = storage
        self._resources = resources
        self._max_tokens = max_tokens
        self._reasons: dict[str, str] = {}  # of the summaries that failed

    def write(
        self, given: Mapping[str, Sequence[str]], description: str
    ) -> Steps[tuple[dict[str, Written], dict[str, Exception]]]:
        """Write several summaries, `num_workers` at a time.

        Parameters
        ----------
        given : id of the summary -> the summarised texts, in reading order; empty ones are left out
        description : of the progress bar

        Returns
        -------
        The summaries by id, and the errors of those that failed and that nothing else could write.

        Raises
        ------
        ConfigurationError, LanguageModelError
            For an error that the others would meet too; if the server fails in the same way several times in a row; if
            each of several failed without a reply of the model, and none of them had failed before.
        """
        resources = self._resources
        needs_llm = resources.summarizer is not None and resources.summarizer.needs_llm
        again = self._reasons.keys() & given.keys()
        jobs = {name: partial(self._write_one, name, texts) for name, texts in given.items()}
        watch = FailureWatch("summaries", resources.on_error)
        outcomes = yield from resources.run(jobs, watch, "Summary {!r}", description, needs_llm=needs_llm)
        written: dict[str, Written] = {}
        failed: dict[str, Exception] = {}
        for name, outcome in outcomes.items():
            if outcome.error is not None:
                failed[name] = outcome.error
                self._reasons[name] = self._resources.reason(outcome.error)
            else:
                written[name] = outcome.unwrap()
                self._reasons.pop(name, None)
        silent = {
            f"Summary {name!r}": str(error) for name, error in failed.items() if not isinstance(error, ParseError)
        }
        if needs_llm and not again and 1 < len(silent) == len(given):
            raise all_failed("summaries", silent)
        written |= yield from self._by_rules(given, failed)
        return {name: written[name] for name in given if name in written}, failed

    def _by_rules(self, given: Mapping[str, Sequence[str]], failed: dict[str, Exception]) -> Steps[dict[str, Written]]:
        """The summaries that failed, as the fallback writes them; they are then failed no more."""
        twin = self._resources.fallback_summarizer
        if twin is None or not failed:
            return {}
        jobs = [partial(self._write_one, name, given[name], twin) for name in failed]
        outcomes = yield from gather(jobs)
        by, first = type(twin).__name__, self._resources.reason(next(iter(failed.values())))
        written: dict[str, Written] = {}
        for name, outcome in zip(list(failed), outcomes, strict=True):
            if outcome.value is not None and outcome.value.text:
                written[name] = replace(outcome.value, error=self._resources.reason(failed.pop(name)), by=by)
        if written:
            counts = len(written), len(given)
            self._resources.note_fallback(by, self._resources.summarizer, counts, "summaries", first)
        return written

    def failures(self, names: Iterable[str], by_rules: Mapping[str, Record] = MappingProxyType({})) -> list[Failure]:
        """Summaries that are missing, with the reasons that this process knows, and those that rules have written.

        Parameters
        ----------
        by_rules : what `Written.record` gave for the latter
        """
        missing = [Failure(name, "summary", self._reasons.get(name, "It is not written yet.")) for name in names]
        return [*missing, *(Failure(name, "summary", row["failed"], row["by"]) for name, row in by_rules.items())]

    def _write_one(self, name: str, given: Sequence[str], by: Summarizer | None = None) -> Steps[Written]:
        texts = [text for text in given if text.strip()]
        if not texts:
            raise ExtractionError(f"None of the {len(given)} nodes to be summarised has text.")
        with counted() as usage:
            text, keys = yield from self._resources.summarize(
                texts, self._max_tokens, self._storage.cache_user(name), by
            )
        return Written(text, keys, repeated=usage.repeated)

    def release(self, before: Mapping[str, Record], after: Mapping[str, Record] = MappingProxyType({})) -> Steps[None]:
        """Release entries of the cache that the records of summaries used `before`, and do not `after`."""
        uses = {}
        for name, record in before.items():
            used = after[name]["cache_keys"] if name in after else ()
            uses[self._storage.cache_user(name)] = [key for key in record["cache_keys"] if key not in used]
        yield from self._resources.release(uses)

    def report(self, failed: Mapping[str, Exception], among: Iterable[str]) -> None:
        """Log which summaries failed, or raise the first error, depending on `on_error`."""
        if not failed:
            return
        name, error = next(iter(failed.items()))
        logger.warning(
            "%d of %d summaries failed, among them %s: %s. index.retry_failed() retries them.",
            len(failed), len(list(among)), name, str(error).rstrip("."),
        )  # fmt: skip
        if self._resources.on_error == "raise":
            raise error


class SummaryMethods:
    """The public methods of an index whose builder is a :class:`~llama_index.ragkit.index.builder.SummaryBuilder`."""

    builder: SummaryBuilder[Any, Any]
    writer: IndexWriter[Any]

    def write_summaries(self) -> int:
        """Write the summaries that are missing after a delete or a failure.

        Returns
        -------
        How many summaries are still missing.
        """
        return run_steps(self._revise(self.builder.write_missing))

    async def awrite_summaries(self) -> int:
        """As :meth:`write_summaries`."""
        return await arun_steps(self._revise(self.builder.write_missing))

    def rebuild(self) -> int:
        """Recompute the summarised groups as a build from all documents at once would.

        Unchanged groups keep their summary and cost nothing.

        Returns
        -------
        How many summaries are missing.
        """
        return run_steps(self._revise(self.builder.rebuild))

    async def arebuild(self) -> int:
        """As :meth:`rebuild`."""
        return await arun_steps(self._revise(self.builder.rebuild))

    def _revise(self, work: Callable[[Any], Steps[Any]]) -> Steps[int]:
        yield from self.writer.revise(work)
        return self.builder.missing(self.writer.state)
