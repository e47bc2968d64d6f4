"""The writer of questions: extraction for themes, embedding and storage."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import QuestionRole
from llama_index.gemrag.layer import OWNER_KEY, TEXT_KEY
from llama_index.ragkit import (
    Extraction,
    IndexStorage,
    Record,
    Resources,
    SpaceRows,
    Steps,
    as_matrix,
    call,
    content_id,
    derived_node,
    gather,
)
from llama_index.ragkit.text.lexical_terms import lexical_terms

__all__ = [
    "QUESTIONS",
    "THEME_QUESTIONS",
    "QuestionWriter",
    "question_id",
    "questions_in",
    "terms_with_questions",
]

QUESTIONS = "questions"
THEME_QUESTIONS = "theme_questions"


def question_id(node_id: str, question: str) -> str:
    """The id of a question of a node."""
    return content_id("question", node_id, question)


def questions_in(record: Record | None) -> list[str]:
    """The distinct non-empty questions in a record."""
    found = (record or {}).get("questions", ())
    return list(dict.fromkeys(q for q in found if isinstance(q, str) and q.strip()))


def terms_with_questions(text: Counter[str], record: Record | None) -> Counter[str]:
    """The terms that a chunk is found by: those of its text, and those of its questions that its text lacks.

    Questions expand a document (Nogueira et al., Document Expansion by Query Prediction, 2019, arXiv 1904.08375). There
    all their words are appended. Terms of the text are not counted again here: key phrases repeat sentences of the
    text, and a term that is counted twice says more of the sentence that was chosen than of the chunk.

    Parameters
    ----------
    text : the terms of its text
    """
    asked = lexical_terms("\n".join(questions_in(record)))
    return text + Counter({term: times for term, times in asked.items() if term not in text})


class QuestionWriter:
    """Extracts, embeds and stores questions.

    Parameters
    ----------
    storage, resources : those of the index
    role : how questions are embedded: "text" like chunks, "query" like prompts
    """

    def __init__(self, storage: IndexStorage, resources: Resources, role: QuestionRole) -> None:
        self._storage = storage
        self._resources = resources
        self._role = role
        self._ready: dict[str, NDArray[np.float32]] = {}

    def prepare(self, space: str, questions: Mapping[str, Sequence[str]]) -> Steps[None]:
        """Embed the questions that :meth:`store` is about to store, and keep their vectors until then."""
        stored = yield from self._stored(space, questions)
        texts = {
            question
            for owner, of_node in questions.items()
            for question in of_node
            if question_id(owner, question) not in stored.get(owner, ())
        }
        ordered = sorted(texts)
        self._ready = dict(zip(ordered, (yield from self._embed(ordered)), strict=True)) if ordered else {}

    def extract(self, texts: Mapping[str, str]) -> Steps[list[Extraction]]:
        """Extract the questions that themes answer, one extraction per theme; read them by :func:`questions_in`.

        Parameters
        ----------
        texts : theme id -> its summary
        """
        nodes = [derived_node(name, text, {}, ()) for name, text in texts.items()]
        return (yield from self._resources.extract(nodes, self._storage.cache_user))

    def store(self, space: str, questions: Mapping[str, Sequence[str]], keys: Mapping[str, str]) -> Steps[None]:
        """Replace the stored questions of nodes; unchanged questions are not embedded again.

        Parameters
        ----------
        space : :data:`QUESTIONS` or :data:`THEME_QUESTIONS`
        questions : node -> its questions, distinct and not empty
        keys : node -> its canonical sort key
        """
        pairs = [(owner, question) for owner, of_node in questions.items() for question in of_node]
        ids = [question_id(owner, question) for owner, question in pairs]
        stored = yield from self._stored(space, questions)
        wanted, known = set(ids), {row_id for of_node in stored.values() for row_id in of_node}
        yield from self._remove(space, [row_id for row_id in known if row_id not in wanted])
        new = [i for i, row_id in enumerate(ids) if row_id not in known]
        if not new:
            return
        texts = list(dict.fromkeys(pairs[i][1] for i in new))
        vectors = yield from self._embed(texts)
        place = {text: row for row, text in enumerate(texts)}
        rows = SpaceRows(
            [ids[i] for i in new],
            vectors[[place[pairs[i][1]] for i in new]],
            [f"{keys[pairs[i][0]]}|{pairs[i][1]}" for i in new],
            [ids[i] for i in new],
            [{OWNER_KEY: pairs[i][0], TEXT_KEY: pairs[i][1]} for i in new],
        )
        self._ready = {}
        yield from self._put(space, rows)

    def delete(self, space: str, owners: Collection[str]) -> Steps[None]:
        """Delete the questions of nodes."""
        stored = yield from self._stored(space, owners)
        yield from self._remove(space, [row_id for of_node in stored.values() for row_id in of_node])

    # -- where they are stored ----------------------------------------------------------------------

    def _stored(self, space: str, owners: Collection[str]) -> Steps[Mapping[str, Sequence[str]]]:
        """The ids of the stored questions of nodes."""
        rows = self._storage.snapshot(space)
        if not len(rows) or not owners:
            return {}
        column, codes = rows.column(OWNER_KEY)
        wanted = [column.code_of[owner] for owner in owners if owner in column.code_of]
        found: dict[str, list[str]] = {}
        for row in np.flatnonzero(np.isin(codes, wanted)):
            found.setdefault(column.values[codes[row]], []).append(rows.ids[row])
        return found
        yield

    def _put(self, space: str, rows: SpaceRows) -> Steps[None]:
        yield from self._storage.spaces[space].put(rows)

    def _remove(self, space: str, ids: Sequence[str]) -> Steps[None]:
        yield from self._storage.spaces[space].remove(ids)

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
