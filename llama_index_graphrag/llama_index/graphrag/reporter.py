"""Reports of communities by a language model: `ReportWriter` writes one, `ReportMaker` has all of them written."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from pydantic import Field

from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.prompts import REPORT_PROMPT
from llama_index.graphrag.replies import read_score
from llama_index.graphrag.reports.planning import ReportPlan, numbered_sources
from llama_index.graphrag.reports.report import CheckedFindings, Finding, Report, check_findings
from llama_index.graphrag.state import GraphRAGState, GraphView, WrittenReport
from llama_index.ragkit import Estimate, ExtractionContext, LLMSummarizer, Steps, offload
from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.extraction.failure_watch import FailureWatch
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.llm.context_window import PromptTexts, prompt_room, within
from llama_index.ragkit.llm.json.shapes import ITEMS, Reply, Sources, TextReply, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.text.held import TextWords, held_prose

__all__ = ["ReportMaker", "ReportWriter", "read_report"]

_MOST_RATING = 10.0
_ANY_WORD = 1e-9  # least share of the words of a title or finding in the statements: one word
_LINE_END = 1  # token after a statement
_LEAST_PART = 64  # least tokens of the reply about a part of the statements
_NUMBERED = re.compile(r"^\s*\[?(\d+)[\].)]")


class _Finding(TextReply):
    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "text": ("finding", "explanation", "summary", "description", "statement", "content"),
        "sources": ("source", "statements", "citations", "numbers", "references"),
    }

    text: str
    sources: Sources = Field(default_factory=list)


class _Reply(Reply):
    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "title": ("name", "reporttitle"),
        "summary": ("description", "abstract", "overview"),
        "rating": ("importance", "score", "impactseverityrating"),
        "findings": ("finding", "insights", "points", "keyfindings"),
    }

    title: str
    summary: str = ""
    rating: Any = None
    findings: Annotated[list[_Finding], ITEMS] = Field(min_length=1)


class ReportWriter(LLMSummarizer):
    """Writes the report of a community: a title, a summary, and findings that cite numbered statements.

    Parameters
    ----------
    llm : default the LLM of the index, else `Settings.llm`; resolved when first needed
    prompt : replaces `REPORT_PROMPT`; variables `statements`, `max_tokens`,
        `max_words`
    retry : how calls are retried; a reply without findings counts as a failure
    same_language : whether a report that is clearly in another language than the statements is refused [True]
    min_in_text : least share of a report's words, without those of the prompt, that occur in the statements, in [0, 1].
        A report with fewer is a failure. A summary with fewer, a title or finding with none, and sentences in which the
        model speaks of itself are left out. 0 or `same_language=False` for no check [0.2]
    """

    without_llm: ClassVar[str] = "summarizer=None, which takes reports from the statements themselves"

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"report": REPORT_PROMPT}

    def _of_parts(self, context: ExtractionContext, texts: Sequence[str], max_tokens: int, room: int) -> Steps[str]:
        """The report as JSON: of one call, or of one for each part of the statements, with the findings of all."""
        parts = yield from offload(within, texts, room, _LINE_END)
        replies = []
        for part in parts:
            each = max_tokens if len(parts) == 1 else max(_LEAST_PART, max_tokens // len(parts))
            replies.append((yield from self._report(context, [text for _, text in part], each)))
        findings = [finding for reply in replies for finding in reply.findings]
        return replies[0].model_copy(update={"findings": findings}).model_dump_json()

    def _report(self, context: ExtractionContext, texts: Sequence[str], max_tokens: int) -> Steps[_Reply]:
        numbers: dict[int, Sequence[str]] = {int(n): (n,) for text in texts for n in _NUMBERED.findall(text)}
        prompt = self.prompt("report")
        words, task = TextWords("\n".join(texts)), TextWords(prompt.get_template())
        held = partial(held_prose, words=words, task=task)
        return (
            yield from context.complete(
                prompt,
                parse=partial(_cited, numbers=numbers, held=held, least=self._min_in_text),
                output_cls=_Reply,
                reply_tokens=_reply_tokens(max_tokens),
                like="\n".join(texts),
                statements=PromptTexts(texts, shown=_statements),
                **self.lengths(max_tokens),
            )
        )

    def _room(self, llm: LLM | None, max_tokens: int) -> int:
        return prompt_room(llm, self.prompt("report"), _reply_tokens(max_tokens), **self.lengths(max_tokens))

    def estimate(self, tokens: float, texts: float, max_tokens: int, llm: LLM | None = None) -> Estimate:
        """As for every summarizer, with a call for each part that fits the model."""
        parts = max(1, math.ceil(tokens / self._room(self._llm or llm, max_tokens)))
        return Estimate(parts, round(tokens), max_tokens)


def _reply_tokens(max_tokens: int) -> int:
    return 256 + 2 * max_tokens


def _statements(lines: Sequence[str]) -> str:
    return fence(["\n".join(lines)], "statements")


def _cited(reply: str, numbers: Mapping[int, Sequence[str]], held: Callable[..., str], least: float) -> _Reply:
    """A report about the given statements; at least one finding must cite one of these."""
    read = read_reply(reply, _Reply)
    held("\n".join([read.title, read.summary, *(finding.text for finding in read.findings)]), least=least)

    def kept(text: str, least: float) -> str:
        try:
            return held(text, least=least)
        except ParseError:
            return ""

    any_word = min(least, _ANY_WORD)
    findings = [finding.model_copy(update={"text": kept(finding.text, any_word)}) for finding in read.findings]
    findings = [finding for finding in findings if finding.text]
    if not findings:
        raise ParseError(f"None of the {len(read.findings)} findings is about the statements.")
    if numbers and not check_findings([(finding.text, finding.sources) for finding in findings], numbers).findings:
        raise ParseError(f"None of the {len(read.findings)} findings cites a statement that it was given.")
    about = {"title": kept(read.title, any_word), "summary": kept(read.summary, least)}
    return read.model_copy(update={**about, "findings": findings})


def read_report(
    text: str, key: str, sources: Mapping[int, Sequence[str]], title: Callable[[], str], left_out: int
) -> tuple[Report, CheckedFindings]:
    """The report that a summarizer wrote, and its findings with the counts of dropped ones.

    A text without the JSON of :class:`ReportWriter`, as other summarizers write it, is one finding that rests on all
    sources. These are given as number of a statement -> ids of the nodes on which it rests.

    Raises
    ------
    ParseError
        If no finding rests on a source.
    """
    try:
        reply = read_reply(text, _Reply)
    except ParseError:
        nodes = tuple(dict.fromkeys(node for numbered in sources.values() for node in numbered))
        whole = CheckedFindings((Finding(text.strip(), nodes),), 0, 0)
        return Report(key, title(), "", whole.findings, "written", left_out=left_out), whole
    checked = check_findings([(finding.text, finding.sources) for finding in reply.findings], sources)
    if not checked.findings:
        raise ParseError(f"None of the {len(reply.findings)} findings cites a statement that it was given.")
    rating = read_score(reply.rating, _MOST_RATING)
    title_given = " ".join(reply.title.split()) or title()
    return Report(key, title_given, reply.summary, checked.findings, "written", rating, left_out), checked


class ReportMaker:
    """Writes reports with the summarizer of an index."""

    def __init__(self, storage: IndexStorage, resources: Resources, config: GraphRAGConfig) -> None:
        self._storage = storage
        self._resources = resources
        self._config = config

    @property
    def by_model(self) -> bool:
        """Whether a model writes reports; otherwise they are chosen statements, made when they are read."""
        return self._resources.summarizer is not None and self._resources.summarizer.needs_llm

    def make(
        self, state: GraphRAGState, view: GraphView, todo: Sequence[ReportPlan]
    ) -> Steps[tuple[dict[str, WrittenReport], dict[str, str]]]:
        """Write reports without storing them; returns them by key, and why the summarizer failed at others.

        With a fallback, these are made of statements and returned, too. Plans come children before the plans that read
        them; those of one level are written at once.
        """
        written: dict[str, WrittenReport] = {}
        failed: dict[str, str] = {}
        watch = FailureWatch("reports", "record")
        waiting = list(todo)
        while waiting:
            keys = {plan.key for plan in waiting}
            ready = [plan for plan in waiting if keys.isdisjoint(child.key for child in plan.children)]
            known = replace(state, reports={**state.reports, **written})
            jobs = {plan.key: partial(self._write, known, view, plan) for plan in ready}
            outcomes = yield from self._resources.run(jobs, watch, "Report {}", "Community reports")
            for plan in ready:
                outcome = outcomes[plan.key]
                if outcome.error is None:
                    written[plan.key] = outcome.unwrap()
                    continue
                failed[plan.key] = reason = self._resources.reason(outcome.error)
                if self._resources.falls_back:
                    report = yield from offload(view.planner.report, plan.community)
                    written[plan.key] = WrittenReport(report, plan.nodes, error=reason)
            done = {plan.key for plan in ready}
            waiting = [plan for plan in waiting if plan.key not in done]
        if failed and self._resources.falls_back:
            counts, first = (len(failed), len(todo)), next(iter(failed.values()))
            self._resources.note_fallback("extract", self._resources.summarizer, counts, "reports", first)
        return written, failed

    def _write(self, state: GraphRAGState, view: GraphView, plan: ReportPlan) -> Steps[WrittenReport]:
        children = {child.key: state.report(view, child.community) for child in plan.children}
        shown, sources = numbered_sources(plan, children)
        text, cache_keys = yield from self._resources.summarize(
            shown, self._config.report_tokens, self._storage.cache_user(plan.key)
        )
        report, checked = read_report(
            text, plan.key, sources, lambda: view.planner.title(plan.community), plan.left_out
        )
        dropped = (checked.dropped_citations, checked.dropped_findings)
        return WrittenReport(report, plan.nodes, tuple(cache_keys), dropped)

    def release(self, reports: Mapping[str, WrittenReport]) -> Steps[None]:
        """Release the cache entries that reports use."""
        uses = {self._storage.cache_user(key): list(written.cache_keys) for key, written in reports.items()}
        yield from self._resources.release({user: keys for user, keys in uses.items() if keys})
