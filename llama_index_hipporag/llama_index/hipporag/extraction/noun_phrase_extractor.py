"""Extractors of entities and triples without a language model: by rules, and from existing records."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode

from llama_index.hipporag.text.noun_phrases import read_passage, subject_names
from llama_index.ragkit import ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.errors import ConfigurationError, ExtractionError
from llama_index.ragkit.storage.nodes import plain_text, title_of
from llama_index.ragkit.storage.records import Record

__all__ = ["NounPhraseExtractor", "RecordedExtractor"]


class NounPhraseExtractor(NodeExtractor):
    """Extracts names and noun phrases from a passage by rules, in scripts with and without spaces.

    It needs no LLM: indexing is free and offline. The record is that of :class:`OpenIEExtractor`; its
    triples connect the title (or the subject of a sentence) with the phrases of a sentence. Lines that repeat over the
    chunks of a document that are written together (headers, footers, legal lines) are ignored.

    Parameters
    ----------
    title_key : the metadata key of a title; for a node without one, a heading at the beginning of its text is the title
        (:mod:`llama_index.ragkit.text.headings`). None for no titles at all
    terms : whether noun phrases in lower case are entities too ("chronic lymphocytic leukemia"), in scripts with
        capitals. Useful for prose with few names, such as reports and papers; it multiplies the number of phrases
    """

    method: ClassVar[str] = "hipporag"
    needs_llm: ClassVar[bool] = False

    title_key: str | None = "title"
    terms: bool = False

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node, without an LLM call."""
        passage = yield from context.passage(node, self.title_key)
        reading = yield from offload(read_passage, passage, self.terms)
        return reading.record()


Given = Mapping[str, Mapping[str, Any]]


class RecordedExtractor(NodeExtractor):
    """Takes entities and triples from records, without calling a model.

    A node is looked up by its id, then by its text (ignoring white space), with and without its title before it. A
    node without a record counts as failed; after you have added records, `index.retry_failed()` looks it up again.

    Parameters
    ----------
    records : node id or text -> {"entities": [...], "triples": [[head, relation, tail], ...]}
    title_key : the metadata key of a title; for a node without one, a heading at the beginning of its text is the title
        (:mod:`llama_index.ragkit.text.headings`). None for no titles except those in the records

    Raises
    ------
    ConfigurationError
        If a record has neither entities nor triples.
    """

    method: ClassVar[str] = "hipporag"
    needs_llm: ClassVar[bool] = False

    title_key: str | None = "title"
    _records: dict[str, Record] = PrivateAttr(default_factory=dict)

    def __init__(self, records: Given | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add(records or {})

    def add(self, records: Given) -> None:
        """Add records; a record with the same id or text replaces the earlier one."""
        for key, record in records.items():
            if not isinstance(record, Mapping) or not {"entities", "triples"} & set(record):
                raise ConfigurationError(f"The record of {key[:80]!r} has neither 'entities' nor 'triples'.")
            entities, triples = record.get("entities") or [], record.get("triples") or []
            kept = {"entities": list(entities), "triples": [list(triple) for triple in triples]}
            subject = {"subject": list(record["subject"])} if "subject" in record else {}
            self._records[_squeezed(key)] = {**kept, **subject}

    @classmethod
    def from_openie(cls, source: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]], **kwargs: Any) -> Any:
        """Read the output of the authors' code: `{"docs": [{"passage", "extracted_entities", "extracted_triples"}]}`.

        Parameters
        ----------
        source : a path of such a JSON file, its content, or the list of its documents

        Raises
        ------
        ConfigurationError
            If it does not have that form.
        """
        content: Any = source
        if isinstance(source, (str, Path)):
            content = json.loads(Path(source).read_text(encoding="utf-8"))
        documents = content.get("docs") if isinstance(content, Mapping) else content
        try:
            records = {
                document["passage"]: {
                    "entities": document.get("extracted_entities") or [],
                    "triples": [triple for triple in document["extracted_triples"] if isinstance(triple, list)],
                }
                for document in documents  # type: ignore[union-attr]
            }
        except (TypeError, KeyError) as error:
            raise ConfigurationError(
                "The OpenIE data must be {'docs': [{'passage': text, 'extracted_entities': [...], "
                f"'extracted_triples': [[head, relation, tail], ...]}}, ...]}}: {error!r}."
            ) from error
        return cls(records, **kwargs)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Only the class: records may be added as the corpus grows."""
        return {"class": type(self).__name__}

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Look up one node."""
        title, text = title_of(node, self.title_key), plain_text(node)
        for key in (node.node_id, text, f"{title}\n{text}"):
            record = self._records.get(_squeezed(key))
            if record is not None:
                passage = yield from context.passage(node, self.title_key)
                return {"subject": subject_names(passage.title), **record}
        raise ExtractionError(f"There is no record for the id or the text of node {node.node_id!r}.")


def _squeezed(text: str) -> str:
    return " ".join(text.split())
