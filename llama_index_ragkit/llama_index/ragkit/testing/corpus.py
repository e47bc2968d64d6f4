"""The texts of the conformance kit: few, short, and connected, so that every method finds something in them."""

from collections.abc import Sequence

from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

__all__ = ["QUESTION", "TEXTS", "chunks", "texts_and_scores"]

TEXTS = [
    "Ada Byron met Charles Babbage in London.",
    "Babbage drew the Analytical Engine.",
    "The Analytical Engine used punched cards.",
    "Punched cards came from the Jacquard loom.",
    "The Jacquard loom wove silk in Lyon.",
    "Lyon lies on the Rhone.",
]
QUESTION = "Which engine used punched cards?"


def chunks(document: str, count: int, start: int = 0) -> list[TextNode]:
    """Nodes of a document, with ids and texts that follow from its name: `d-0`, "Ada Byron ... London. d 0".

    Parameters
    ----------
    document : its id; a text of another document never contains it between spaces
    count, start : how many nodes, and the number of the first
    """
    return [
        TextNode(
            id_=f"{document}-{i}",
            text=f"{TEXTS[i % 6]} {document} {i}",
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
        )
        for i in range(start, start + count)
    ]


def texts_and_scores(results: Sequence[NodeWithScore]) -> list[tuple[str, float]]:
    """The results of a retrieval without their ids, in order; scores rounded to six digits."""
    return [(result.node.get_content(), round(result.get_score(), 6)) for result in results]
