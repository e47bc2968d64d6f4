"""`Comparison`: the runs of all systems, their scores, and the recommendation."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from llama_index.ragkit.atomic import write_atomically
from llama_index.ragkit.compare.page import Cell, QuestionOnPage, comparison_page
from llama_index.ragkit.compare.questions import Question
from llama_index.ragkit.compare.recommendation import Recommendation, agreement, recommend, without_labels
from llama_index.ragkit.compare.system import Hit, Run
from llama_index.ragkit.evaluation import Evaluation, LabelledQuery, recall_at_k, reciprocal_rank, score_rankings
from llama_index.ragkit.evaluation.metrics import Metric
from llama_index.ragkit.evaluation.results import markdown_table
from llama_index.ragkit.html import framed

__all__ = ["Comparison"]

_FRAME_HEIGHT = 640
_COMMON = "hybrid"  # the baseline that the results of others are compared with
_HEADS = {"contained": "context holds the answer"}
_MOST_SHOWN = 100  # questions on a page: those of a benchmark would fill tens of megabytes


@dataclass(frozen=True)
class Comparison:
    """What every system found, and what follows from it. A notebook shows its page.

    Attributes
    ----------
    questions : that were asked
    source : where they come from, in words
    runs : of the baselines and methods
    top_k : passages of each answer
    titles : id of a document -> its name
    file_of : id of a document -> the file that it is a page of, for files of several documents
    context_tokens : of the contexts for answers
    """

    questions: Sequence[Question]
    source: str
    runs: Sequence[Run]
    top_k: int
    titles: dict[str, str]
    file_of: dict[str, str] = field(default_factory=dict)
    context_tokens: int = 1000

    @property
    def metric(self) -> str:
        """The measure by which systems are compared."""
        return f"recall@{self.top_k}"

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """The scores of the systems on the questions with labels, by name; empty without any."""
        labelled = [(i, question) for i, question in enumerate(self.questions) if question.documents]
        if not labelled:
            return {}
        queries = [LabelledQuery(str(i), question.text, gold=question.documents) for i, question in labelled]
        metrics: dict[str, Metric] = {self.metric: partial(recall_at_k, k=self.top_k), "MRR": reciprocal_rank}
        return {
            run.name: score_rankings(run.name, {str(i): self.ranking(run, i) for i, _ in labelled}, queries, metrics)
            for run in self._answered
        }

    def ranking(self, run: Run, i: int) -> list[str]:
        """The documents that a system found for a question, each once, best first."""
        found = (self.named(hit, self.questions[i]) for hit in run.hits[i])
        return list(dict.fromkeys(document for document in found if document is not None))

    def named(self, hit: Hit, question: Question) -> str | None:
        """The document of a hit as a question names it: the page, or the file that it is a page of."""
        document = hit.document
        if document is None or document in question.documents:
            return document
        return self.file_of.get(document, document)

    @cached_property
    def answers(self) -> dict[str, Evaluation]:
        """What contexts of equal size hold, and the answers of the LLM, by the name of the system; empty without any.

        The metrics are those of :func:`~llama_index.ragkit.evaluation.evaluate_answers`, the id of a question its
        place. Questions that any system failed to answer are left out, so that all have the same.
        """
        given = {run.name: run.answers for run in self._answered if run.answers is not None}
        common = set.intersection(*(set(answers.ids) for answers in given.values())) if given else set()
        return {name: answers.only(common) for name, answers in given.items()} if common else {}

    @property
    def _answered(self) -> list[Run]:
        return [run for run in self.runs if not run.error]

    @cached_property
    def agreements(self) -> dict[str, float]:
        """System -> share of its passages that hybrid search finds too, in [0, 1]."""
        found = {run.name: [[hit.node_id for hit in hits] for hits in run.hits] for run in self._answered}
        return {name: agreement(hits, found[_COMMON]) for name, hits in found.items() if name != _COMMON}

    @property
    def recommendation(self) -> Recommendation:
        """Which system to use, and why."""
        baselines = [run.name for run in self._answered if run.is_baseline]
        scored, metric = self._decisive()
        if not scored:
            own = {name: share for name, share in self.agreements.items() if name not in baselines}
            return without_labels(own, _COMMON)
        methods = [e for name, e in scored.items() if name not in baselines]
        return recommend(methods, [scored[name] for name in baselines], metric)

    def _decisive(self) -> tuple[dict[str, Evaluation], str]:
        """What says most of what is known: answers, else documents, else contexts that hold an answer."""
        of_answers = self._measures_of_answers
        if "F1" in of_answers:
            return self.answers, "F1"
        if self.evaluations:
            return self.evaluations, self.metric
        return (self.answers, "contained") if of_answers else ({}, "")

    @property
    def _measures_of_answers(self) -> list[str]:
        known = next(iter(self.answers.values())).scores if self.answers else {}
        return [metric for metric in ("contained", "EM", "F1") if metric in known]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The head and the rows of the table: quality where there are labels, agreement and cost."""
        measures = [self.metric, "MRR"] if self.evaluations else []
        of_answers = self._measures_of_answers
        named = [_HEADS.get(metric, metric) for metric in of_answers]
        taken = ["context tokens", "s an answer"] if self.answers else []
        cost_head = ["ms a question", "build s", "embedded texts", "LLM calls"]
        head = ["system", *measures, *named, "shared with hybrid", *taken, *cost_head]
        rows = []
        for run in self.runs:
            if run.error:
                rows.append([run.name, *["-"] * (len(head) - 2), f"failed: {run.error}"])
                continue
            quality = [str(self.evaluations[run.name].interval(metric)) for metric in measures]
            quality += [str(self.answers[run.name].interval(metric)) for metric in of_answers]
            shared = f"{self.agreements[run.name]:.2f}" if run.name in self.agreements else ""
            about = "" if run.estimate.embedding_is_exact else "about "
            cost = []
            if self.answers:
                tokens = self.answers[run.name].interval("tokens", n_resamples=1).mean
                cost = [f"{tokens:,.0f}", f"{run.answer_seconds:.2f}"]
            cost += [f"{run.milliseconds:.0f}", f"{run.seconds:.1f}", f"{about}{run.estimate.embedded_texts:,}"]
            rows.append([run.name, *quality, shared, *cost, f"{run.estimate.calls:,}"])
        return head, rows

    def __str__(self) -> str:
        head, rows = self.rows()
        return f"{self._counted}\n\n{markdown_table(head, rows)}\n\nRecommended: {self.recommendation}"

    @property
    def _counted(self) -> str:
        """How many questions there are, and how many of them the recommendation does not count."""
        scored, _ = self._decisive()
        left = len(self.questions) - len(next(iter(scored.values())).ids) if scored else 0
        unscored = f" ({left:,} of them not scored)" if left else ""
        return f"{len(self.questions):,} questions{unscored}: {self.source}"

    def html(self) -> str:
        """The page: the table, the recommendation, and the answers side by side. Self-contained, without scripts."""
        head, rows = self.rows()
        shown = []
        for i in self._shown():
            question = self.questions[i]
            columns = {
                run.name: [
                    Cell(
                        " · ".join(self.titles.get(doc, doc) for doc in hit.documents[:3]),
                        hit.text,
                        self.named(hit, question) in question.documents,
                    )
                    for hit in run.hits[i]
                ]
                for run in self._answered
            }
            wanted = [self.titles.get(document, document) for document in question.documents]
            said = {
                name: answers.answers[str(i)] for name, answers in self.answers.items() if str(i) in answers.answers
            }
            shown.append(QuestionOnPage(question.text, wanted, question.answers, columns, said))
        best = self.recommendation
        return comparison_page(self._counted, best.name, best.reason, head, rows, self._heading, shown)

    def _shown(self) -> list[int]:
        """The questions of the page: all, or of many those on which the systems differ most."""
        every = range(len(self.questions))
        if len(self.questions) <= _MOST_SHOWN:
            return list(every)
        found = [[frozenset(self.ranking(run, i)) for run in self._answered] for i in every]
        right = [[len(documents & set(self.questions[i].documents)) for documents in found[i]] for i in every]
        # A spread of what is right counts before one of what is found: answers differ in many ways that are all fine.
        return sorted(every, key=lambda i: (min(right[i]) - max(right[i]), -len(set(found[i]))))[:_MOST_SHOWN]

    @property
    def _heading(self) -> str:
        if len(self.questions) <= _MOST_SHOWN:
            return "Answers side by side"
        return f"Answers side by side: {_MOST_SHOWN} questions on which the systems differ most"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame."""
        return framed(self.html(), "Comparison of retrieval methods", _FRAME_HEIGHT)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file."""
        return write_atomically(path, self.html().encode("utf-8", "replace"))
