"""`Context`: the part of a retriever's results that a reader gets, within a token budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llama_index.core.schema import MetadataMode, NodeWithScore

from llama_index.ragkit.index.results import fit_tokens
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["Context", "IdOf", "context_of", "ids_of"]

IdOf = Callable[[NodeWithScore], "str | Sequence[str] | None"]


@dataclass(frozen=True)
class Context:
    """Passages for a question.

    Attributes
    ----------
    texts : of the passages, best first, with the metadata that an LLM sees
    ids : of each passage, those that are compared with the gold
    tokens : of all texts together
    """

    texts: tuple[str, ...] = ()
    ids: tuple[tuple[str, ...], ...] = ()
    tokens: int = 0


def context_of(results: Sequence[NodeWithScore], token_budget: int | None = None, id_of: IdOf | None = None) -> Context:
    """The best results that fit the budget; one that does not is skipped, and the next is tried.

    Parameters
    ----------
    token_budget : tokens of all texts together, by LlamaIndex's tokenizer; None for no limit
    id_of : see :func:`~llama_index.ragkit.evaluation.evaluate_retriever`
    """
    kept = fit_tokens(results, token_budget)
    texts = tuple(result.node.get_content(metadata_mode=MetadataMode.LLM) for result in kept)
    return Context(texts, tuple(ids_of(result, id_of) for result in kept), sum(map(count_tokens, texts)))


def ids_of(result: NodeWithScore, id_of: IdOf | None) -> tuple[str, ...]:
    """The ids of a result: that of its node, or what `id_of` says."""
    given = result.node.node_id if id_of is None else id_of(result)
    return (given,) if isinstance(given, str) else tuple(given or ())
