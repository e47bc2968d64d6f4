"""`CooccurrenceExtractor`: entities are the names in a text, and relations are names in one sentence; no LLM."""

import re
from typing import ClassVar

from llama_index.core.schema import BaseNode

from llama_index.graphrag.extraction.cooccurrence import cooccurrences
from llama_index.graphrag.graph.statement import ChunkStatements, EntityStatement, RelationStatement
from llama_index.ragkit import ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.names import Mention, names
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose_lines
from llama_index.ragkit.text.uncased import uncased_phrases

__all__ = ["CooccurrenceExtractor"]

_DIGIT = re.compile(r"\d")
_QUOTED = re.compile(r"[?!？！]")


class CooccurrenceExtractor(NodeExtractor):
    """Reads the names of a text by rules, in scripts with and without capitals.

    It needs no LLM: indexing is free and offline. Two names in a sentence are a relation, and the sentence is the
    statement about it. Entities have no types. Code gives no names, each cell of a table is read by itself, and lines
    that repeat in the chunks of a document that are written together (headers, footers, legal lines) are ignored.

    Parameters
    ----------
    title_key : the metadata key of a title, which is an entity of the whole text: a sentence with one other name is a
        statement about both. For a node without it, a heading at the beginning of its text is the title
        (:mod:`llama_index.ragkit.text.headings`). None for no titles
    """

    method: ClassVar[str] = "graphrag"
    needs_llm: ClassVar[bool] = False

    title_key: str | None = "title"

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node, without an LLM call."""
        passage = yield from context.passage(node, self.title_key)
        entities, relations = yield from offload(_read, passage)
        return ChunkStatements("", "", entities=entities, relations=relations).record()


def _read(passage: PassageText) -> tuple[tuple[EntityStatement, ...], tuple[RelationStatement, ...]]:
    lines = prose_lines(passage.body)
    text = "\n".join(plain for plain, _ in lines)
    return cooccurrences(text, _phrases, passage.title, [shown for _, shown in lines])


def _phrases(text: str) -> list[Mention]:
    return [mention for mention in (*names(text), *uncased_phrases(text)) if _is_entity(mention.text)]


def _is_entity(name: str) -> bool:
    """Whether a name is more than a number, and not a quoted question or exclamation."""
    return not _QUOTED.search(name) and any(not _DIGIT.search(word) for word in name.split())
