"""The global search: the reports of a cut of the hierarchy, or the chunks that a model finds relevant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.config import SearchConfig
from llama_index.graphrag.found import GraphRAGFound, Similarities, similarities
from llama_index.graphrag.graph_parts import GraphParts
from llama_index.graphrag.replies import YesNo, read_score, read_yes_no
from llama_index.graphrag.reports.planning import ReportPlan, unwritten
from llama_index.graphrag.reports.report import Report
from llama_index.graphrag.search.cut import Cut, budget_cut, community_nearness, level_cut, rated_cut
from llama_index.graphrag.state import NEAREST, GraphRAGState, GraphView, WrittenReport
from llama_index.ragkit import Query, Steps, offload
from llama_index.ragkit.errors import ExtractionError, ParseError
from llama_index.ragkit.llm.context_window import TAG_TOKENS, PromptTexts
from llama_index.ragkit.llm.json.shapes import ITEMS, Reply, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.storage.derived_nodes import NodeFetch
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.tokens import batches, count_tokens
from llama_index.ragkit.vectors.kernels import cosines
from llama_index.ragkit.vectors.question_scores import best_rows, result_scores, standardised

__all__ = ["EMPTY", "Ask", "RelevanceSearch", "Reports", "WriteReports", "global_reports", "nearest_communities"]

EMPTY = "the index has no entities, so there are no reports; chunks are ranked by similarity"
_TITLE_TOKENS = 16  # of a report, besides its statements
_RATED_TOKENS = 8000  # of all reports in one call for ratings
_MOST_RATING = 5.0

Floats = NDArray[np.float64]


class Ask(NamedTuple):
    """Calls a language model with the prompt of a name, and gives the tokens of text for which this has room."""

    complete: Callable[..., Steps[Any]]
    room: Callable[..., int]


WriteReports = Callable[
    [GraphRAGState, GraphView, Sequence[ReportPlan]], Steps[tuple[Mapping[str, WrittenReport], str]]
]
"""Writes and stores reports; returns the written ones by key, and why others failed, empty if none did."""


class Reports:
    """The reports that a question reads; missing ones, at most `limit`, are written if `write` is given.

    `calls` counts the calls of a model so far; `reason` says why reports could not be written.
    """

    def __init__(self, state: GraphRAGState, view: GraphView, write: WriteReports | None, limit: int | None) -> None:
        self._state = state
        self._view = view
        self._write = write
        self._limit = limit
        self.calls = 0
        self.reason = ""

    def read(self, communities: Sequence[int]) -> Steps[dict[int, Report]]:
        """The reports of some communities; an unwritten report is replaced by the statements."""
        yield from self._view.load(communities)
        if self._write is not None:
            plans = yield from offload(lambda: [self._view.planner.plan(community) for community in communities])
            known = self._view.known(self._state.reports)
            left = None if self._limit is None else max(0, self._limit - self.calls)
            todo = unwritten(plans, known)[:left]
            if todo:
                written, self.reason = yield from self._write(self._state, self._view, todo)
                self.calls += len(todo)
                self._state = replace(self._state, reports={**self._state.reports, **written})
        return (yield from offload(self._made, communities))

    def _made(self, communities: Sequence[int]) -> dict[int, Report]:
        return {community: self._state.report(self._view, community) for community in communities}


def nearest_communities(view: GraphView, near: Similarities) -> Floats:
    """The nearness of each community to the question, shape (c,), by its chunks."""
    rows = best_rows(near.scores, NEAREST, near.state.chunks)
    ids = near.state.chunks.ids
    places = view.places_of([ids[row] for row in rows])
    chunks = [(float(near.scores[row]), places[ids[row]]) for row in rows]
    return community_nearness(view.hierarchy, chunks, min((score for score, _ in chunks), default=0.0))


def global_reports(
    query: Query[GraphRAGState],
    parts: GraphParts,
    options: SearchConfig,
    budget: int,
    ask: Ask,
    write: WriteReports | None,
) -> Steps[GraphRAGFound]:
    """Reports on the whole corpus, nearest to the question first.

    Their tokens fit `budget`, unless the options give a level or a threshold of ratings.
    """
    near = yield from similarities(query, options.lexical_weight)
    view = yield from parts.communities(query.state, query.allowed)
    if not (yield from offload(lambda: len(view.hierarchy))):
        return GraphRAGFound(view, near.ranking(near.scores, query.wanted), EMPTY, near=near)
    nearness = yield from offload(nearest_communities, view, near)
    reports = Reports(query.state, view, write if view.whole else None, options.max_reports)
    calls = 0
    if options.rating_threshold is not None:
        ratings: dict[int, float] = {}
        waiting: list[int] = view.hierarchy.roots.tolist()
        while waiting:
            rated, asked = yield from _rated(waiting, reports, query.text, ask)
            calls += asked
            ratings |= rated
            opened = [community for community in waiting if rated[community] >= options.rating_threshold]
            waiting = [child for community in opened for child in view.hierarchy.children(community).tolist()]
        cut = Cut(rated_cut(view.hierarchy, ratings, options.rating_threshold))
    else:
        cut = yield from offload(_cut, query.state, view, nearness, options.level, budget)
    read = yield from reports.read(cut.communities)
    nodes = yield from parts.report_nodes(query.state, view, read)
    values = result_scores(nearness[list(nodes)], nearness).tolist()
    return GraphRAGFound(
        view=view,
        ranking=[(node.node_id, value) for node, value in zip(nodes.values(), values, strict=True)],
        fallback=reports.reason,
        derived={node.node_id: node for node in nodes.values()},
        cut=cut,
        calls=calls + reports.calls,
        tokens=sum(count_tokens(node.get_content()) for node in nodes.values()),
        keep_all=True,
    )


def _cut(state: GraphRAGState, view: GraphView, nearness: Floats, level: int | None, budget: int) -> Cut:
    planner = view.planner
    if level is not None:
        communities = level_cut(view.hierarchy, level)
        return Cut(tuple(sorted(communities, key=lambda community: (-nearness[community], community))))

    def cost(community: int) -> int:
        if not planner.states(community):
            return 0
        return view.size(state.reports, planner.plan(community)) + _TITLE_TOKENS

    return budget_cut(
        view.hierarchy, cost, nearness, budget, can_open=lambda community: not planner.plan(community).verbatim
    )


class _Rating(Reply):
    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "number": ("report", "id", "index", "reportnumber"),
        "rating": ("score", "value", "relevance"),
    }

    number: int
    rating: Any


class _Ratings(Reply):
    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"ratings": ("rating", "scores", "reports")}

    ratings: Annotated[list[_Rating], ITEMS]


def _read_ratings(reply: str, count: int) -> _Ratings:
    """The ratings in a reply; at least one must be readable and name a given report."""
    read = read_reply(reply, _Ratings)
    if not any(1 <= r.number <= count and read_score(r.rating, _MOST_RATING) is not None for r in read.ratings):
        raise ParseError(f"No rating is a number of one of the reports 1 to {count}.")
    return read


def _rated(waiting: Sequence[int], reports: Reports, question: str, ask: Ask) -> Steps[tuple[dict[int, float], int]]:
    """The ratings of communities, 0 if the model does not rate one or its call fails, and the number of calls."""
    read = yield from reports.read(waiting)
    texts = [read[community].text for community in waiting]
    ratings: dict[int, float] = dict.fromkeys(waiting, 0.0)
    room = ask.room("rate", 64 + 24 * len(texts), question=fence([question], "question"))
    # A rating is for a whole report, so a report that is too long for the model is cut.
    sizes = [min(count_tokens(text) + TAG_TOKENS, room) for text in texts]
    groups = [
        [group[i] for i in part]
        for group in batches([count_tokens(text) for text in texts], _RATED_TOKENS)
        for part in batches([sizes[i] for i in group], room)
    ]
    for group in groups:
        try:
            reply: _Ratings = yield from ask.complete(
                "rate",
                partial(_read_ratings, count=len(group)),
                output_cls=_Ratings,
                reply_tokens=64 + 24 * len(group),
                reports=PromptTexts([texts[i] for i in group], "report", evenly=True),
                question=fence([question], "question"),
            )
        except ExtractionError as error:
            reports.reason = f"reports could not be rated: {error}"
            continue
        for rating in reply.ratings:
            value = read_score(rating.rating, _MOST_RATING)
            if 1 <= rating.number <= len(group) and value is not None:
                ratings[waiting[group[rating.number - 1]]] = value
    return ratings, len(groups)


def relevant_chunks(
    query: Query[GraphRAGState], options: SearchConfig, tests: int, ask: Ask, fetch: NodeFetch
) -> Steps[GraphRAGFound]:
    """Chunks that a model finds relevant, of at most `tests` that it is asked about; see :class:`RelevanceSearch`."""
    near = yield from similarities(query, options.lexical_weight)
    view = yield from offload(query.state.view, query.allowed)
    chunks = query.state.chunks
    ordered = query.state.ordered(near.ids)
    nearness = near.scores[chunks.rows_of(ordered)]
    search = RelevanceSearch(nearness, tests, options.published.feedback)
    reason = ""
    while (place := search.next()) is not None:
        node = yield from fetch(ordered[place])
        try:
            relevant = node is not None and (
                yield from ask.complete(
                    "relevance",
                    read_yes_no,
                    output_cls=YesNo,
                    reply_tokens=64,
                    passage=PromptTexts([plain_text(node)]),
                    question=fence([query.text], "question"),
                )
            )
        except ExtractionError as error:
            reason = f"tests of relevance ended after {search.tests} chunks: {error}"
            break
        if search.judged(place, relevant):
            vector = chunks.vectors_of([ordered[place]])[0]
            search.compare(standardised(cosines(chunks.vectors_of(ordered), vector)))
    values = result_scores(nearness[search.relevant], near.scores).tolist()
    found = [(ordered[place], value) for place, value in zip(search.relevant, values, strict=True)]
    if not found:
        reason = reason or f"none of the {search.tests} tested chunks is relevant; chunks are ranked by similarity"
    return GraphRAGFound(
        view=view,
        ranking=found or near.ranking(near.scores, query.wanted),
        fallback=reason,
        near=near,
        calls=search.tests,
        keep_all=bool(found),
    )


class RelevanceSearch:
    """Chunks tested so far under a budget of relevance tests, and the next one.

    The next chunk is the untested one with the largest

        nearness_c + f sim(c, b)

    where b is the nearest chunk found relevant, sim the cosine of both, standardised over its hundred best values, and
    f the feedback, at least 0; ties by place, in canonical order. Without a relevant chunk only nearness counts. The
    published search (microsoft/intelligence-toolkit) goes through communities in the order of their nearness and uses
    no feedback.
    """

    def __init__(self, nearness: Floats, budget: int, feedback: float) -> None:
        self._nearness = np.asarray(nearness, np.float64)
        self._budget = min(budget, len(self._nearness))
        self._feedback = feedback
        self._similarity = np.zeros_like(self._nearness)
        self._tested: dict[int, bool] = {}
        self._best = -1

    def next(self) -> int | None:
        """The chunk to test next; None if the budget is spent or nothing is left."""
        if len(self._tested) >= self._budget:
            return None
        scores = self._nearness + self._feedback * self._similarity
        scores[list(self._tested)] = -np.inf
        return int(np.argmax(scores))

    def judged(self, chunk: int, relevant: bool) -> bool:
        """Note a judgement, and return whether the chunk is now the nearest relevant one.

        If so, pass its similarities to :meth:`compare`.
        """
        self._tested[chunk] = relevant
        if relevant and (self._best < 0 or self._rank(chunk) < self._rank(self._best)):
            self._best = chunk
            return True
        return False

    def compare(self, similarity: Floats) -> None:
        """Take the similarity of every chunk to the nearest relevant one, shape (n,)."""
        self._similarity = np.asarray(similarity, np.float64)

    @property
    def relevant(self) -> list[int]:
        """The chunks found relevant, nearest first."""
        return sorted((chunk for chunk, relevant in self._tested.items() if relevant), key=self._rank)

    @property
    def tests(self) -> int:
        """The number of tested chunks."""
        return len(self._tested)

    def _rank(self, chunk: int) -> tuple[float, int]:
        return -float(self._nearness[chunk]), chunk
