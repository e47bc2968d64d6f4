"""`ExtractionRun`: one extraction from many nodes: their order, the results, and the log."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from llama_index.core.schema import BaseNode

from llama_index.ragkit.errors import ExtractionError, ParseError
from llama_index.ragkit.extraction.context import Extraction, ExtractionContext, Record
from llama_index.ragkit.extraction.failure_watch import FailureWatch
from llama_index.ragkit.ids import reading_key
from llama_index.ragkit.llm.usage import status
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.steps import Outcome, Steps, gather
from llama_index.ragkit.storage.nodes import plain_text, sort_key

__all__ = ["ExtractionRun", "read_together"]

Extract = Callable[[Sequence[BaseNode], ExtractionContext], Steps[list[Record]]]


def read_together(nodes: Sequence[BaseNode], documents: bool) -> list[list[int]]:
    """Places of the nodes with text, in groups: one by one, or by document in the order of the documents' first nodes.

    Within a document they are in reading order: by offset, or by content if that is unknown. A node without a
    source document is a document of its own.
    """
    groups: dict[tuple[bool, str], list[int]] = {}
    for i, node in enumerate(nodes):
        if plain_text(node).strip():
            of_document = documents and node.ref_doc_id is not None
            groups.setdefault((of_document, (of_document and node.ref_doc_id) or str(i)), []).append(i)
    return [sorted(group, key=lambda i: reading_key(sort_key(nodes[i]))) for group in groups.values()]


class ExtractionRun:
    """The nodes of one extraction, in groups of places that are read together, with a context for each group.

    A node without text is in no group.
    """

    def __init__(
        self, nodes: Sequence[BaseNode], groups: Sequence[Sequence[int]], contexts: Sequence[ExtractionContext]
    ) -> None:
        self._nodes, self._groups, self._contexts = nodes, groups, contexts
        self._outcomes: dict[int, Outcome[list[Record]]] = {}

    def read(
        self, extract: Extract, watch: FailureWatch, workers: int, description: str, show_progress: bool
    ) -> Steps[None]:
        """Read all groups, `workers` at once; `extract` returns a record for each node of a group.

        A group with the same texts as another waits for it and uses its cached replies.
        """
        texts = [tuple(plain_text(node).strip() for node in self._nodes_of(g)) for g in range(len(self._groups))]
        firsts = set({texts[g]: g for g in reversed(range(len(texts)))}.values())
        for batch in (sorted(firsts), [g for g in range(len(texts)) if g not in firsts]):
            if batch:
                jobs = [partial(self._read_group, extract, watch, g) for g in batch]
                found = yield from gather(jobs, workers, description, show_progress, status)
                self._outcomes.update(zip(batch, found, strict=True))
        watch.check({_name(self._nodes_of(g)): outcome for g, outcome in sorted(self._outcomes.items())})

    def _nodes_of(self, g: int) -> list[BaseNode]:
        return [self._nodes[i] for i in self._groups[g]]

    def _read_group(self, extract: Extract, watch: FailureWatch, g: int) -> Steps[list[Record]]:
        context = self._contexts[g]
        records = yield from watch.run(partial(extract, self._nodes_of(g), context), context.lost)
        if context.repeated:
            dropped = {**records[0].get("dropped", {}), "repeated": context.repeated}
            records[0] = {**records[0], "dropped": dropped}
        return records

    def _errors_of(self, g: int) -> Iterator[tuple[int, Exception]]:
        """The failures of a group by node: of the whole group, or of pieces."""
        for place, i in enumerate(self._groups[g]):
            error = self._outcomes[g].error or self._contexts[g].lost.get(place)
            if error is not None:
                yield i, error

    @property
    def has_failed(self) -> bool:
        """Whether anything could not be read."""
        return any(True for g in self._outcomes for _ in self._errors_of(g))

    def log(
        self, logger: logging.Logger, who: str, model: str | None, falls_back: bool, owners: Sequence[object]
    ) -> None:
        """Log how many nodes failed for an extractor with a model, and why the first did, without secrets of `owners`.

        If the caller falls back to another way of reading failed groups, it logs these itself.
        """
        told = dict(
            found
            for g, outcome in self._outcomes.items()
            if not falls_back or outcome.error is None
            for found in self._errors_of(g)
        )
        if told:
            by, first = "" if model is None else f" with the model {model!r}", _reason(told[min(told)], owners)
            logger.log(
                logging.ERROR if all(outcome.error for outcome in self._outcomes.values()) else logging.WARNING,
                "%s failed at %d of %d nodes%s. An index lists them in failures() and tries them again in "
                "retry_failed(). The first: %s",
                who, len(told), len(self._nodes), by, first,
            )  # fmt: skip

    def extractions(self, owners: Sequence[object]) -> list[Extraction]:
        """The extraction from each node, in order; an empty record for a node without text. Reasons hide the secrets of
        `owners`.
        """
        found = {}
        for g, group in enumerate(self._groups):
            errors, records = dict(self._errors_of(g)), self._outcomes[g].value
            for place, i in enumerate(group):
                error = errors.get(i)
                found[i] = Extraction(
                    self._nodes[i].node_id,
                    None if records is None else records[place],
                    None if error is None else _reason(error, owners),
                    list(self._contexts[g].cache_keys),
                    getattr(error, "step", ""),
                    self._nodes[group[0]].node_id,
                    isinstance(error, ParseError),
                )
        return [found.get(i, Extraction(node.node_id, {})) for i, node in enumerate(self._nodes)]


def _name(nodes: Sequence[BaseNode]) -> str:
    """Nodes that are read together, for messages."""
    name = f"Node {nodes[0].node_id!r}"
    return name if len(nodes) == 1 else f"{name} and {len(nodes) - 1} more of its document"


def _reason(error: Exception, owners: Sequence[object]) -> str:
    return redact(str(error) if isinstance(error, ExtractionError) else f"{type(error).__name__}: {error}", *owners)
