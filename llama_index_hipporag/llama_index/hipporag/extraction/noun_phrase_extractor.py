"""`NounPhraseExtractor`: entities and facts of a passage by rules, without a language model."""

from typing import ClassVar

from llama_index.core.schema import BaseNode

from llama_index.hipporag.text.noun_phrases import read_passage
from llama_index.ragkit import ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.storage.records import Record

__all__ = ["NounPhraseExtractor"]


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
        triples = [list(triple) for triple in reading.triples]
        return {"entities": list(reading.entities), "triples": triples, "subject": list(reading.subject)}
