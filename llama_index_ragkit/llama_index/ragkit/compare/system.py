"""What a system found for each question, and what it took."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from llama_index.ragkit.atomic import write_atomically
from llama_index.ragkit.evaluation import Evaluation
from llama_index.ragkit.extraction.context import Estimate

__all__ = ["Hit", "Run", "load_run", "save_run"]


@dataclass(frozen=True)
class Hit:
    """A node that was found.

    Attributes
    ----------
    documents : the document of a chunk; those below it for a summary
    text : its beginning
    """

    node_id: str
    documents: tuple[str, ...]
    text: str
    score: float

    @property
    def document(self) -> str | None:
        """The one document that it is from; None for a summary of several, which points at none of them."""
        return self.documents[0] if len(self.documents) == 1 else None


@dataclass(frozen=True)
class Run:
    """A method or a baseline on all questions.

    Attributes
    ----------
    name : of the system
    is_baseline : whether it is plain search
    hits : for each question, in their order, what was found, best first
    seconds : that the build took
    milliseconds : that a question took, on average, once it was embedded
    estimate : the LLM and embedding work of the build, as estimated before it
    error : why the system could not be built or asked; then it has no hits
    answers : what contexts of equal size hold, and what the LLM answers from them, by the place of the question; None
        where neither was asked for
    answer_seconds : that an answer took, on average, with the search before it
    """

    name: str
    is_baseline: bool
    hits: Sequence[Sequence[Hit]] = ()
    seconds: float = 0.0
    milliseconds: float = 0.0
    estimate: Estimate = field(default_factory=Estimate)
    error: str = ""
    answers: Evaluation | None = None
    answer_seconds: float = 0.0


def save_run(run: Run, path: Path, fingerprint: str) -> None:
    """Write a run with what it depends on."""
    stored = {"fingerprint": fingerprint, "run": asdict(run)}
    write_atomically(path, json.dumps(stored, indent=1).encode("utf-8"))


def load_run(path: Path, fingerprint: str) -> Run | None:
    """A stored run; None if there is none, or it was of other texts, questions or models."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(stored, Mapping) or stored.get("fingerprint") != fingerprint:
        return None
    run = stored["run"]
    hits = [[Hit(**{**hit, "documents": tuple(hit["documents"])}) for hit in hits] for hits in run["hits"]]
    answers = None if run["answers"] is None else _evaluation(run["answers"])
    return Run(**{**run, "hits": hits, "estimate": Estimate(**run["estimate"]), "answers": answers})


def _evaluation(stored: Mapping[str, Any]) -> Evaluation:
    scores = {metric: tuple(column) for metric, column in stored["scores"].items()}
    return Evaluation(**{**stored, "ids": tuple(stored["ids"]), "scores": scores})
