"""`RecordedExtractor`: entities and relations from existing records, such as the output of the command-line tool."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.graphrag.graph.statement import ChunkStatements
from llama_index.graphrag.published.run import PublishedRun, opened
from llama_index.ragkit import ExtractionContext, NodeExtractor, Record, Steps, plain_text
from llama_index.ragkit.errors import ConfigurationError, ExtractionError

__all__ = ["RecordedExtractor", "published_nodes"]

Given = Mapping[str, Mapping[str, Sequence[Sequence[Any]]]]


class RecordedExtractor(NodeExtractor):
    """Takes entities and relations from records, without calling a model.

    A node is looked up by its id, then by its text (ignoring white space). A node without a record counts as failed;
    `index.retry_failed()` looks it up again after records were added.

    Parameters
    ----------
    records : node id or text -> {"entities": [[name, type, description], ...], "relations": [[source, target,
        description, strength], ...]}, with "claims": [[subject, object, type, status, start, end, description,
        quotation], ...] if there are any; trailing fields may be missing

    Raises
    ------
    ConfigurationError
        If a record is not of that form.
    """

    method: ClassVar[str] = "graphrag"
    needs_llm: ClassVar[bool] = False

    _records: dict[str, Record] = PrivateAttr(default_factory=dict)

    def __init__(self, records: Given | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add(records or {})

    def add(self, records: Given) -> None:
        """Add records; one of the same id or text replaces the earlier one."""
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
        run : as read, or the `output` folder of the run, which needs the extra `parquet`

        Raises
        ------
        ImportError, ConfigurationError
            See :func:`~llama_index.graphrag.read_parquet`.
        """
        read = opened(run)
        return cls({chunk.chunk_id: chunk.record() for chunk in read.chunks}, **kwargs)

    @property
    def fingerprint(self) -> dict[str, str]:
        """The class alone: records may be added as the corpus grows."""
        return {"class": type(self).__name__}

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Look up one node."""
        for key in (node.node_id, plain_text(node)):
            record = self._records.get(_squeezed(key))
            if record is not None:
                return record
        raise ExtractionError(f"There is no record for node {node.node_id!r}, by its id or its text.")
        yield


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
