"""`CooccurrenceExtractor`: entities are the names in a text, and relations are names in one sentence; no LLM."""

from typing import ClassVar

from llama_index.core.schema import BaseNode

from llama_index.graphrag.extraction.cooccurrence import cooccurrences
from llama_index.graphrag.graph.statement import ChunkStatements
from llama_index.ragkit import ExtractionContext, NodeExtractor, Record, Steps, offload, plain_text, title_of
from llama_index.ragkit.text.names import Mention, names
from llama_index.ragkit.text.uncased import uncased_phrases

__all__ = ["CooccurrenceExtractor"]


class CooccurrenceExtractor(NodeExtractor):
    """Reads the names of a text by rules, in scripts with and without capitals.

    It needs no LLM: indexing is free and offline. Two names in a sentence are a relation, and the sentence is the
    statement about it. Entities have no types.

    Parameters
    ----------
    title_key : the metadata key of a title, which is an entity of the whole text: a sentence with one other name is a
        statement about both; None for no title
    """

    method: ClassVar[str] = "graphrag"
    needs_llm: ClassVar[bool] = False

    title_key: str | None = "title"

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node, without an LLM call."""
        text, title = plain_text(node), title_of(node, self.title_key)
        entities, relations = yield from offload(cooccurrences, text, _phrases, title)
        return ChunkStatements("", "", entities=entities, relations=relations).record()


def _phrases(text: str) -> list[Mention]:
    return [*names(text), *uncased_phrases(text)]
