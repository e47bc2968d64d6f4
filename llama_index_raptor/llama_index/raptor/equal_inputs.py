"""`EqualInputs`: finds the summaries that rules would write from the same texts once more."""

from collections.abc import Mapping, Sequence

from llama_index.ragkit import Summarizer
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.storage.records import Record
from llama_index.raptor.config import TreeConfig

__all__ = ["EqualInputs"]


class EqualInputs:
    """The written summaries of a part of the tree, by what they were written from.

    A change below a summary changes its id, but most summaries above a new chunk are written from the texts of the
    summary that they replace: its one new child reads like the old one. Rules write the same from the same texts, so
    the old text and its vector are kept. A language model may not, and the cache keeps its replies.

    Parameters
    ----------
    summarizer, config : those of the index
    written : the records of the summaries; those of an earlier version do not say what they were written from
    """

    def __init__(self, summarizer: Summarizer | None, config: TreeConfig, written: Mapping[str, Record]) -> None:
        self._rules: tuple[str, ...] = ()
        if summarizer is not None and not summarizer.needs_llm:
            limits = config.summary_tokens, config.max_cluster_tokens
            self._rules = (
                *map(str, limits),
                *(f"{key}={value}" for key, value in sorted(summarizer.fingerprint.items())),
            )
        self._names = {row["inputs"]: name for name, row in written.items() if "inputs" in row} if self._rules else {}

    def __len__(self) -> int:
        return len(self._names)

    def summary_of(self, texts: Sequence[str]) -> str | None:
        """The id of a summary that was written from these texts, in this order; None if there is none."""
        return self._names.get(self._digest(texts))

    def record(self, texts: Sequence[str]) -> Record:
        """What the record of a summary of these texts says of them; empty if a language model writes it."""
        return {"inputs": self._digest(texts)} if self._rules else {}

    def _digest(self, texts: Sequence[str]) -> str:
        return content_id(*self._rules, *texts)
