"""The DRIFT search: an answer from the nearest reports leads to follow-up questions, each a local search."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from pydantic import Field

from llama_index.graphrag.config import SearchConfig
from llama_index.graphrag.found import GraphRAGFound, similarities
from llama_index.graphrag.global_search import EMPTY, Ask, Reports, WriteReports, nearest_communities
from llama_index.graphrag.graph_parts import GraphParts
from llama_index.graphrag.local_search import linked_chunks
from llama_index.graphrag.replies import read_score
from llama_index.graphrag.reports.report import Report, check_findings
from llama_index.graphrag.search.drift import Drift, DriftAnswer
from llama_index.graphrag.state import GraphRAGState
from llama_index.ragkit import Query, Steps, offload
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.llm.announcements import plain_answer
from llama_index.ragkit.llm.context_window import PromptTexts, within
from llama_index.ragkit.llm.json.shapes import Reply, Sources, TextList, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.steps import Outcome, gather
from llama_index.ragkit.storage.derived_nodes import NodeFetch
from llama_index.ragkit.storage.nodes import plain_text

__all__ = ["drift_chunks"]

_REPLY_TOKENS = 1_024
_CHUNKS = 5  # from which a follow-up question is answered

Passage = tuple[str, tuple[str, ...]]  # a text, and the ids of the nodes that it rests on


class _Answer(Reply):
    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "answer": ("response", "text", "intermediateanswer"),
        "sources": ("source", "passages", "citations", "numbers"),
        "score": ("rating", "confidence"),
        "follow_ups": ("followups", "followupquestions", "followupqueries", "questions"),
    }

    answer: str
    sources: Sources = Field(default_factory=list)
    score: Any = 0
    follow_ups: TextList = Field(default_factory=list)


def drift_chunks(
    query: Query[GraphRAGState],
    parts: GraphParts,
    options: SearchConfig,
    ask: Ask,
    write: WriteReports | None,
    fetch: NodeFetch,
) -> Steps[GraphRAGFound]:
    """The chunks on which the answers to a question and to its follow-up questions rest.

    1. A model writes a hypothetical answer in the form of the report nearest to the question.
    2. The reports nearest to that answer give the first answer, or several answers, each from a part of the reports.
    3. Each round asks follow-up questions; see :mod:`llama_index.graphrag.search.drift`.

    If the model fails, the chunks are those of the local search, and the result gives the reason.
    """
    vector = yield from query.vector()
    found = yield from linked_chunks(query, parts, query.text, vector, options)
    view = yield from parts.communities(query.state, query.allowed)
    if not (yield from offload(lambda: len(view.hierarchy))):
        return GraphRAGFound(found.view, found.ranking, EMPTY, near=found.near)
    reports = Reports(query.state, view, write if view.whole else None, options.max_reports)
    drift = Drift(options)
    reason, calls = "", 0
    try:
        near = yield from similarities(query, options.lexical_weight)
        nearness = yield from offload(nearest_communities, view, near)
        form = yield from reports.read([int(nearness.argmax())])
        calls += 1
        hypothesis = yield from ask.complete(
            "hypothesis",
            plain_answer,
            like=query.text,
            reply_tokens=_REPLY_TOKENS,
            report=PromptTexts([report.text for report in form.values()], "report"),
            question=fence([query.text], "question"),
        )
        vector = yield from query.resources.embed_query(hypothesis, query.state.chunks.dim)
        near = yield from similarities((yield from parts.near_to(query, vector)), 0.0, vector)
        nearness = yield from offload(nearest_communities, view, near)
        nearest = sorted(range(len(nearness)), key=lambda community: (-nearness[community], community))
        read = yield from reports.read(nearest[: options.published.primer_reports])
        drift = Drift(options, calls=calls)
        batches = drift.primer_batches(list(read.values()))
        # If the batches need more calls, follow-up questions keep half of the remaining calls.
        most = max(len(batches), (options.max_calls - 1 - calls) // 2)
        primers = yield from offload(_primers, ask, query.text, batches, most)
        jobs = [partial(_primed, ask, query.text, findings) for findings in primers]
        outcomes = yield from gather(jobs, options.num_workers)
        calls += len(jobs)
        answers, reason = _answers(outcomes, "first answers")
        if not answers:
            raise ExtractionError(reason)
        drift = drift.answered(answers, len(jobs))
        while questions := drift.next_questions():
            jobs = [partial(_followed, query, parts, options, ask, fetch, question) for question in questions]
            outcomes = yield from gather(jobs, options.num_workers)
            calls += len(jobs)
            answers, failed = _answers(outcomes, "follow-up questions")
            reason = failed or reason
            drift = drift.answered(answers, len(jobs))
    except ExtractionError as error:
        reason = f"the search with follow-up questions ended early: {error}"
    scores = {node: max(a.score / 100 for a in drift.answers if node in a.nodes) for node in drift.nodes}
    ranking = [(node, scores[node]) for node in drift.nodes if view.has(node)]
    return replace(
        found,
        ranking=sorted(ranking, key=lambda pair: -pair[1]) or found.ranking,
        fallback=reason or reports.reason,
        trust=None,
        added=None,
        answers=drift.answers,
        calls=calls + reports.calls,
    )


def _answers(outcomes: Sequence[Outcome[DriftAnswer]], what: str) -> tuple[list[DriftAnswer], str]:
    """The answers of simultaneous calls, and what failed; empty if nothing did."""
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    reason = f"{len(failed)} of {len(outcomes)} {what} failed: {failed[0]}" if failed else ""
    return [outcome.unwrap() for outcome in outcomes if outcome.error is None], reason


def _primers(ask: Ask, question: str, batches: Sequence[Sequence[Report]], most: int) -> list[list[Passage]]:
    """The findings for each of at most `most` first answers, nearest reports first, in parts that fit the model."""
    room = ask.room("primer", _REPLY_TOKENS, question=fence([question], "question"))
    given = [[finding for report in batch for finding in report.findings] for batch in batches]
    parts = [(findings, part) for findings in given for part in within([text for text, _ in findings], room)]
    return [[(piece, findings[i].nodes) for i, piece in part] for findings, part in parts[:most]]


def _primed(ask: Ask, question: str, findings: Sequence[Passage]) -> Steps[DriftAnswer]:
    """An answer to the question from the findings of some reports."""
    return (yield from _asked(ask, "primer", question, findings, question=fence([question], "question")))


def _followed(
    query: Query[GraphRAGState], parts: GraphParts, options: SearchConfig, ask: Ask, fetch: NodeFetch, follow_up: str
) -> Steps[DriftAnswer]:
    """The answer to a follow-up question, from the chunks of a local search."""
    vector = yield from query.resources.embed_query(follow_up, query.state.chunks.dim)
    found = yield from linked_chunks(query, parts, follow_up, vector, options)
    passages = []
    for node_id, _ in islice(iter(found.ranking), _CHUNKS):
        node = yield from fetch(node_id)
        if node is not None:
            passages.append((plain_text(node), (node_id,)))
    given = {"follow_up": fence([follow_up], "question"), "question": fence([query.text], "main-question")}
    return (yield from _asked(ask, "follow_up", follow_up, passages, **given))


def _asked(ask: Ask, prompt: str, asked: str, passages: Sequence[Passage], **variables: str) -> Steps[DriftAnswer]:
    """An answer from numbered passages, with the nodes that it cites; without a citation there are none."""
    sources: Mapping[int, tuple[str, ...]] = {i: nodes for i, (_, nodes) in enumerate(passages, start=1)}
    reply: _Answer = yield from ask.complete(
        prompt,
        partial(read_reply, model=_Answer),
        output_cls=_Answer,
        reply_tokens=_REPLY_TOKENS,
        like=asked,
        passages=PromptTexts([text for text, _ in passages]),
        **variables,
    )
    cited = check_findings([(reply.answer, reply.sources)], sources).findings
    nodes = cited[0].nodes if cited else ()
    follow_ups = tuple(" ".join(text.split()) for text in reply.follow_ups if text.strip())
    return DriftAnswer(asked, reply.answer, read_score(reply.score) or 0.0, follow_ups, nodes)
