"""The local search: from the entities of a question to chunks (arXiv 2404.16130 has none; microsoft/graphrag does)."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from llama_index.core.schema import TextNode
from numpy.typing import NDArray

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.config import SearchConfig
from llama_index.graphrag.found import GraphRAGFound, Similarities, similarities
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.graph_parts import GraphParts
from llama_index.graphrag.reports.lines import ranked_lines
from llama_index.graphrag.search.linking import Link, activations, links_of, nearest_chunks, nearest_names
from llama_index.graphrag.state import GraphRAGState, GraphView
from llama_index.ragkit import Query, Steps, content_id, offload
from llama_index.ragkit.storage.derived_nodes import NodeFetch, derived_node
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.vectors.trust import combine, trust

__all__ = ["STATEMENTS_KEY", "UNLINKED", "UNTRUSTED", "linked_chunks", "mixed_context"]

UNLINKED = "the question leads to no entity of the graph; chunks are ranked only by similarity"
UNTRUSTED = "the entities lead to many chunks, or elsewhere than the words of the question; ranked only by similarity"
_LEAST_TRUST = 0.01
_CONTEXT_ENTITIES = 10  # in a mixed context, as published
_MOST_REPORTS = 20
_MOST_CHUNKS = 100
STATEMENTS_KEY = "graphrag_statements"


def linked_chunks(
    query: Query[GraphRAGState], parts: GraphParts, text: str, vector: NDArray[np.float32], options: SearchConfig
) -> Steps[GraphRAGFound]:
    """Chunks by their similarity to a question, or a follow-up question, and by the entities that it leads to."""
    query = yield from parts.near_to(query, vector)
    near = yield from similarities(query, options.lexical_weight, vector)
    near, view = yield from parts.around(query, near, text, vector, options)
    return (yield from offload(_linked_chunks, query, view, text, vector, near, options))


def _linked_chunks(
    query: Query[GraphRAGState],
    view: GraphView,
    text: str,
    vector: NDArray[np.float32],
    near: Similarities,
    options: SearchConfig,
) -> GraphRAGFound:
    state = near.state
    near_names = nearest_names(state.entities, vector, options, state.name_mask(view))
    seeds = nearest_chunks(state.chunks, near.scores, options)
    entities_of = view.entities_in([chunk for _, chunk in seeds])
    links = links_of(text, view.names, near_names, seeds, entities_of, options)
    active = activations(view.entities, links, options.published.spread)
    shares = view.shares(active)
    rows = state.rows_of(shares.names)
    share_of = np.zeros(len(near.scores))
    share_of[rows[rows >= 0]] = shares.numbers[rows >= 0]
    seen = np.isfinite(near.scores)  # others do not count, as in an index without them
    trusted = trust(near.scores[seen], share_of[seen], candidates=near.nearness.candidates[seen])
    weight = options.structure_weight * trusted
    added = combine(np.zeros(len(share_of)), share_of, weight if trusted >= _LEAST_TRUST else 0.0)
    return GraphRAGFound(
        view=view,
        ranking=near.ranking(near.scores + added, query.wanted),
        fallback=UNLINKED if not links else UNTRUSTED if trusted < _LEAST_TRUST else "",
        links=links,
        active=active,
        shares=shares,
        trust=trusted,
        near=near,
        added=added,
    )


def mixed_context(
    query: Query[GraphRAGState],
    parts: GraphParts,
    found: GraphRAGFound,
    fetch: NodeFetch,
    budget: int,
    options: SearchConfig,
) -> Steps[GraphRAGFound]:
    """Reports, statements and chunks around the linked entities, each within its share of a budget of tokens."""
    state = query.state
    links = [link for link in found.links if link.entity in found.view.entities.position][:_CONTEXT_ENTITIES]
    view = yield from parts.context(state, found.view, [link.entity for link in links])
    rows = [view.entities.position[link.entity] for link in links]
    reports = yield from _reports(state, parts, view, links)
    lines = yield from offload(_lines, view, links, rows, options)
    ranking, fallback = list(islice(iter(found.ranking), _MOST_CHUNKS)), found.fallback
    if links and options.published.chunk_order == "entities":
        ranking, fallback = (yield from offload(_by_entities, view, links)), ""
    texts = []
    for node_id, _ in ranking:
        node = yield from fetch(node_id)
        texts.append("" if node is None else plain_text(node))
    shares = options.published.report_share, options.published.statement_share
    kept_reports, kept_lines, kept_chunks = assembled(
        [
            Section([count_tokens(node.get_content()) for node in reports], shares[0]),
            Section([count_tokens(line) + 1 for line, _ in lines], shares[1]),
            Section([count_tokens(text) for text in texts], 1 - sum(shares)),
        ],
        budget,
        pass_on=options.published.fill,
    )
    derived = [reports[i] for i in kept_reports]
    if kept_lines:
        text = "\n".join(lines[i][0] for i in kept_lines)
        nodes = list(dict.fromkeys(node for i in kept_lines for node in lines[i][1]))
        derived.append(derived_node(content_id("graphrag statements", text), text, {STATEMENTS_KEY: True}, nodes))
    best = max((score for _, score in ranking), default=0.0)
    return replace(
        found,
        ranking=[(node.node_id, best) for node in derived] + [ranking[i] for i in kept_chunks],
        derived={node.node_id: node for node in derived},
        fallback=fallback,
        added=None,
        tokens=sum(count_tokens(node.get_content()) for node in derived),
        keep_all=True,
    )


def _by_entities(view: GraphView, links: Sequence[Link]) -> list[tuple[str, float]]:
    """The chunks that name linked entities, in the published order, with scores that fall from 1."""
    chunks = ranked_chunks(view.graph, [link.entity for link in links])[:_MOST_CHUNKS]
    return [(chunk, 1 / rank) for rank, chunk in enumerate(chunks, start=1)]


def _reports(state: GraphRAGState, parts: GraphParts, view: GraphView, links: Sequence[Link]) -> Steps[list[TextNode]]:
    """Reports of the communities with linked entities, most linked first."""
    places = view.places(link.entity for link in links)
    communities = (yield from offload(ranked_communities, view.hierarchy, places))[:_MOST_REPORTS] if places else []
    yield from view.load(communities)
    made = yield from offload(lambda: {community: state.report(view, community) for community in communities})
    nodes = yield from parts.report_nodes(state, view, made)
    return list({node.node_id: node for node in nodes.values()}.values())


def _lines(
    view: GraphView, links: Sequence[Link], rows: Sequence[int], options: SearchConfig
) -> list[tuple[str, tuple[str, ...]]]:
    """Statements about linked entities and their relations: texts, and the nodes that state them."""
    names = view.entities.names
    pairs = {
        (names[i], names[j]) for i, j in ranked_relations(view.entities, rows, options.published.relations_per_entity)
    }
    linked = {link.entity for link in links}
    statements = {
        statement
        for key in linked
        for statement in view.graph.statements_about(key)
        if len(statement.entities) == 1 or tuple(sorted(statement.entities)) in pairs
    }
    return [(line.text, line.nodes) for line in ranked_lines(statements)]


class Section(NamedTuple):
    """A part of a context: the tokens of its texts, most important first, and its share of the budget, in [0, 1]."""

    sizes: Sequence[int]
    share: float


def assembled(sections: Sequence[Section], budget: int, *, pass_on: bool = True) -> list[list[int]]:
    """The positions of the texts of each section that fit a budget of tokens.

    `pass_on` says whether texts that do not fit are skipped and the remaining room of a section goes to the next; if
    not, a section ends at the first text that does not fit, as published.

    >>> assembled([Section([4, 3, 9, 1], 0.5), Section([6, 7], 0.5)], 20)
    [[0, 1, 3], [0]]
    >>> assembled([Section([4, 3, 9, 1], 0.5), Section([6, 7], 0.5)], 20, pass_on=False)
    [[0, 1], [0]]
    """
    found = []
    left = 0
    for section in sections:
        room = int(budget * section.share) + (left if pass_on else 0)
        kept = []
        for position, size in enumerate(section.sizes):
            if size <= room:
                kept.append(position)
                room -= size
            elif not pass_on:
                break
        found.append(kept)
        left = room
    return found


def ranked_communities(hierarchy: Hierarchy, rows: Collection[int]) -> list[int]:
    """Communities with the linked entities in these rows, by the number of these, then smaller ones first."""
    counts: dict[int, int] = defaultdict(int)
    for row in rows:
        leaf = int(hierarchy.leaf[row])
        for community in (leaf, *hierarchy.ancestors(leaf)):
            counts[community] += 1
    return sorted(counts, key=lambda c: (-counts[c], int(hierarchy.sizes[c]), c))


def ranked_relations(entities: EntityGraph, rows: Sequence[int], outside: int) -> list[tuple[int, int]]:
    """Pairs with a linked entity, as rows: first those between two linked entities, then those that lead outside.

    The first are sorted by the sum of the degrees of both ends. The others, at most `outside` for each linked entity,
    are sorted by the number of linked entities with which their outer end is joined, then by this sum.
    """
    linked = set(rows)
    pairs = {tuple(sorted((row, int(other)))) for row in linked for other in entities.neighbours(row)}

    def degree(pair: tuple[int, ...]) -> int:
        return int(entities.degrees[list(pair)].sum())

    inside = sorted((pair for pair in pairs if linked.issuperset(pair)), key=lambda pair: (-degree(pair), pair))
    ends: dict[int, int] = defaultdict(int)
    leading = [pair for pair in pairs if not linked.issuperset(pair)]
    for pair in leading:
        ends[next(row for row in pair if row not in linked)] += 1
    leading.sort(key=lambda pair: (-max(ends.get(row, 0) for row in pair), -degree(pair), pair))
    return [(pair[0], pair[1]) for pair in inside + leading[: outside * len(linked)]]


def ranked_chunks(graph: StatementGraph, keys: Sequence[str]) -> list[str]:
    """The chunks that name linked entities, those of the surest first, then by the stated pairs of linked entities.

    The keys are given surest first.
    """
    stated: dict[str, int] = defaultdict(int)
    for i, key in enumerate(keys):
        for other in keys[i + 1 :]:
            for chunk in graph.links.get(key, {}).get(other, ()):
                stated[chunk] += 1
    found: dict[str, None] = {}
    for key in keys:
        where = sorted(graph.entities.get(key, ()), key=lambda chunk: (-stated[chunk], graph.chunks[chunk].order))
        found.update(dict.fromkeys(where))
    return list(found)
