"""Converting ranked ids to results: new node objects, limited by count and by tokens."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeVar

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.derived_nodes import NodeFetch
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import check_count

__all__ = [
    "LOOKED_AT_PER_RESULT", "Scored", "copied", "deepened", "fetched", "fit_tokens", "fresh", "result_fields",
    "take_nodes", "unchanged",
]  # fmt: skip

LOOKED_AT_PER_RESULT = 4  # nodes fetched per requested node, since a token budget may exclude some
Scored = tuple[str, float]  # an id and its score
Ranked = TypeVar("Ranked", bound=tuple[Any, ...])


def copied(node: BaseNode) -> BaseNode:
    """A deep copy of a node. It shares what an index node leads to, which may be a whole index, unless it is a node."""
    target = getattr(node, "obj", None)
    return deepcopy(node, None if isinstance(target, BaseNode) else {id(target): target})


def fresh(node: BaseNode, score: float) -> NodeWithScore:
    """A result with a deep copy of a node."""
    return NodeWithScore(node=copied(node), score=float(score))


def unchanged(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Results with deep copies of given nodes, and their scores."""
    return [fresh(each.node, each.score or 0.0) for each in nodes]


def fetched(node: BaseNode, score: float) -> NodeWithScore:
    """A result with a node that was just read: a document store makes a new node for each call, but nested metadata are
    shared.
    """
    node.metadata = deepcopy(node.metadata)
    return NodeWithScore(node=node, score=float(score))


def result_fields(result: NodeWithScore) -> dict[str, Any]:
    """What every explanation says of a result: `node_id`, `text` and `score`."""
    return {"node_id": result.node.node_id, "text": result.node.get_content(), "score": result.get_score()}


def fit_tokens(results: Iterable[NodeWithScore], token_budget: int | None) -> list[NodeWithScore]:
    """Results in order that fit the budget; one that is too long is skipped, and the next is tried.

    The published RAPTOR stops at the first that does not fit, so that one long node near the top cuts the context
    short.
    """
    if token_budget is None:
        return list(results)
    kept, left = [], token_budget
    for result in results:
        tokens = count_tokens(result.node.get_content(metadata_mode=MetadataMode.LLM))
        if tokens <= left:
            kept.append(result)
            left -= tokens
    return kept


def deepened(first: Sequence[Ranked], rank: Callable[[int], Sequence[Ranked]], depth: int) -> Iterator[Ranked]:
    """A ranking of any depth, extended when some of its nodes no longer exist.

    Parameters
    ----------
    first : the best `depth` entries, which begin with an id
    rank : depth -> that many best entries
    depth : at least 1

    Raises
    ------
    ConfigurationError
        If the depth is below 1.
    """
    check_count("depth", depth, 1)
    return _each_once(first, rank, depth)


def _each_once(found: Sequence[Ranked], rank: Callable[[int], Sequence[Ranked]], depth: int) -> Iterator[Ranked]:
    given: set[str] = set()
    while True:
        for entry in found:
            if entry[0] not in given:
                given.add(entry[0])
                yield entry
        if len(found) < depth:
            return
        depth *= 4
        found = rank(depth)


def take_nodes(
    ranking: Iterable[Scored],
    fetch: NodeFetch,
    top_k: int,
    token_budget: int | None = None,
) -> Steps[list[NodeWithScore]]:
    """The best `top_k` nodes of a ranking that can be fetched and fit the token budget.

    Parameters
    ----------
    ranking : ids with scores, best first, each once
    fetch : a new node object by id; None for one that another index has deleted from the shared docstore
    top_k : number of nodes; with a token budget, up to `LOOKED_AT_PER_RESULT` times as many are tried
    """
    kept: list[NodeWithScore] = []
    left = token_budget
    looked_at = 0
    for node_id, score in ranking:
        node = yield from fetch(node_id)
        if node is None:
            continue
        looked_at += 1
        tokens = 0 if left is None else count_tokens(node.get_content(metadata_mode=MetadataMode.LLM))
        if left is None or tokens <= left:
            left = None if left is None else left - tokens
            kept.append(fetched(node, score))
        # Stop before requesting one more entry, which may take a whole search.
        if len(kept) == top_k or left == 0 or looked_at == LOOKED_AT_PER_RESULT * top_k:
            break
    return kept
