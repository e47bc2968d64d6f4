"""The ranking layer: an immutable view of chunks or themes with their questions, which scores them for a prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.graph.memory_graph import BLOCK, question_means, unit_rows
from llama_index.gemrag.graph.similarity import NodeCosines, Rule
from llama_index.ragkit.vectors.kernels import cosines, pair_cosines
from llama_index.ragkit.vectors.question_scores import question_cosines
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["OWNER_KEY", "TEXT_KEY", "Centre", "Layer", "Match"]

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
OWNER_KEY = "node_id"
TEXT_KEY = "question"

# The last digits of the mean of the questions depend on their order, which must not break ties between equal scores.
_DECIMALS = 12


class Match(NamedTuple):
    """The parts of a score: the cosine of the text, the best question and its cosine, and the hub term."""

    text: float
    question_id: str | None
    question: float
    hub: float


@dataclass(frozen=True)
class Centre:
    """The mean of the unit vectors of all questions of an index, computed on first use."""

    questions: Snapshot = field(default_factory=Snapshot.empty)
    total: tuple[Doubles, int] | None = None  # shape (d,), and the number, if these are not all questions
    counted: NDArray[np.bool_] | None = None  # which of the questions count; None for all

    @cached_property
    def sum(self) -> tuple[Doubles, int]:
        """The sum of the unit vectors, shape (d,), and their number."""
        if self.total is not None:
            return self.total
        total, count = np.zeros(self.questions.dim or 0), 0
        for number, rows in enumerate(self.questions.blocks(BLOCK)):
            if self.counted is not None:
                rows = rows[self.counted[number * BLOCK : (number + 1) * BLOCK]]
            total += unit_rows(rows.astype(np.float64)).sum(axis=0)
            count += len(rows)
        return total, count

    @cached_property
    def direction(self) -> Doubles | None:
        """The mean, shape (d,), rounded to twelve decimals; None without questions."""
        total, count = self.sum
        if not count:
            return None
        mean: Doubles = np.round(total / count, _DECIMALS)
        return mean


@dataclass(frozen=True)
class Layer:
    """The vectors of nodes and of their questions."""

    texts: Snapshot = field(default_factory=Snapshot.empty)  # the vectors of the nodes
    questions: Snapshot = field(default_factory=Snapshot.empty)  # the metadata of a row name its node and hold its text
    centre: Centre = field(default_factory=Centre)  # of all questions of the index
    unread: Mapping[str, Sequence[str]] = field(default_factory=dict)  # node -> its questions that are not read
    most: float = -np.inf  # upper bound of the cosine of the prompt and any unread question
    known_owners: NDArray[np.intp] | None = None  # the `owners`, if they are known already

    @cached_property
    def owners(self) -> NDArray[np.intp]:
        """The row in `texts` of each question's node, shape (m,); -1 if the node is not there."""
        if self.known_owners is not None:
            return self.known_owners
        if not len(self.questions):
            return np.empty(0, np.intp)
        column, codes = self.questions.column(OWNER_KEY)
        rows: NDArray[np.intp] = self.texts.rows_of(column.values)[codes]
        return rows

    def with_centre(self, centre: Centre) -> "Layer":
        """The same nodes and questions with another mean."""
        return replace(self, centre=centre, known_owners=self.owners)

    @cached_property
    def _by_owner(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The questions in the order of their nodes, and the start offset of each node's questions, shape (n + 1,)."""
        order = np.argsort(self.owners, kind="stable")
        return order, np.searchsorted(self.owners[order], np.arange(len(self.texts) + 1))

    def questions_of(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of the questions of some nodes, and the position in `rows` of each question's node, ascending."""
        order, starts = self._by_owner
        counts = starts[rows + 1] - starts[rows]
        positions = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return order[starts[rows][positions] + within], positions

    def only(self, mask: NDArray[np.bool_]) -> "Layer":
        """Some nodes with their questions, by a mask of shape (n,)."""
        of_node = np.append(mask, False)  # the last value is for questions whose node is not here
        return Layer(self.texts.only(mask), self.questions.only(of_node[self.owners]), self.centre)

    @cached_property
    def agreement(self) -> Floats:
        """Cosine of each question with the text of its node, shape (m,); 0 if the node is not there."""
        found = np.zeros(len(self.owners), np.float32)
        for start in range(0, len(found), BLOCK):
            some = np.flatnonzero(self.owners[start : start + BLOCK] >= 0) + start
            if len(some):
                questions = unit_rows(self.questions.matrix[some])
                found[some] = np.einsum("ij,ij->i", questions, unit_rows(self.texts.matrix[self.owners[some]]))
        return found

    @cached_property
    def hubs(self) -> Floats:
        """Mean cosine of each text with all questions of the index, shape (n,)."""
        return self.edges_from(self.centre.direction)

    def edges_from(self, direction: Floats | Doubles | None) -> Floats:
        """Weights of the edges from a node with this mean of blended questions to each text, shape (n,)."""
        length = 0.0 if direction is None else float(np.linalg.norm(direction))
        if direction is None or not length:
            return np.zeros(len(self.texts), np.float32)
        near: Floats = self.texts.cosines([direction.astype(np.float32)])[:, 0] * np.float32(length)
        return near

    def cosines(self, vector: Floats, rule: Rule) -> NodeCosines:
        """The parts of the scores of the nodes; unread questions count with the upper bound of their cosines."""
        text = question_cosines(self.texts, vector)
        best = np.full(len(text), -np.inf)
        if len(self.questions):
            known = self.owners >= 0
            rows, question = self.owners[known], question_cosines(self.questions, vector)[known]
            agreement = np.zeros(0) if rule.blend is None else self.agreement[known].astype(np.float64)
            np.maximum.at(best, rows, rule.question_scores(text[rows], question, agreement))
        if self.unread:
            np.maximum.at(best, self.texts.rows_of(list(self.unread)), self.most)
        return NodeCosines(text, best, self.hubs.astype(np.float64).round(6))

    def match(self, row: int, vector: Floats, rule: Rule) -> Match:
        """The parts of the score of a row, in float64."""
        texts = self.texts.vectors_of([self.texts.ids[row]])
        text = cosines(texts, vector)
        hub = 0.0
        if self.centre.direction is not None:
            hub = float((unit_rows(texts.astype(np.float64)) @ self.centre.direction)[0])
        names = [self.questions.ids[i] for i in self.questions_of(np.array([row], np.intp))[0]]
        if not names:
            return Match(float(text[0]), None, 0.0, hub)
        questions = self.questions.vectors_of(names)
        question, owner = cosines(questions, vector), np.zeros(len(names), np.intp)
        agreement = np.zeros(len(names)) if rule.blend is None else pair_cosines(questions, texts[owner])
        found = rule.question_scores(text[owner], question, agreement)
        best = max(range(len(names)), key=lambda i: (found[i], names[i]))
        return Match(float(text[0]), names[best], float(question[best]), hub)

    def mean_questions(self, rows: Sequence[int] | NDArray[np.intp], blend: float) -> Floats:
        """Mean of each row's blended questions, shape (len(rows), d); the unit text of a row without questions."""
        chosen = np.asarray(rows, np.intp)
        texts = unit_rows(self.texts.vectors_of([self.texts.ids[row] for row in rows]))
        question_rows, positions = self.questions_of(chosen)
        names = [self.questions.ids[row] for row in question_rows]
        questions = unit_rows(self.questions.vectors_of(names)) if names else texts[:0]
        means: Floats = question_means(texts, questions, positions, blend, literal=False)
        return means

    def questions_with_owners(self) -> list[tuple[str, str]]:
        """For each question, the id of its node and its text."""
        if not len(self.questions):
            return []
        owners, owner_codes = self.questions.column(OWNER_KEY)
        texts, text_codes = self.questions.column(TEXT_KEY)
        return [(owners.values[a], texts.values[b]) for a, b in zip(owner_codes, text_codes, strict=True)]

    def question_text(self, question_id: str) -> str:
        """The text of a question by its id."""
        return str(self.questions.metadata_of(question_id)[TEXT_KEY])
