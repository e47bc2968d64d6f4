"""The methods of the demo: how each index is made, with an LLM or without one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from llama_index.ragkit import DerivedIndex, ExtractiveSummarizer
from llama_index.raptor import RaptorIndex

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    """A method, and what the demo says of it.

    Attributes
    ----------
    what : one sentence for who has never heard of it
    kind : the kind of question of the sample archive that it is asked
    offline : components that need no LLM; with an LLM those that the index takes by itself serve
    counts : what of the built index is told, as (what, how many)
    models : components that it needs either way, such as an embedding model of its own
    """

    name: str
    title: str
    what: str
    kind: str
    cls: type[DerivedIndex[Any, Any]]
    offline: Callable[[], Mapping[str, Any]]
    counts: Callable[[Any], Mapping[str, int]]
    models: Callable[[], Mapping[str, Any]] = dict


METHODS = (
    Method(
        name="raptor",
        title="RAPTOR: a tree of summaries",
        what="Clusters of chunks are summarised, the summaries are clustered and summarised, and so on up to a root.",
        kind="theme",
        cls=RaptorIndex,
        offline=lambda: {"summarizer": ExtractiveSummarizer()},
        counts=lambda index: {"summaries": index.index_struct.counters["summaries"], "layers": index.tree.height},
    ),
)
