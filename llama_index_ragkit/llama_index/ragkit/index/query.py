"""`Query`, `Found` and `LastQuery`: the input and output of a method's search."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol

import numpy as np
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import QueryBundle, QueryType
from numpy.typing import NDArray

from llama_index.ragkit.index.chunk_scores import SharedQuestion
from llama_index.ragkit.index.contents import IndexContents, State, ViewContents
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.results import Scored
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.text.lexical_index import FullScore
from llama_index.ragkit.vectors.question_scores import Nearness, question_cosines
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["FallbackEvent", "Found", "LastQuery", "Query", "SearchOutcome", "as_bundle", "report_fallback"]

dispatcher = get_dispatcher(__name__)

_UNSEEN = "qzxvkj"  # a word that no text has


def as_bundle(query: QueryType) -> QueryBundle:
    """A question as a bundle with a text; one that has only a vector has an empty text."""
    if isinstance(query, str):
        return QueryBundle(query)
    return query if isinstance(query.query_str, str) else replace(query, query_str="")


class FallbackEvent(BaseEvent):
    """A question was answered without a part of the method, for a reason that explanations give in `fallback` too."""

    question: str
    method: str
    reason: str

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "FallbackEvent"


def report_fallback(method: str, question: str, reason: str) -> None:
    """Send a :class:`FallbackEvent`, if there is a reason."""
    if reason:
        dispatcher.event(FallbackEvent(question=question, method=method, reason=reason))


class SearchOutcome(Protocol):
    """The interface of every search result."""

    @property
    def fallback(self) -> str:
        """Which part of the method was not used, and why; empty otherwise."""

    @property
    def ranking(self) -> Any:
        """Ids with scores, best first; for other types the retriever overrides `_results`."""


@dataclass(frozen=True)
class Found:
    """The result of a search. A method may add fields for its explanations and its page.

    Attributes
    ----------
    ranking : ids with scores, best first, each once
    fallback : which part of the method was not used, and why; empty otherwise
    """

    ranking: Iterable[Scored] = ()
    fallback: str = ""


@dataclass
class Query(Generic[State]):
    """A question and the data for its search.

    Attributes
    ----------
    bundle : the original question; it is not changed
    contents : what to search, which concurrent writes do not change; it has at least one chunk
    allowed : which chunks may be shown, shape (number of chunks,); None for all
    wanted : how many top nodes must be in the right order
    resources : models, for further embeddings
    shared : what other indexes that are asked the same have computed; None for a question to one index
    """

    bundle: QueryBundle
    contents: IndexContents[State] | ViewContents[State]
    allowed: Mask | None
    wanted: int
    resources: Resources
    _vector: NDArray[np.float32] | None = field(default=None, repr=False)
    _lexical: tuple[NDArray[np.float64], FullScore] | None = field(default=None, repr=False)
    shared: SharedQuestion | None = field(default=None, repr=False)

    @property
    def state(self) -> State:
        """The state of the method."""
        return self.contents.state

    @property
    def text(self) -> str:
        """The question."""
        return self.bundle.query_str

    def including(self, texts: Sequence[str], vectors: NDArray[np.float32], wanted: int) -> Steps["Query[State]"]:
        """The question with a state that also has the chunks near to further texts, such as its aspects.

        A state in memory has all chunks. One of an index that is served from stores has those near to the question, in
        any sense that its builder knows.

        Parameters
        ----------
        vectors : of the texts, shape (number of texts, dimension)
        wanted : how many chunks count for each text; nearness to a text takes
            :data:`~llama_index.ragkit.vectors.question_scores.NEAREST`
        """
        contents = yield from self.contents.including(texts, vectors, wanted)
        return self if contents is self.contents else self.over(contents)

    def over(self, contents: IndexContents[State] | ViewContents[State]) -> "Query[State]":
        """The question to other contents."""
        return replace(self, contents=contents, _lexical=None)

    def vector(self) -> Steps[NDArray[np.float32]]:
        """The vector of the question, shape (dimension,); embedded once, at the first call."""
        if self._vector is None:
            known = {} if self.shared is None else self.shared.vectors
            model = id(self.resources.embed_model)
            if model not in known:
                known[model] = yield from self.resources.embed_query(self.bundle, self.state.chunks.dim)
            self._vector = known[model]
        return self._vector

    def lexical_scores(self) -> Steps[NDArray[np.float64]]:
        """The BM25 score of each chunk, shape (number of chunks,), computed once.

        0 without a word of the question, and for chunks that may not be shown, which do not count in any way.
        """
        return (yield from self._scored())[0]

    def full_score(self) -> Steps[FullScore]:
        """The BM25 score of a chunk of mean length that has each word of the question once, and that length."""
        return (yield from self._scored())[1]

    def _scored(self) -> Steps[tuple[NDArray[np.float64], FullScore]]:
        if self._lexical is None:
            self._lexical = yield from offload(self.contents.scored, self.text, self.allowed)
        return self._lexical

    def frequencies(self, texts: Sequence[str]) -> Steps[tuple[list[float], float]]:
        """About how many chunks have all words of each text, and how many there are; zeros where words are not kept.

        The words are taken to be spread independently: n times the product of their shares, each the number of chunks
        with the word plus 1/2, divided by n + 1, as in the weights of BM25.
        """
        # Without marks a name is one sentence, as "Mamma Mia! Here We Go Again" is.
        full_scores = yield from offload(self.contents.full_scores, [*map(normalise, texts), _UNSEEN], self.allowed)
        *scores, unseen = (found.score for found in full_scores)
        count = max(0.0, (math.exp(unseen) - 2) / 2)  # the weight of a word in no chunk is log(2 n + 2)
        return [count * math.exp(-score) for score in scores], count

    def nearness(self, lexical_weight: float, vector: NDArray[np.float32] | None = None) -> Steps[Nearness]:
        """How near all chunks are to the question.

        Parameters
        ----------
        lexical_weight : weight of BM25, in [0, 1]; the rest is that of the cosine
        vector : a vector to use instead of that of the question
        """
        question = (yield from self.vector()) if vector is None else vector
        if self.shared is None or not np.array_equal(question, (yield from self.vector())):
            return (yield from self._nearness(lexical_weight, question))
        known = self.shared.near
        if known is None or known[1] != lexical_weight or known[0] != self.state.chunks.ids:
            near = yield from self._nearness(lexical_weight, question)
            self.shared.near = known = (self.state.chunks.ids, lexical_weight, near)
        return known[2]

    def _nearness(self, lexical_weight: float, question: NDArray[np.float32]) -> Steps[Nearness]:
        near = yield from offload(question_cosines, self.state.chunks, question)
        if not lexical_weight:
            return Nearness.of(near, np.zeros(len(near)), lexical_weight, self.allowed)
        words, full_score = (yield from self.lexical_scores()), (yield from self.full_score())
        return Nearness.of(near, words, lexical_weight, self.allowed, full_score)


@dataclass(frozen=True)
class LastQuery:
    """The last query and its answer, which the page of the index shows.

    Attributes
    ----------
    answer : ids of the nodes with their scores, in the order of the answer
    found : further results that the page of the method shows
    selection : which chunks the question was restricted to, and the page with it
    """

    question: str
    answer: Sequence[tuple[str, float]]
    found: Any
    selection: Selection
