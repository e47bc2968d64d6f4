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
    by : what stood in without an LLM, if something did: a class; for a report of Graph RAG "extract", its statements
    """

    node_id: str
    step: str
    reason: str
    by: str = ""
