"""`ContextExtractor`: describes documents and sections, for the headers of their chunks."""

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from pydantic import PrivateAttr

from llama_index.ragkit import Estimate, Extraction, NodeExtractor, Steps, content_id, offload
from llama_index.ragkit.storage.nodes import plain_text, sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.lexical_index import lexical_terms
from llama_index.ragkit.text.salient_terms import CorpusTerms
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.sprag.documents import ChunkPlace, document_key, in_order, page_of

__all__ = [
    "ContextExtractor",
    "Described",
    "Description",
    "DocumentChunks",
    "chunk_record",
    "document_chunks",
    "documents_of",
    "source_of",
]

_TITLE, _SUMMARY, _SECTION = "context_title", "context_summary", "context_section"


@dataclass(frozen=True)
class DocumentChunks:
    """A document as a sequence of chunks."""

    key: str  # its id, a UUID
    nodes: Sequence[BaseNode]  # its chunks in reading order
    goes_on: Sequence[bool]  # whether each chunk continues the one before


@dataclass(frozen=True)
class Description:
    """A description of a document."""

    title: str = ""  # "" if there is none
    summary: str = ""  # "" if there is none
    # titles of the sections of each chunk, from the highest; one entry per chunk
    sections: Sequence[Sequence[str]] = ()
    section_summaries: Sequence[str] = ()  # a sentence about the section of each chunk, "" if there is none
    source: str = ""  # a value that changes with the texts from which the description was made
    terms: Sequence[str] = ()  # words that set the document apart


@dataclass(frozen=True)
class Described:
    """The description of a document, or why there is none."""

    description: Description | None  # None after a failure, or if a model was needed but could not be called
    error: str = ""  # the reason for a failure; "" otherwise. With a description, a part of it failed
    cache_keys: Sequence[str] = ()  # entries of the extraction cache that it uses
    unreadable: bool = False  # whether it failed because a reply could not be used
    by: str = ""  # the class that described it, or its sections, without an LLM after another failed; "" if none did


class ContextExtractor(NodeExtractor):
    """Base of the extractors of context.

    As a transformation after a splitter, also in an `IngestionPipeline`, it writes the context of each node into its
    metadata (`context_title`, `context_summary`, `context_section`). Embedding models and rerankers see these, the LLM
    does not; the text is unchanged. As `extractor=` of a :class:`~llama_index.sprag.SpRAGIndex` it leaves the nodes
    unchanged, and the index takes the context that a pipeline wrote.

    Parameters
    ----------
    group_by : metadata key whose value names the document of a chunk [None: the file, if each page is a LlamaIndex
        document, else the LlamaIndex document]
    kwargs : see :class:`~llama_index.ragkit.NodeExtractor`
    """

    method: ClassVar[str] = "sprag"
    group_by: str | None = None

    # Contexts that a pipeline wrote, until the index takes them: descriptions without sections by source, sections by
    # node.
    _given: dict[str, Description] = PrivateAttr(default_factory=dict)
    _given_sections: dict[str, tuple[Sequence[str], str]] = PrivateAttr(default_factory=dict)

    # -- hooks of a subclass ----------------------------------------------------------------------------

    @abstractmethod
    def describe(
        self,
        documents: Sequence[DocumentChunks],
        known: Mapping[str, Description],
        *,
        may_call: bool,
        corpus: CorpusTerms | None = None,
        **run: Any,
    ) -> Steps[list[Described]]:
        """Describe documents.

        Parameters
        ----------
        known : earlier descriptions by document key; used if their source has not changed
        may_call : whether an LLM may be called
        corpus : the terms of all documents, including these [None: only of these]
        run : cache, number of workers and so on, see :meth:`~llama_index.ragkit.NodeExtractor.extract`
        """

    @property
    def needs_corpus(self) -> bool:
        """Whether a description depends on the terms of other documents."""
        return False

    # -- chunks -----------------------------------------------------------------------------------------

    def extract(self, nodes: Sequence[BaseNode], **run: Any) -> Steps[list[Extraction]]:
        """The document, the length and the terms of each chunk, for the search. No model is called."""
        records = yield from offload(lambda: [chunk_record(node, self.group_by) for node in nodes])
        return [Extraction(node.node_id, record) for node, record in zip(nodes, records, strict=True)]

    def estimate(self, nodes: Sequence[BaseNode], llm: LLM | None = None) -> Estimate:
        """The LLM work for the documents of some nodes."""
        if not self.needs_llm:
            return Estimate()
        return super().estimate([self._to_read(document) for document in documents_of(nodes, self.group_by)], llm)

    def _to_read(self, document: DocumentChunks) -> BaseNode:
        """The text of a document that an LLM reads, as a node with the document's key as its id."""
        return TextNode(id_=document.key, text="\n\n".join(plain_text(node) for node in document.nodes))

    # -- in a pipeline ------------------------------------------------------------------------------------

    def _transform(self, nodes: Sequence[BaseNode], show_progress: bool | None) -> Steps[Sequence[BaseNode]]:
        for node in nodes:
            self.take_record(node)
        documents = documents_of([node for node in nodes if plain_text(node).strip()], self.group_by)
        described = yield from self.describe(documents, {}, may_call=True, show_progress=show_progress)
        for document, found in zip(documents, described, strict=True):
            for i, node in enumerate(document.nodes):
                self._write(node, found.description, i)
        return nodes

    def _write(self, node: BaseNode, description: Description | None, number: int) -> None:
        """Put the context of a chunk into its metadata."""
        shown: dict[str, str] = {}
        hidden: dict[str, str] = {}
        if description is not None:
            section = " > ".join(description.sections[number])
            shown = {_TITLE: description.title, _SUMMARY: description.summary, _SECTION: section}
            # Flat, since many vector stores take no nested metadata.
            own = {
                "section": list(description.sections[number]),
                "section_summary": description.section_summaries[number],
            }
            whole = replace(description, sections=(), section_summaries=())
            hidden = {self.record_key: json.dumps({**asdict(whole), **own})}
        shown = {name: value for name, value in shown.items() if value}
        hidden = hidden or {self.record_key: ""}
        # New containers, since the nodes of one document share these lists.
        node.metadata = {**node.metadata, **shown, **hidden}
        node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, *hidden]
        node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, *shown, *hidden]

    def take_record(self, node: BaseNode) -> Record | None:
        """Remove the context and every trace of it from a node; None if there is none.

        The description of its document is kept in memory until the index asks for it.
        """
        if self.record_key not in node.metadata:
            return None
        given = node.metadata[self.record_key]
        ours = {self.record_key, _TITLE, _SUMMARY, _SECTION}
        node.metadata = {name: value for name, value in node.metadata.items() if name not in ours}
        node.excluded_embed_metadata_keys = [name for name in node.excluded_embed_metadata_keys if name not in ours]
        node.excluded_llm_metadata_keys = [name for name in node.excluded_llm_metadata_keys if name not in ours]
        if isinstance(given, str) and given:
            record = json.loads(given)
            self._given_sections[node.node_id] = (record.pop("section"), record.pop("section_summary"))
            description = Description(**record)
            self._given[description.source] = description
        return chunk_record(node, self.group_by)


def chunk_record(node: BaseNode, group_by: str | None) -> Record:
    """Document, page, lengths and terms of a chunk, as JSON values.

    The tokens are those of the chunk with the metadata that the LLM sees, and one for the separator before the next.
    """
    return {
        "document": document_key(node.node_id, node.ref_doc_id, node.metadata, group_by),
        "page": page_of(node.metadata),
        "characters": len(plain_text(node)),
        "tokens": count_tokens(node.get_content(metadata_mode=MetadataMode.LLM)) + 1,
        "terms": dict(lexical_terms(node.get_content(metadata_mode=MetadataMode.EMBED))),
    }


def documents_of(nodes: Sequence[BaseNode], group_by: str | None) -> list[DocumentChunks]:
    """The documents of some nodes, in the order of their first nodes."""
    groups: dict[str, dict[str, BaseNode]] = {}
    for node in nodes:
        key = document_key(node.node_id, node.ref_doc_id, node.metadata, group_by)
        groups.setdefault(key, {})[node.node_id] = node
    return [document_chunks(key, group.values()) for key, group in groups.items()]


def document_chunks(key: str, nodes: Iterable[BaseNode]) -> DocumentChunks:
    """A document of some nodes in any order."""
    by_id = {node.node_id: node for node in nodes}
    ids, goes_on = in_order(
        [ChunkPlace(i, n.ref_doc_id or "", page_of(n.metadata), sort_key(n)) for i, n in by_id.items()]
    )
    return DocumentChunks(key, [by_id[i] for i in ids], goes_on)


def source_of(*parts: str) -> str:
    """The `source` of a description that was made from these texts."""
    return content_id("description", *parts)
