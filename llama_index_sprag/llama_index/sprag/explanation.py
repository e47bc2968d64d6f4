"""`SpRAGExplanation`: the chunks of a segment, what each is worth, and the context in which they were found."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.ragkit import Explanation

__all__ = ["ChunkInSegment", "SpRAGExplanation"]


@dataclass(frozen=True)
class ChunkInSegment:
    """A chunk of a result.

    Attributes
    ----------
    node_id : its id
    rank : its place in the ranking of chunks, from 0; None for a chunk that was not found and lies between others
    value : its value; negative for a chunk that is only carried. In `mode="chunks"` its nearness
    cosine, lexical : of the query and the chunk with its header: the cosine, mixed with that of its text by
        `context_weight`, and the BM25 score; None for a chunk that was not found
    header : the text before it in the search; "" if a filter excludes other chunks of its document, from which the
        header may have been written
    """

    node_id: str
    rank: int | None
    value: float
    cosine: float | None
    lexical: float | None
    header: str


@dataclass(frozen=True, kw_only=True)
class SpRAGExplanation(Explanation):
    """Why a segment or a chunk was retrieved.

    Attributes
    ----------
    score : relevance of the best chunk; in `mode="chunks"` nearness
    value : the sum of the values of its chunks; in `mode="chunks"` nearness
    document : title of its document; "" if it has none, or if a filter excludes some of its chunks
    start, end : which chunks of the document it has, the end exclusive
    query : the query for which it was found
    lexical_weight : weight of the BM25 score in nearness for this query, in [0, 1]
    chunks : its chunks in reading order
    by : the class that described its document without an LLM after another failed; "" if none did
    """

    value: float
    document: str
    start: int
    end: int
    query: str
    lexical_weight: float
    chunks: Sequence[ChunkInSegment]
