"""`Failure`: a step of a language model that failed, as an index lists it."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Failure", "stand_ins"]

_NAMED = 5  # ids that are listed


@dataclass(frozen=True)
class Failure:
    """A step that failed after all retries.

    Attributes
    ----------
    node_id : the node, summary or document that the step was for
    step : the step that failed: the prompt, or else the kind of the component
    reason : why it failed
    by : the class that did the step without an LLM, if one did; "extract" for a report of Graph RAG, made of statements
    """

    node_id: str
    step: str
    reason: str
    by: str = ""


def stand_ins(failures: Sequence[Failure]) -> dict[str, str]:
    """What stood in without an LLM -> how often, and for which nodes first."""
    of: dict[str, list[str]] = {}
    for failure in failures:
        if failure.by:
            of.setdefault(failure.by, []).append(failure.node_id)
    return {
        by: f"{len(ids)}: {', '.join(ids[:_NAMED])}{', ...' if len(ids) > _NAMED else ''}" for by, ids in of.items()
    }
