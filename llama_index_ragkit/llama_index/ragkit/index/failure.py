"""`Failure`: a step of a language model that failed, as an index lists it."""

from dataclasses import dataclass

__all__ = ["Failure"]


@dataclass(frozen=True)
class Failure:
    """A step that failed after all retries.

    Attributes
    ----------
    node_id : what it was made for: a node, a summary, a document
    step : what failed: the prompt, or else the kind of the component
    reason : why
    by : the class that stood in without an LLM, if one did
    """

    node_id: str
    step: str
    reason: str
    by: str = ""
