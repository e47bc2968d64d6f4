"""Segments as nodes: the original node for a single chunk, else a derived node that points to its chunks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.schema import (
    DEFAULT_TEXT_NODE_TMPL,
    BaseNode,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)

from llama_index.ragkit import Steps, content_id
from llama_index.ragkit.index.results import fetched, fresh
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.sprag.segment_search import FoundSegment
from llama_index.sprag.segments.joining import Piece, joined_text

__all__ = [
    "chunks_of_node",
    "header_of_segment",
    "in_document_order",
    "merged_by_rank",
    "segment_results",
]

# Metadata of a derived node: ids of its chunks, and which chunks of the document they are (the end exclusive).
_CHUNKS, _START, _END = "sprag_chunks", "sprag_start", "sprag_end"


def segment_results(
    segments: Sequence[FoundSegment],
    fetch: Callable[[Sequence[str]], Steps[Mapping[str, BaseNode]]],
    headers: Mapping[str, str] | None = None,
) -> Steps[list[tuple[FoundSegment, NodeWithScore]]]:
    """The nodes of segments, without those whose chunks another index has deleted.

    A segment with an index node gives its chunks one by one, so that LlamaIndex can follow the node.

    `fetch` gives new node objects, which become results. `headers` are the beginnings of the texts of segments, by
    document; None for none.
    """
    known = yield from fetch(list(dict.fromkeys(chunk for segment in segments for chunk in segment.chunks)))
    joined = [chunk for segment in segments if len(segment.chunks) > 1 for chunk in segment.chunks if chunk in known]
    sources = yield from fetch(list(dict.fromkeys(name for i in joined if (name := known[i].ref_doc_id))))
    texts = {name: plain_text(source) for name, source in sources.items()}
    results = []
    for segment in segments:
        nodes = [known[chunk] for chunk in segment.chunks if chunk in known]
        if not nodes:
            continue
        header = (headers or {}).get(segment.document, "")
        if (len(nodes) == 1 and not header) or any(isinstance(node, IndexNode) for node in nodes):
            results += [(segment, fetched(node, segment.score)) for node in nodes]
            continue
        node = _segment_node(segment, nodes, texts, header)
        results.append((segment, NodeWithScore(node=node, score=float(segment.score))))
    return results


def in_document_order(
    results: Sequence[tuple[FoundSegment, NodeWithScore]],
) -> list[tuple[FoundSegment, NodeWithScore]]:
    """Segments in the order of their documents; documents are in the order of their first segments."""
    first = {segment.document: place for place, (segment, _) in reversed(list(enumerate(results)))}
    return sorted(results, key=lambda pair: (first[pair[0].document], pair[0].start))


def merged_by_rank(
    results: Sequence[tuple[int, NodeWithScore]], kept: Sequence[tuple[int, BaseNode]]
) -> list[NodeWithScore]:
    """Results, each with the rank of its best chunk, and nodes of unknown documents with their ranks, both ascending.

    A node comes before the first result of a lower rank, and has the score of the result before it, or, if it comes
    first, that of the first result.
    """
    waiting = list(kept)
    score = results[0][1].get_score() if results else 0.0
    merged: list[NodeWithScore] = []
    for rank, result in results:
        while waiting and waiting[0][0] < rank:
            merged.append(fresh(waiting.pop(0)[1], score))
        merged.append(result)
        score = result.get_score()
    return merged + [fresh(node, score) for _, node in waiting]


def _segment_node(
    segment: FoundSegment, nodes: Sequence[BaseNode], sources: Mapping[str, str], header: str
) -> TextNode:
    text = joined_text([_piece(node) for node in nodes], sources)
    first = nodes[0]
    shared = {
        name: value
        for name, value in first.metadata.items()
        if all(name in node.metadata and node.metadata[name] == value for node in nodes[1:])
    }
    own: dict[str, Any] = {
        _CHUNKS: [node.node_id for node in nodes],
        _START: segment.start,
        _END: segment.start + len(segment.chunks),
    }
    children = [RelatedNodeInfo(node_id=node.node_id) for node in nodes]
    relationships: dict[NodeRelationship, Any] = {NodeRelationship.CHILD: children}
    if first.ref_doc_id is not None:
        relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=first.ref_doc_id)
    for kind, node in ((NodeRelationship.PREVIOUS, first), (NodeRelationship.NEXT, nodes[-1])):
        if kind in node.relationships:
            relationships[kind] = node.relationships[kind]
    return TextNode(
        id_=content_id("segment", *own[_CHUNKS]),
        text=f"{header}\n\n{text}" if header else text,
        metadata={**shared, **own},
        excluded_embed_metadata_keys=[*first.excluded_embed_metadata_keys, *own],
        excluded_llm_metadata_keys=[*first.excluded_llm_metadata_keys, *own],
        metadata_separator=first.metadata_separator,
        metadata_template=first.metadata_template,
        text_template=getattr(first, "text_template", DEFAULT_TEXT_NODE_TMPL),
        relationships=relationships,
    )


def _piece(node: BaseNode) -> Piece:
    text = plain_text(node)
    start = node.start_char_idx if isinstance(node, TextNode) else None
    return Piece(text, node.ref_doc_id, start, None if start is None else start + len(text))


def chunks_of_node(node: BaseNode) -> list[str]:
    """The ids of the chunks in a result."""
    return list(node.metadata.get(_CHUNKS, [node.node_id]))


def header_of_segment(title: str, summary: str) -> str:
    """Title and summary in the published wording; `""` if there is neither."""
    if not title and not summary:
        return ""
    return f"Document context: the following excerpt is from a document titled '{title}'. {summary}".rstrip()
