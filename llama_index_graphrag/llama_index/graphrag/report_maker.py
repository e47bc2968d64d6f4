"""`ReportMaker`: has the reports of communities written, without storing them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.reporter import read_report
from llama_index.graphrag.reports.planning import ReportPlan, numbered_sources
from llama_index.graphrag.state import GraphRAGState, GraphView, WrittenReport
from llama_index.ragkit import Steps, offload
from llama_index.ragkit.extraction.failure_watch import FailureWatch
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.storage.index_storage import IndexStorage

__all__ = ["ReportMaker"]


class ReportMaker:
    """Writes reports with the summarizer of an index.

    Parameters
    ----------
    storage, resources, config : those of the index
    """

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

        With a fallback, these are made of statements and returned, too.

        Parameters
        ----------
        todo : plans, children before the plans that read them; plans of one level are written at once
        """
        written: dict[str, WrittenReport] = {}
        failed: dict[str, str] = {}
        watch = FailureWatch("reports", "record")
        waiting = list(todo)
        while waiting:
            keys = {plan.key for plan in waiting}
            ready = [plan for plan in waiting if keys.isdisjoint(child.key for child in plan.children)]
            known = replace(state, reports={**state.reports, **written})
            jobs = [partial(watch.run, partial(self._write, known, view, plan)) for plan in ready]
            outcomes = yield from self._resources.gather(jobs, "Community reports")
            watch.check({f"Report {plan.key}": outcome for plan, outcome in zip(ready, outcomes, strict=True)})
            for plan, outcome in zip(ready, outcomes, strict=True):
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
