"""The HTML page of MRAG: a heat map of the votes, aspects by nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from llama_index.mrag.state import MRAGState
from llama_index.mrag.voting.vote_result import VoteResult
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Facts, Grid, Group, Node, Page, Result, Results, passage_label
from llama_index.ragkit.vectors.question_scores import standardised

__all__ = ["nodes_to_show", "page_of"]

_MOST_NODES = 60
_LABEL = 60


def nodes_to_show(state: MRAGState, query: LastQuery | None) -> list[str]:
    """Ids of the nodes whose texts the page may show."""
    if query is None or not query.found.ranking:
        return list(state.chunks.ids)
    result: VoteResult = query.found
    chosen = [result.state.chunks.ids[result.tally.rows[place]] for place in _first_choices(result)]
    return list(dict.fromkeys([*(name for name, _ in result.ranking), *chosen]))


def page_of(state: MRAGState, texts: Mapping[str, str], query: LastQuery | None, nodes: int | None) -> Page:
    """Aspects of the last question by the nodes that voters chose for them; without a question, heads by nodes.

    A question of one aspect is ranked by nearness, whose two parts are shown. Without a question the values are the
    cosines of each node to the mean of all nodes. `texts` are those of :func:`nodes_to_show`, and `nodes` is how many
    nodes of the index may be shown; None if unknown.
    """
    facts = _facts(state, nodes)
    if query is not None and query.found.ranking:
        return _votes(query.question, query.found, texts, facts)
    return _means(state, texts, facts)


def _votes(question: str, result: VoteResult, texts: Mapping[str, str], facts: Facts) -> Page:
    state = result.state
    shown = [(name, score) for name, score in result.ranking if name in texts][:_MOST_NODES]
    rows = state.chunks.rows_of([name for name, _ in shown])
    highlighted = {name for name, _ in shown[:10]}
    columns = [
        replace(
            _node(state, name, texts[name]),
            score=score,
            highlighted=name in highlighted,
            details=_details(result, name),
        )
        for name, score in shown
    ]
    voters, values, label = _by_aspect(result, rows) if len(result.aspects) else _by_nearness(result, rows)
    answer = [Result(column.label, snippet=column.text, score=column.score, node=column.id) for column in columns[:10]]
    panels: list[Facts | Results] = [Results("Retrieved", answer)]
    if len(result.aspects):
        panels.append(Results("Aspects that voted, each with its first choice", _choices(result, texts)))
    return Page(
        title="MRAG votes",
        subtitle=f"Question: {question}",
        view=Grid(rows=voters, columns=columns, values=values, label=label, groups=_GROUPS),
        panels=[*panels, facts],
        highlight_label="The best" if len(highlighted) == 1 else f"The {len(highlighted)} best",
    )


def _by_aspect(result: VoteResult, rows: NDArray[np.intp]) -> tuple[list[Node], NDArray[np.float64], str]:
    """How far the voters of each aspect agree on each node."""
    column = {int(row): place for place, row in enumerate(result.tally.rows)}
    values = np.array(
        [
            [float(votes[column[row]]) if row in column else 0.0 for row in rows.tolist()]
            for votes in result.tally.agreement
        ]
    )
    shown = [i for i, aspect in enumerate(result.aspects) if not _is_divided(aspect, result.aspects)]
    voters = [Node(id=f"aspect {i}", label=result.aspects[i], text=result.aspects[i], group="aspect") for i in shown]
    return voters, values[shown], "share of the voters that agree"


def _is_divided(aspect: str, aspects: Sequence[str]) -> bool:
    """Whether an aspect is a sentence whose clauses, which say more, are aspects too: it would be shown twice."""
    return any(other != aspect and other in aspect for other in aspects)


def _by_nearness(result: VoteResult, rows: NDArray[np.intp]) -> tuple[list[Node], NDArray[np.float64], str]:
    """Cosine and BM25 of each node, for a question of one aspect, on which there is no vote."""
    near = result.nearness
    if near is None:
        return [], np.zeros((0, len(rows))), ""
    parts = {"cosine": near.cosines, "BM25": near.lexical}
    voters = [
        Node(id=name, label=name, text="A question of one aspect is ranked by nearness: both together.", group="aspect")
        for name in parts
    ]
    return voters, np.stack([standardised(part)[rows] for part in parts.values()]), "standard deviations"


def _details(result: VoteResult, name: str) -> dict[str, str]:
    agreement, _ = result.votes_for(name)
    best = sorted(agreement.items(), key=lambda pair: -pair[1])[:5]
    return {f"{share:.2f} of the voters": aspect for aspect, share in best}


def _choices(result: VoteResult, texts: Mapping[str, str]) -> list[Result]:
    ids = result.state.chunks.ids
    found = []
    for aspect, agreement, best in zip(result.aspects, result.tally.agreement, _first_choices(result), strict=False):
        name = ids[int(result.tally.rows[best])]
        if name in texts:
            found.append(Result(aspect, snippet=texts[name][:_LABEL], score=float(agreement[best])))
    return found


def _first_choices(result: VoteResult) -> list[int]:
    """For each aspect, the place in the tally of the node on which its voters agree most; empty without votes."""
    return np.argmax(result.tally.agreement, axis=1).tolist() if len(result.tally.rows) else []


def _means(state: MRAGState, texts: Mapping[str, str], facts: Facts) -> Page:
    shown = [name for name in state.chunks.ids if name in texts][:_MOST_NODES]
    values = np.zeros((state.heads, len(shown)))
    for i, name in enumerate(shown):
        row = state.chunks.row_of(name)
        mean = state.sums.units.ravel().astype(np.float32)
        values[:, i] = state.cosines(row, mean)
    return Page(
        title="MRAG heads",
        subtitle="Attention heads by nodes: the cosine of each node to the mean of all nodes, in every head's space.",
        view=Grid(
            rows=_heads(state),
            columns=[_node(state, name, texts[name]) for name in shown],
            values=values,
            label="cosine",
            groups=_GROUPS,
        ),
        panels=[facts],
    )


_GROUPS = [Group("aspect", "Part of the question"), Group("head", "Attention head"), Group("node", "Node")]


def _node(state: MRAGState, name: str, text: str) -> Node:
    label = passage_label(text, state.chunks.metadata_of(name))
    return Node(id=f"node {name}", label=label, text=text, group="node")


def _heads(state: MRAGState) -> list[Node]:
    scores = state.importance
    total = scores.sum() or 1.0
    return [
        Node(
            id=f"head {head}",
            label=f"head {head}",
            text=f"{scores[head] / total:.1%} of the importance of all heads.",
            group="head",
            details={"importance": float(scores[head])},
        )
        for head in range(state.heads)
    ]


def _facts(state: MRAGState, nodes: int | None) -> Facts:
    known = {} if nodes is None else {"nodes": nodes}
    dim = ((state.chunks.dim or 0) - state.own) // max(1, state.heads)
    return Facts("The index", {**known, "heads": state.heads, "numbers per head": dim})
