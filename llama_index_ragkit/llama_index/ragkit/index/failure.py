"""`Failure`: a step of a language model that failed, as an index lists it."""

from dataclasses import dataclass

__all__ = ["Failure"]


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
