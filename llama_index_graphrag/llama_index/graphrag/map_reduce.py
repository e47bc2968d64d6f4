"""An answer from many reports, by points of batches (arXiv 2404.16130, section 3.1.6).

`ReportMapReduce` makes it; `GraphRAGQueryEngine` retrieves the reports.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryType
from pydantic import Field
from typing_extensions import Self, Unpack

from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.found import FINDINGS_KEY
from llama_index.graphrag.keywords import GraphRAGRetrieverKeywords
from llama_index.graphrag.prompts import ANSWER_PROMPT, MAP_PROMPT
from llama_index.graphrag.replies import read_score
from llama_index.graphrag.reports.report import check_findings
from llama_index.graphrag.retriever import GraphRAGRetriever
from llama_index.graphrag.state import GraphRAGState
from llama_index.ragkit import DerivedIndex, RetryPolicy, Steps, offload
from llama_index.ragkit.errors import ExtractionError, ParseError
from llama_index.ragkit.index.query import report_fallback
from llama_index.ragkit.llm.announcements import plain_answer, whole_sentences
from llama_index.ragkit.llm.completion import complete
from llama_index.ragkit.llm.context_window import PromptTexts, prompt_room, within
from llama_index.ragkit.llm.json.shapes import ITEMS, Reply, Sources, TextReply, read_reply
from llama_index.ragkit.llm.prompts import PromptHolder, fence
from llama_index.ragkit.short_repr import ShortRepr
from llama_index.ragkit.steps import arun_steps, gather, run_steps
from llama_index.ragkit.text.tokens import batches, count_tokens
from llama_index.ragkit.validation import check_count

__all__ = [
    "BATCH_TOKENS",
    "REDUCE_TOKENS",
    "GraphRAGQueryEngine",
    "ReportAnswer",
    "ReportMapReduce",
    "map_batches",
    "room_of",
]

BATCH_TOKENS = 12_000
REDUCE_TOKENS = 12_000
_REPLY_TOKENS = 1_024
NO_MAP = "No language model is set, so no map step ran. What the reports say:"
NO_POINTS = "The map step failed, so this answer comes from the reports themselves."
NO_ANSWER = "There is no answer:"

Passage = tuple[str, tuple[str, ...]]  # a text, and the ids of the nodes that it rests on


class _Point(TextReply):
    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": ("point", "description", "answer", "statement", "content"),
        "score": ("rating", "importance", "relevance", "weight"),
        "sources": ("source", "passages", "passage", "citations", "numbers", "references"),
    }

    text: str
    score: Any = None
    sources: Sources = Field(default_factory=list)


class _Points(Reply):
    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"points": ("point", "keypoints", "answers", "findings")}

    points: Annotated[list[_Point], ITEMS]


class Point(NamedTuple):
    """A point about a question, its importance, 0 to 100, and the ids of the nodes on which it rests."""

    text: str
    score: float
    nodes: tuple[str, ...]


class BatchResult(NamedTuple):
    """The points of a batch, why it has none, and the numbers of dropped citations and points."""

    points: tuple[Point, ...] = ()
    error: str = ""
    dropped_citations: int = 0
    dropped_points: int = 0


@dataclass(frozen=True)
class ReportAnswer:
    """An answer, and the points from which it was made.

    Attributes
    ----------
    text : the answer
    points : the points of the answer, most important first, each with the ids of the nodes on which it rests
    failed : number of a batch -> why it gave no points
    unwritten : why the model wrote no answer, so that `text` lists its material instead; "" if it did
    calls : calls of the model
    dropped_citations, dropped_points : numbers of citations of unknown passages, and of points without source or score
    without_score, left_out : numbers of points with a score of zero, and of points that did not fit
    """

    text: str
    points: Sequence[Point] = ()
    failed: Mapping[int, str] | None = None
    unwritten: str = ""
    calls: int = 0
    dropped_citations: int = 0
    dropped_points: int = 0
    without_score: int = 0
    left_out: int = 0


class ReportMapReduce(PromptHolder, BaseSynthesizer):
    """Answers from reports, or any nodes: each batch of nodes gives points with scores; the best give the answer.

    A failed batch does not affect the others; if no other batch gives a point, the answer is made from the reports of
    the failed ones. If the answer cannot be written, its points are listed instead. The answer says so in both cases.
    Points that cite none of their passages are dropped and counted. The response's metadata has a
    :class:`ReportAnswer` under "graphrag". Without a language model, or with a `MockLLM`, the answer lists what the
    reports say and states that no map step ran.

    Parameters
    ----------
    llm : default `Settings.llm`
    batch_tokens : tokens of the reports in one call, at least 1; fewer if the window of the model has no room for them
        [12,000, as published]
    reduce_tokens : tokens of the points that give the answer, at least 1; fewer if the window has no room for them
        [12,000, as published]
    num_workers : batches that are read at once, at least 1 [4]
    prompts : {"map": ..., "answer": ...} replace the default prompts
    retry : how calls are retried
    same_language : whether points that are clearly not in the language of the reports, and an answer that is clearly
        not in that of the question, are refused [True]
    callback_manager : as for every synthesizer
    """

    default_prompts = {"map": MAP_PROMPT, "answer": ANSWER_PROMPT}  # noqa: RUF012 - read only

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        batch_tokens: int = BATCH_TOKENS,
        reduce_tokens: int = REDUCE_TOKENS,
        num_workers: int = 4,
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        retry: RetryPolicy | None = None,
        same_language: bool = True,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(llm=llm, callback_manager=callback_manager)
        self.batch_tokens = check_count("batch_tokens", batch_tokens, 1)
        self.reduce_tokens = check_count("reduce_tokens", reduce_tokens, 1)
        self.num_workers = check_count("num_workers", num_workers, 1)
        self.prompts = dict(prompts or {})
        self.check_prompts(self.prompts)
        self._retry = retry or RetryPolicy()
        self._same_language = same_language

    def _get_prompts(self) -> PromptDictType:
        return PromptHolder._get_prompts(self)

    def _update_prompts(self, prompts: PromptDictType) -> None:
        PromptHolder._update_prompts(self, prompts)

    # -- the synthesizer's interface ----------------------------------------------------------------

    def get_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> str:
        """The answer from some texts."""
        return run_steps(self._response(query_str, text_chunks, response_kwargs))

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> str:
        """Like :meth:`get_response`."""
        return await arun_steps(self._response(query_str, text_chunks, response_kwargs))

    def synthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """The answer from nodes; each finding of a report is a passage with its own sources."""
        answers: list[ReportAnswer] = []
        given = {**response_kwargs, "nodes_read": nodes, "answers": answers}
        return _with_answer(super().synthesize(query, nodes, additional_source_nodes, **given), answers)

    async def asynthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """Like :meth:`synthesize`."""
        answers: list[ReportAnswer] = []
        given = {**response_kwargs, "nodes_read": nodes, "answers": answers}
        return _with_answer(await super().asynthesize(query, nodes, additional_source_nodes, **given), answers)

    def _response(self, question: str, texts: Sequence[str], given: Mapping[str, Any]) -> Steps[str]:
        nodes: Sequence[NodeWithScore] | None = given.get("nodes_read")
        passages = [(text, (str(i),)) for i, text in enumerate(texts)] if nodes is None else _passages(nodes)
        answer = yield from self.answer(question, passages)
        given.get("answers", []).append(answer)
        return answer.text

    # -- map and reduce -----------------------------------------------------------------------------

    def answer(self, question: str, passages: Sequence[Passage]) -> Steps[ReportAnswer]:
        """Answer a question from passages: texts, each with the ids of the nodes on which it rests."""
        if self._llm is None or isinstance(self._llm, MockLLM):
            lines = [f"- {text}" for text, _ in passages]
            return ReportAnswer("\n".join([NO_MAP, *lines]))
        groups = yield from offload(self._batches, question, passages)
        jobs = [partial(self._points, question, group) for group in groups]
        outcomes = yield from gather(jobs, self.num_workers)
        read = yield from offload(self._collected, question, [outcome.unwrap() for outcome in outcomes])
        texts = [_scored(point) for point in read.points]
        if not texts:
            failed = read.failed or {}
            unread = [text for number, group in enumerate(groups) if number in failed for text, _ in group]
            if not unread:
                return replace(read, text="The reports say nothing that answers the question.")
            first = batches([count_tokens(text) for text in unread], self.reduce_tokens)[0]
            texts = [unread[i] for i in first]
        text, reason = yield from self._written_or_listed(question, texts)
        written = text if read.points else f"{NO_POINTS} {text}"
        reasons = [*dict.fromkeys((read.failed or {}).values()), *([reason] if reason else [])]
        report_fallback("graphrag", question, "; ".join(reasons))
        return replace(read, text=written, unwritten=reason, calls=len(jobs) + 1)

    def _batches(self, question: str, passages: Sequence[Passage]) -> list[list[Passage]]:
        """The passages of each call, in order; a passage that is too long for the model is split over several."""
        room = room_of(self._llm, self.prompt("map"), question)
        groups = map_batches([text for text, _ in passages], self.batch_tokens, room)
        return [[(piece, passages[i][1]) for i, piece in group] for group in groups]

    def _collected(self, question: str, results: Sequence[BatchResult]) -> ReportAnswer:
        """An answer without text, with as many points as fit the model."""
        found = collected(results, self.reduce_tokens, count_tokens)
        room = room_of(self._llm, self.prompt("answer"), question)
        first = within([_scored(point) for point in found.points], room)[0]
        points = tuple(found.points[i] for i in dict.fromkeys(i for i, _ in first))
        return replace(found, points=points, left_out=found.left_out + len(found.points) - len(points))

    def _written_or_listed(self, question: str, texts: Sequence[str]) -> Steps[tuple[str, str]]:
        """The answer from texts, or a list of these, and why there is no answer."""
        try:
            return (yield from self._written(question, texts)), ""
        except ExtractionError as error:
            lines = [f"- {text}" for text in texts]
            return "\n".join([f"{NO_ANSWER} {error} What the reports say:", *lines]), str(error)

    def _written(self, question: str, texts: Sequence[str]) -> Steps[str]:
        return (
            yield from complete(
                self._llm,
                self.prompt("answer"),
                parse=_read_answer,
                retry=self._retry,
                name="answer",
                reply_tokens=_REPLY_TOKENS,
                like=question if self._same_language else "",
                points=PromptTexts(texts, "point"),
                question=fence([question], "question"),
            )
        )

    def _points(self, question: str, passages: Sequence[Passage]) -> Steps[BatchResult]:
        sources = {i: nodes for i, (_, nodes) in enumerate(passages, start=1)}
        try:
            return (
                yield from complete(
                    self._llm,
                    self.prompt("map"),
                    parse=partial(_read_points, sources=sources),
                    output_cls=_Points,
                    reply_tokens=_REPLY_TOKENS,
                    retry=self._retry,
                    name="map",
                    like="\n".join(text for text, _ in passages) if self._same_language else "",
                    passages=PromptTexts([text for text, _ in passages]),
                    question=fence([question], "question"),
                )
            )
        except ExtractionError as error:
            return BatchResult(error=str(error))


def map_batches(texts: Sequence[str], batch_tokens: int, room: int) -> list[list[tuple[int, str]]]:
    """The texts, or pieces of texts that are too long, that each call of the map step reads, with their positions."""
    groups = batches([count_tokens(text) for text in texts], batch_tokens)
    return [
        [(group[i], piece) for i, piece in part] for group in groups for part in within([texts[i] for i in group], room)
    ]


def room_of(llm: LLM | None, prompt: BasePromptTemplate, question: str) -> int:
    """Tokens of passages or points, with their tags, for which a model has room beside a prompt and a question."""
    return prompt_room(llm, prompt, _REPLY_TOKENS, question=fence([question], "question"))


def _scored(point: Point) -> str:
    return f"({point.score:.0f}) {point.text}"


def _passages(nodes: Sequence[NodeWithScore]) -> list[Passage]:
    """The findings of report nodes, and the texts of others."""
    passages: list[Passage] = []
    for result in nodes:
        findings = result.node.metadata.get(FINDINGS_KEY)
        if findings:
            passages += [(text, tuple(sources)) for text, sources in findings]
        else:
            passages.append((result.node.get_content(metadata_mode=MetadataMode.LLM), (result.node.node_id,)))
    return passages


def _with_answer(response: RESPONSE_TYPE, answers: Sequence[ReportAnswer]) -> RESPONSE_TYPE:
    for answer in answers:
        response.metadata = {**(response.metadata or {}), "graphrag": answer}
    return response


def _read_answer(reply: str) -> str:
    return whole_sentences(plain_answer(reply))


def _read_points(reply: str, sources: Mapping[int, Sequence[str]]) -> BatchResult:
    """The points of a reply that have sources and a score; there must be one, unless the reply has no points."""
    given = read_reply(reply, _Points).points
    found = checked_points(((point.text, point.score, point.sources) for point in given), sources)
    if given and not found.points:
        raise ParseError(f"None of the {len(given)} points has a score and cites a passage by its number.")
    return found


def checked_points(
    given: Iterable[tuple[str, Any, Iterable[Any]]], sources: Mapping[int, Sequence[str]]
) -> BatchResult:
    """The points of a model, each with score and citations, that rest on numbered sources and have a score."""
    points = []
    citations = dropped = 0
    for text, value, cited in given:
        score, found = read_score(value), check_findings([(text, cited)], sources)
        citations += found.dropped_citations
        if score is None or not found.findings:
            dropped += 1
        else:
            points.append(Point(found.findings[0].text, score, found.findings[0].nodes))
    return BatchResult(tuple(points), "", citations, dropped)


def collected(results: Sequence[BatchResult], budget: int, count: Callable[[str], int]) -> ReportAnswer:
    """An answer without text, with the points of batches by score, then by text, while they fit a budget of tokens.

    Points with the same text become one, with the highest score and all nodes. A point that does not fit is skipped.
    """
    merged: dict[str, Point] = {}
    for point in sorted((point for result in results for point in result.points), key=lambda p: (-p.score, p)):
        first = merged.setdefault(point.text, point)
        merged[point.text] = first._replace(nodes=tuple(dict.fromkeys((*first.nodes, *point.nodes))))
    scored = [point for point in merged.values() if point.score > 0]
    kept: list[Point] = []
    for point in sorted(scored, key=lambda point: (-point.score, point.text)):
        cost = count(point.text) + 1
        if cost <= budget:
            kept.append(point)
            budget -= cost
    return ReportAnswer(
        text="",
        points=tuple(kept),
        failed={number: result.error for number, result in enumerate(results) if result.error},
        calls=len(results),
        dropped_citations=sum(result.dropped_citations for result in results),
        dropped_points=sum(result.dropped_points for result in results),
        without_score=len(merged) - len(scored),
        left_out=len(scored) - len(kept),
    )


class GraphRAGQueryEngine(ShortRepr, RetrieverQueryEngine):
    """A :class:`GraphRAGRetriever` with :class:`ReportMapReduce`.

    It is a `RetrieverQueryEngine`; :meth:`over` makes one for an index.
    """

    @classmethod
    def over(
        cls,
        index: DerivedIndex[GraphRAGConfig, GraphRAGState],
        *,
        answer_llm: LLM | None = None,
        batch_tokens: int = BATCH_TOKENS,
        reduce_tokens: int = REDUCE_TOKENS,
        **kwargs: Unpack[GraphRAGRetrieverKeywords],
    ) -> Self:
        """An engine over an index.

        Parameters
        ----------
        answer_llm : reads the batches and answers; default the LLM of the index
        batch_tokens, reduce_tokens : see :class:`ReportMapReduce`
        kwargs : keywords of the retriever; the default of `mode` is "global"

        Raises
        ------
        ConfigurationError
            If a parameter is invalid.
        """
        keywords: GraphRAGRetrieverKeywords = {"mode": "global", **kwargs}
        synthesizer = ReportMapReduce(
            answer_llm or index.llm,
            batch_tokens=batch_tokens,
            reduce_tokens=reduce_tokens,
            num_workers=keywords.get("num_workers", 4),
        )
        return cls(GraphRAGRetriever(index, **keywords), synthesizer)
