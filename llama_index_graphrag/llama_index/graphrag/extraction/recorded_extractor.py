"""`RecordedExtractor`: entities and relations from existing records, such as the output of the command-line tool."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms import LLM
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.graphrag.graph.statement import ChunkStatements
from llama_index.graphrag.published.run import PublishedRun, opened
from llama_index.ragkit import Estimate, Extraction, ExtractionContext, NodeExtractor, Steps
from llama_index.ragkit.errors import ConfigurationError, ExtractionError
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.validation import check_component

__all__ = ["RecordedExtractor", "published_nodes"]

_OPTIONS = ("cache", "num_workers", "show_progress", "on_error")  # that the fallback takes from this extractor
Given = Mapping[str, Mapping[str, Sequence[Sequence[Any]]]]


class RecordedExtractor(NodeExtractor):
    """Takes entities and relations from records, and reads nodes without a record with another extractor, if any.

    A node is looked up by its id, then by its text (ignoring white space). Without `fallback` no model is called, and a
    node without a record counts as failed. `index.retry_failed()` looks it up again after you add records, or load the
    index with a fallback.

    Parameters
    ----------
    records : node id or text -> {"entities": [[name, type, description], ...], "relations": [[source, target,
        description, strength], ...]}, with "claims": [[subject, object, type, status, start, end, description,
        quotation], ...] if there are any; trailing fields may be missing
    fallback : reads the nodes without a record, for example those of later documents. It uses its own prompts, model
        and parameters, or the model of the index if it has none [None]

    Raises
    ------
    ConfigurationError
        If a record does not have that form, or `fallback` is not an extractor of Graph RAG.
    """

    method: ClassVar[str] = "graphrag"

    fallback: NodeExtractor | None = Field(default=None, exclude=True)

    _records: dict[str, Record] = PrivateAttr(default_factory=dict)

    def __init__(self, records: Given | None = None, **kwargs: Any) -> None:
        if kwargs.get("fallback") is not None:
            wanted = "an extractor of Graph RAG, such as EntityExtractor() or CooccurrenceExtractor()"
            check_component("fallback", kwargs["fallback"], NodeExtractor, wanted, "graphrag")
        super().__init__(**kwargs)
        self.add(records or {})

    @property
    def needs_llm(self) -> bool:  # type: ignore[override]  # a value of the class in all others
        """Whether the fallback calls an LLM."""
        return self.fallback is not None and self.fallback.needs_llm

    @property
    def reads_documents(self) -> bool:
        """Whether the fallback reads the nodes of a document together."""
        return self.fallback is not None and self.fallback.reads_documents

    def _get_prompt_modules(self) -> PromptMixinType:
        return {} if self.fallback is None else {"fallback": self.fallback}

    def add(self, records: Given) -> None:
        """Add records; a record of the same id or text replaces the earlier one."""
        for key, record in records.items():
            try:
                plain = {name: record[name] for name in ("entities", "relations")}
                plain["claims"] = record.get("claims", ())
                self._records[_squeezed(key)] = ChunkStatements.from_record(plain, "", "").record()
            except (KeyError, TypeError) as error:
                raise ConfigurationError(
                    f"The record of {key[:80]!r} must be {{'entities': [[name, type, description], ...], "
                    f"'relations': [[source, target, description, strength], ...]}}: {error!r}."
                ) from error

    @classmethod
    def from_published(cls, run: PublishedRun | str | Path, **kwargs: Any) -> "RecordedExtractor":
        """The records of a run of the command-line tool, by the ids of its text units (:func:`published_nodes`).

        Parameters
        ----------
        run : the run as read, or its `output` folder, with the errors of :func:`~llama_index.graphrag.read_parquet`
        """
        read = opened(run)
        return cls({chunk.chunk_id: chunk.record() for chunk in read.chunks}, **kwargs)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Only the class: you may add records as the corpus grows, and a fallback."""
        return {"class": type(self).__name__}

    @immediate
    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Record:
        """Look up one node."""
        record = self._record_of(node)
        if record is None:
            raise ExtractionError(
                f"There is no record for node {node.node_id!r}, by its id or its text. Add one to the "
                "RecordedExtractor, or give it an extractor that reads such nodes as fallback=."
            )
        return record

    def extract(
        self, nodes: Sequence[BaseNode], *, siblings: Sequence[BaseNode] = (), llm: LLM | None = None, **options: Any
    ) -> Steps[list[Extraction]]:
        """Like :meth:`~llama_index.ragkit.NodeExtractor.extract`; the fallback reads nodes without a record."""
        own = {name: getattr(self, name) for name in _OPTIONS if options.get(name) is None}
        given: dict[str, Any] = {**options, **own, "siblings": [*siblings, *nodes], "llm": self.llm or llm}
        if self.fallback is None:
            return (yield from super().extract(nodes, **given))
        found: dict[int, Extraction] = {}
        recorded = [self._record_of(node) is not None for node in nodes]
        for reads, part in ((super().extract, True), (self.fallback.extract, False)):
            places = [place for place, is_recorded in enumerate(recorded) if is_recorded is part]
            if places:
                extractions = yield from reads([nodes[place] for place in places], **given)
                found.update(zip(places, extractions, strict=True))
        return [found[place] for place in range(len(nodes))]

    def estimate(self, nodes: Sequence[BaseNode], llm: LLM | None = None) -> Estimate:
        """The LLM work for the nodes without a record."""
        if self.fallback is None:
            return Estimate()
        return self.fallback.estimate([node for node in nodes if self._record_of(node) is None], self.llm or llm)

    def _record_of(self, node: BaseNode) -> Record | None:
        keys = (_squeezed(key) for key in (node.node_id, plain_text(node)))
        return next((self._records[key] for key in keys if key in self._records), None)


def published_nodes(run: PublishedRun) -> list[TextNode]:
    """The text units of a run as nodes, with their ids, documents and positions."""
    return [
        TextNode(
            id_=chunk.chunk_id,
            text=run.texts[chunk.chunk_id],
            start_char_idx=chunk.position,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=chunk.document_id)}
            if chunk.document_id
            else {},
        )
        for chunk in run.chunks
    ]


def _squeezed(text: str) -> str:
    return " ".join(text.split())
