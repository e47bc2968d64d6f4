"""The HTML page of MRAG: a heat map of the votes, heads by nodes."""

from collections.abc import Mapping

import numpy as np

from llama_index.mrag.state import MRAGState
from llama_index.mrag.voting.vote_result import VoteResult
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Facts, Grid, Group, Node, Page, Result, Results

__all__ = ["page_of"]

_MOST_NODES = 60
_LABEL = 60


def page_of(state: MRAGState, texts: Mapping[str, str], query: LastQuery | None) -> Page:
    """Heads by the nodes that they voted for; without a question, by each node's cosine to the mean of all nodes.

    Parameters
    ----------
    texts : the text of every node that has one
    query : the last question, if any, and its :class:`VoteResult`
    """
    if query is not None and query.found.ranking:
        return _votes(query.question, query.found, texts)
    return _means(state, texts)


def _votes(question: str, result: VoteResult, texts: Mapping[str, str]) -> Page:
    shown = [(name, score) for name, score in result.ranking if name in texts][:_MOST_NODES]
    state = result.state
    column = {int(row): i for i, row in enumerate(state.chunks.rows_of([name for name, _ in shown]))}
    lexical = any(result.lexical)
    values = np.zeros((state.heads + lexical, len(shown)))
    for (aspect, head, place), row in np.ndenumerate(result.hits.rows):
        if int(row) in column:
            values[head, column[int(row)]] += result.votes[aspect, head, place]
    for votes in result.lexical:
        for row, share in votes.items():
            if row in column:
                values[-1, column[row]] += share
    # Normalised per voter, since an important head or a lexical retriever would otherwise outweigh all others.
    totals = [*result.votes.sum(axis=(0, 2)), *([sum(sum(v.values()) for v in result.lexical)] if lexical else [])]
    values /= np.maximum(np.array(totals), 1e-12)[:, None]
    highlighted = {name for name, _ in shown[:10]}
    columns = [
        Node(
            id=f"node {name}",
            label=texts[name][:_LABEL],
            text=texts[name],
            group="node",
            score=score,
            highlighted=name in highlighted,
            details=_details(result, name),
        )
        for name, score in shown
    ]
    rows = _heads(state)
    if lexical:
        rows.append(Node(id="lexical", label="lexical", text="BM25, which votes beside the heads.", group="head"))
    answer = [Result(texts[n][:_LABEL], snippet=texts[n], score=score, node=f"node {n}") for n, score in shown[:10]]
    return Page(
        title="MRAG votes",
        subtitle=f"Question: {question}",
        view=Grid(rows=rows, columns=columns, values=values, label="share of a head's votes", groups=_GROUPS),
        panels=[
            Results("Retrieved", answer),
            Results("Aspects that voted, each with its first choice", _choices(result, texts)),
            _facts(state),
        ],
        highlight_label="The ten best",
    )


def _details(result: VoteResult, name: str) -> dict[str, str]:
    agreement, _ = result.votes_for(name)
    best = sorted(agreement.items(), key=lambda pair: -pair[1])[:5]
    return {f"{share:.2f} of the voters": aspect for aspect, share in best}


def _choices(result: VoteResult, texts: Mapping[str, str]) -> list[Result]:
    ids = result.state.chunks.ids
    found = []
    for aspect, agreement in zip(result.aspects, result.tally.agreement, strict=True):
        for best in np.argsort(-agreement, kind="stable")[:1]:
            name = ids[int(result.tally.rows[best])]
            if name in texts:
                found.append(Result(aspect, snippet=texts[name][:_LABEL], score=float(agreement[best])))
    return found


def _means(state: MRAGState, texts: Mapping[str, str]) -> Page:
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
            columns=[Node(id=f"node {n}", label=texts[n][:_LABEL], text=texts[n], group="node") for n in shown],
            values=values,
            label="cosine",
            groups=_GROUPS,
        ),
        panels=[_facts(state)],
    )


_GROUPS = [Group("head", "Attention head"), Group("node", "Node")]


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


def _facts(state: MRAGState) -> Facts:
    dim = (state.chunks.dim or 0) // max(1, state.heads)
    return Facts("The index", {"nodes": len(state.chunks), "heads": state.heads, "numbers per head": dim})
