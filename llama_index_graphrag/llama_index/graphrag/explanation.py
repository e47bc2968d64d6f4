"""`GraphRAGExplanation`: entities, statements and communities that led to a retrieved node."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.graphrag.found import REPORT_KEY, GraphRAGFound
from llama_index.graphrag.reports.lines import ranked_lines
from llama_index.graphrag.search.drift import DriftAnswer
from llama_index.graphrag.search.linking import Link

__all__ = ["GraphRAGExplanation", "explain"]

_SHOWN = 8  # entities and statements


@dataclass(frozen=True)
class GraphRAGExplanation:
    """Why a node was retrieved.

    Attributes
    ----------
    node_id, text : the node
    score : the retriever's score
    cosine : of the question and a chunk, in [-1, 1]; None for other nodes
    lexical : BM25 score of a chunk, at least 0; None for other nodes
    lexical_weight : weight of the BM25 score in nearness that this question chose, in [0, 1]; None where it
        was not used
    share : of the activations, as a share of the best chunk's, in (0, 1]; None for none
    trust : how far the shares counted beside nearness, in [0, 1]; None where the search does not ask
    linked : the entities that the question leads to, and how
    entities : entities of the node with their activations, highest first
    statements : what the node states about linked entities; for a report, its findings
    form : of a report, how it was made: "statements", "extract" (chosen statements, since no model is asked, or it
        failed), "written" (by a model); "" of a chunk
    sources : ids of the chunks that a report rests on; of a chunk, its own id
    opened, refused : titles of the communities that their children stand for, and of those for whose children there
        was no room
    answers : of a search with follow-up questions
    calls, tokens : of a model for the question, and of the reports that were read
    by : the class that read the chunk without an LLM in place of the one that failed, if one did; "extract" of a report
        that is made of statements since a model failed to write it
    fallback : which part of the method was not used, and why; empty otherwise
    """

    node_id: str
    text: str
    score: float
    cosine: float | None = None
    lexical: float | None = None
    lexical_weight: float | None = None
    share: float | None = None
    trust: float | None = None
    linked: Sequence[Link] = ()
    entities: Sequence[tuple[str, float]] = ()
    statements: Sequence[str] = ()
    form: str = ""
    sources: Sequence[str] = ()
    opened: Sequence[str] = ()
    refused: Sequence[str] = ()
    answers: Sequence[DriftAnswer] = ()
    calls: int = 0
    tokens: int = 0
    by: str = ""
    fallback: str = ""


def explain(found: GraphRAGFound, node_id: str, text: str, score: float) -> GraphRAGExplanation:
    """Explain one node of an answer, by what the query may see alone."""
    view = found.view
    title = view.planner.title if found.cut is not None else str
    own = view.entities_in([node_id]).get(node_id, ()) if found.active else ()
    active = sorted(((key, found.active[key]) for key in own if key in found.active), key=lambda e: (-e[1], e[0]))
    linked = {link.entity for link in found.links}
    stated = view.graph.statements(node_id) if node_id in view.graph.chunks and linked else []
    lines = ranked_lines(statement for statement in stated if linked.intersection(statement.entities))
    node = found.derived.get(node_id)
    sources = [node_id] if node is None else [child.node_id for child in node.child_nodes or ()]
    return GraphRAGExplanation(
        node_id=node_id,
        text=text,
        score=score,
        cosine=None if found.near is None else found.near.cosine(node_id),
        lexical=None if found.near is None else found.near.lexical(node_id),
        lexical_weight=None if found.near is None else found.near.nearness.lexical_weight,
        share=found.shares.get(node_id),
        trust=found.trust,
        linked=found.links,
        entities=[(view.graph.name_of(key), weight) for key, weight in active[:_SHOWN]],
        statements=[line.text for line in lines[:_SHOWN]] if node is None else text.split("\n")[1:],
        form="" if node is None else str(node.metadata.get(REPORT_KEY, "")),
        sources=sources,
        opened=[title(community) for community in found.cut.opened] if found.cut is not None else (),
        refused=[title(community) for community in found.cut.refused] if found.cut is not None else (),
        answers=found.answers,
        calls=found.calls,
        tokens=found.tokens,
        fallback=found.fallback,
    )
