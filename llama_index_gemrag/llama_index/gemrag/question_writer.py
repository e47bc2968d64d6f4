"""`QuestionWriter` extracts the questions of themes, and embeds and stores all questions."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import unit_rows
from llama_index.gemrag.layer import OWNER_KEY, TEXT_KEY
from llama_index.gemrag.memory_rows import QUESTIONS, THEME_QUESTIONS, MemoryRows
from llama_index.ragkit import Extraction, SpaceRows, Steps, content_id
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.llm.embeddings import as_matrix
from llama_index.ragkit.steps import call, gather
from llama_index.ragkit.storage.derived_nodes import derived_node
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.lexical_index import lexical_terms

__all__ = ["QuestionWriter", "question_id", "questions_in", "terms_with_questions"]


def question_id(node_id: str, question: str) -> str:
    """The id of a question of a node."""
    return content_id("question", node_id, question)


def questions_in(record: Record | None) -> list[str]:
    """The distinct non-empty questions in a record."""
    found = (record or {}).get("questions", ())
    return list(dict.fromkeys(q for q in found if isinstance(q, str) and q.strip()))


def terms_with_questions(text: Counter[str], record: Record | None) -> Counter[str]:
    """The terms by which a chunk is found: those of its text, and those of its questions that its text lacks.

    Questions expand a document (Nogueira et al., Document Expansion by Query Prediction, 2019, arXiv 1904.08375). The
    authors append all words of the questions. Here terms of the text are not counted again: key phrases repeat
    sentences of the text, and a second count would tell more about the chosen sentence than about the chunk.
    """
    asked = lexical_terms("\n".join(questions_in(record)))
    return text + Counter({term: times for term, times in asked.items() if term not in text})


class QuestionWriter:
    """Extracts, embeds and stores questions, and keeps the sum of the unit vectors of the questions of chunks."""

    def __init__(self, storage: IndexStorage, resources: Resources, rows: MemoryRows, config: MemoryConfig) -> None:
        self._storage = storage
        self._resources = resources
        self._rows = rows
        self._role = config.question_role
        # Not if the extractor says that its questions only repeat words of their chunk.
        self.embeds: bool = config.paper or getattr(resources.extractor, "embed_questions", True)
        self._ready: dict[str, NDArray[np.float32]] = {}

    def embedded(self, record: Record | None) -> list[str]:
        """The questions in a record that are embedded."""
        return questions_in(record) if self.embeds else []

    def prepare(self, space: str, questions: Mapping[str, Sequence[str]]) -> Steps[None]:
        """Embed the questions that :meth:`store` is about to store, and keep their vectors until then."""
        stored = yield from self._rows.questions_of(space, questions)
        texts = {
            question
            for owner, of_node in questions.items()
            for question in of_node
            if question_id(owner, question) not in stored.get(owner, ())
        }
        ordered = sorted(texts)
        self._ready = dict(zip(ordered, (yield from self._embed(ordered)), strict=True)) if ordered else {}

    def extract(self, texts: Mapping[str, str]) -> Steps[list[Extraction]]:
        """Extract the questions that themes answer from their summaries, by id; read them with :func:`questions_in`."""
        nodes = [derived_node(name, text, {}, ()) for name, text in texts.items()]
        return (yield from self._resources.extract(nodes, self._storage.cache_user))

    def store(self, space: str, questions: Mapping[str, Sequence[str]], keys: Mapping[str, str]) -> Steps[None]:
        """Replace the stored questions of nodes; unchanged questions are not embedded again.

        The questions of a node must be distinct and not empty; `keys` are the canonical sort keys of the nodes.
        """
        ids = {owner: [question_id(owner, question) for question in asked] for owner, asked in questions.items()}
        stored = yield from self._rows.questions_of(space, questions)
        yield from self._remove(space, {owner: set(known).difference(ids[owner]) for owner, known in stored.items()})
        new = [
            (owner, row_id, question)
            for owner, asked in questions.items()
            for row_id, question in zip(ids[owner], asked, strict=True)
            if row_id not in stored.get(owner, ())
        ]
        if not new:
            return
        texts = list(dict.fromkeys(question for _, _, question in new))
        place = {text: row for row, text in enumerate(texts)}
        vectors = (yield from self._embed(texts))[[place[question] for _, _, question in new]]
        self._ready = {}
        row_ids = [row_id for _, row_id, _ in new]
        rows = SpaceRows(
            row_ids,
            vectors,
            [f"{keys[owner]}|{question}" for owner, _, question in new],
            row_ids,
            [{OWNER_KEY: owner, TEXT_KEY: question} for owner, _, question in new],
        )
        owners = dict.fromkeys(owner for owner, _, _ in new)
        yield from self._rows.put_questions_of(space, {owner: ids[owner] for owner in owners})
        yield from self._storage.space(space).put(rows)
        yield from self._count(space, vectors, 1)

    def delete(self, space: str, owners: Collection[str]) -> Steps[None]:
        """Delete the questions of nodes."""
        yield from self._remove(space, (yield from self._rows.questions_of(space, owners)))

    def delete_all(self) -> Steps[None]:
        """Delete the questions that earlier versions embedded."""
        for space in (QUESTIONS, THEME_QUESTIONS):
            yield from self.delete(space, (yield from self._rows.names(f"gem_{space}")))
        self._storage.struct.counters.pop("questions", None)

    def _remove(self, space: str, questions: Mapping[str, Collection[str]]) -> Steps[None]:
        """Delete questions of nodes, by their ids."""
        ids = sorted(row_id for of_node in questions.values() for row_id in of_node)
        if not ids:
            return
        if space == QUESTIONS:
            yield from self._count(space, (yield from self._storage.space(space).fetch(ids)).matrix, -1)
        yield from self._storage.space(space).remove(ids)
        known = yield from self._rows.questions_of(space, questions)
        left = {owner: set(of_node).difference(questions[owner]) for owner, of_node in known.items()}
        yield from self._rows.put_questions_of(space, left)
        self._storage.commits.note_removal()  # a search that is already running may miss the vectors

    def _count(self, space: str, vectors: NDArray[np.float32], sign: int) -> Steps[None]:
        """Add vectors to the sum over the questions of chunks, or subtract them."""
        if space != QUESTIONS or not len(vectors):
            return
        total, count = yield from self._rows.centre()
        more = unit_rows(vectors.astype(np.float64)).sum(axis=0)
        count += sign * len(vectors)
        yield from self._rows.put_centre(sign * more + (total if len(total) else 0.0), count)
        self._storage.struct.counters["questions"] = count

    def _embed(self, texts: list[str]) -> Steps[NDArray[np.float32]]:
        known = self._ready
        new = [text for text in texts if text not in known]
        vectors = {**known, **dict(zip(new, (yield from self._embed_new(new)) if new else (), strict=True))}
        return np.stack([vectors[text] for text in texts])

    def _embed_new(self, texts: list[str]) -> Steps[NDArray[np.float32]]:
        resources = self._resources
        if self._role == "text":
            return (yield from resources.embed(texts, "questions"))
        model = resources.embed_model
        jobs = [partial(call, model.get_query_embedding, model.aget_query_embedding, text) for text in texts]
        outcomes = yield from gather(jobs, resources.num_workers, "Embedding questions", resources.show_progress)
        return as_matrix([outcome.unwrap() for outcome in outcomes], texts)
