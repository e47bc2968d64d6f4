"""`SpRAGExplanation`: the chunks of a segment, what each is worth, and the context in which they were found."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ChunkInSegment", "SpRAGExplanation"]


@dataclass(frozen=True)
class ChunkInSegment:
    """A chunk of a result.

    Attributes
    ----------
    node_id : its id
    rank : its place in the ranking of chunks, from 0; None for a chunk that was not found and lies between others
    value : what it is worth; negative for a chunk that is only carried. In `mode="chunks"` its nearness
    cosine, lexical : of the query and the chunk with its header: the cosine, mixed with that of its text alone as
        `context_weight` says, and the BM25 score; None for a chunk that was not found
    header : what stands before it where it is searched; "" where a filter excludes other chunks of its document, from
        which it may be written
    """

    node_id: str
    rank: int | None
    value: float
    cosine: float | None
    lexical: float | None
    header: str


@dataclass(frozen=True)
class SpRAGExplanation:
    """Why a segment or a chunk was retrieved.

    Attributes
    ----------
    node_id, text : the result
    score : the retriever's score: relevance of the best chunk; in `mode="chunks"` nearness
    value : the sum of the values of its chunks; in `mode="chunks"` nearness
    document : title of its document, "" if it has none, or a filter excludes some of its chunks
    start, end : which chunks of the document it is, the end exclusive
    query : the query that it was found for
    lexical_weight : weight of the BM25 score in nearness that this query chose, in [0, 1]
    chunks : its chunks in reading order
    by : the class that described its document without an LLM in place of the one that failed, if one did
    fallback : which part of the method was not used, and why; empty otherwise
    """

    node_id: str
    text: str
    score: float
    value: float
    document: str
    start: int
    end: int
    query: str
    lexical_weight: float
    chunks: Sequence[ChunkInSegment]
    by: str = ""
    fallback: str = ""
