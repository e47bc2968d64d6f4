"""What a system found for each question and what it took, and the answers from contexts of the same size for all."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from llama_index.ragkit.atomic import write_atomically
from llama_index.ragkit.compare.questions import Question
from llama_index.ragkit.evaluation import Evaluation, LabelledQuery, Reader, evaluate_answers
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["Answering", "Hit", "Run", "load_run", "save_run"]

_ANSWER_TOKENS = 20  # of a short answer


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


@dataclass(frozen=True)
class Answering:
    """How questions are answered from contexts of equal size; no question where neither can be told."""

    queries: Sequence[LabelledQuery]
    tokens: int
    reader: Reader | None

    @classmethod
    def of(
        cls, asked: Sequence[Question], tokens: int, llm: LLM | None, cache: ExtractionCache | None, read: bool
    ) -> "Answering":
        """The questions that have answers; if none has, all of them where they are to be read."""
        reader = None if llm is None else Reader(llm, cache=cache)
        queries = [LabelledQuery(str(i), each.text, answers=each.answers) for i, each in enumerate(asked)]
        known = [query for query in queries if query.answers]
        return cls(known or (queries if read and reader is not None else []), tokens, reader)

    def estimate(self, systems: int) -> dict[str, Estimate]:
        """The calls for all answers, if any."""
        calls = systems * len(self.queries)
        if self.reader is None or not calls:
            return {}
        prompt = self.tokens + count_tokens(self.reader.prompt(self.reader.style).get_template())
        return {"answers of all systems": Estimate(calls, calls * prompt, calls * _ANSWER_TOKENS)}

    def answers(self, name: str, retriever: BaseRetriever, show_progress: bool) -> Evaluation:
        """What a system's contexts hold, and what the LLM answers from them."""
        return evaluate_answers(
            retriever,
            self.queries,
            self.reader,
            name=name,
            token_budget=self.tokens,
            show_progress=show_progress,
            on_error="record",
        )
