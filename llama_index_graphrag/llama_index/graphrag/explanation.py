"""`GraphRAGExplanation`: entities, statements and communities that led to a retrieved node."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from llama_index.graphrag.found import REPORT_KEY, GraphRAGFound
from llama_index.graphrag.reports.lines import ranked_lines
from llama_index.graphrag.search.drift import DriftAnswer
from llama_index.graphrag.search.linking import Link
from llama_index.ragkit import Explanation
from llama_index.ragkit.index.results import result_fields

__all__ = ["GraphRAGExplanation", "explain"]

_SHOWN = 8  # entities and statements


@dataclass(frozen=True, kw_only=True)
class GraphRAGExplanation(Explanation):
    """Why a node was retrieved.

    Attributes
    ----------
    cosine : the cosine of the question and a chunk, in [-1, 1]; None for other nodes
    lexical : BM25 score of a chunk, at least 0; None for other nodes
    lexical_weight : weight of BM25 in nearness for this question, in [0, 1]; None if it was not used
    share : the chunk's share of the activations, relative to that of the best chunk, in (0, 1]; None if it has none
    trust : how far the shares were trusted, relative to nearness, in [0, 1]; None if the search does not use trust
    linked : the entities that the question leads to, and how
    entities : entities of the node with their activations, highest first
    statements : the node's statements about linked entities; for a report, its findings
    form : how a report was made: "statements", "extract" (chosen statements, since no model is used, or it failed),
        "written" (by a model); "" for a chunk
    sources : ids of the chunks on which a report rests; for a chunk, its own id
    opened, refused : titles of the communities that were replaced by their children, and of those whose children did
        not fit
    answers : the answers of a search with follow-up questions
    calls, tokens : calls of a model for the question, and tokens of the reports that were read
    by : the class that read the chunk without an LLM after the extractor failed; "extract" for a report made of
        statements because a model failed to write it; empty otherwise
    """

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


def explain(found: GraphRAGFound, result: NodeWithScore) -> GraphRAGExplanation:
    """Explain one node of an answer, using only what the query may see."""
    view, node_id, text = found.view, result.node.node_id, result.node.get_content()
    title = view.planner.title if found.cut is not None else str
    own = view.entities_in([node_id]).get(node_id, ()) if found.active else ()
    active = sorted(((key, found.active[key]) for key in own if key in found.active), key=lambda e: (-e[1], e[0]))
    linked = {link.entity for link in found.links}
    stated = view.graph.statements(node_id) if node_id in view.graph.chunks and linked else []
    lines = ranked_lines(statement for statement in stated if linked.intersection(statement.entities))
    node = found.derived.get(node_id)
    sources = [node_id] if node is None else [child.node_id for child in node.child_nodes or ()]
    return GraphRAGExplanation(
        **result_fields(result),
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
