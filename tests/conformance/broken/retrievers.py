"""Indexes whose retrievers find what they should not, or do not find what they should."""

import asyncio
import threading
import time
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from tests.conformance.broken.constructors import Constructed
from tests.conformance.broken.index_harness import caught_by
from tests.toy import ToyIndex


class Spoiled(BaseRetriever):
    """The toy's retriever, whose results go through the index's `spoil`."""

    def __init__(self, index: Any, options: dict[str, Any]) -> None:
        self.inner = ToyIndex.as_retriever(index, **options)
        self.spoil = index.spoil
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.spoil(self.inner.retrieve(query_bundle), query_bundle)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.spoil(await self.inner.aretrieve(query_bundle), query_bundle)


class Spoils(Constructed):
    def as_retriever(self, **options: Any) -> Any:
        return Spoiled(self, options)

    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        return results


@caught_by(
    "test_the_order_of_the_nodes_changes_no_answer",
    "test_growth_in_another_order_equals_one_build",
)
class ScoresByPosition(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        order = list(self.docstore.docs)
        for result in results:
            result.score = result.get_score() + order.index(result.node.node_id) / 100
        return results


@caught_by(
    "test_two_builds_of_the_same_nodes_answer_alike",
    "test_the_same_question_has_the_same_answer",
    "test_a_query_engine_answers_from_what_was_retrieved",
    "test_questions_at_once_have_the_answers_of_questions_in_turn",
)
class ScoresByTheClock(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        for result in results:
            result.score = float(time.perf_counter())
        return results


@caught_by(
    "test_every_node_is_found",
    "test_documents_become_nodes_that_are_found",
    "test_odd_texts_are_found",
    "test_a_text_is_found_by_itself",
)
class MissesTheBest(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        return results[1:]


@caught_by(
    "test_an_answer_is_streamed",
    "test_a_chat_engine_talks",
    "test_routers_reach_the_index",
    "test_rerankers_of_core_take_the_results",
    "test_an_agent_uses_the_engine_as_a_tool",
    "test_results_are_fused",
    "test_an_operator_lets_through_what_it_says",
)
class FindsNothing(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        return []


@caught_by(
    "test_odd_texts_come_back_from_storage",
    "test_a_loaded_index_gives_the_same_answers",
    "test_a_loaded_index_goes_on_like_the_original",
    "test_loading_changes_nothing_that_is_stored",
    "test_core_indexes_beside_it_are_undisturbed",
)
class LosesAScoreInStorage(Spoils):
    _loaded = False

    def before(self, nodes: Any, kwargs: dict[str, Any]) -> Any:
        self._loaded = kwargs.get("index_struct") is not None
        return nodes

    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        for result in results[:1] if self._loaded else ():
            result.score = 100.0
        return results


@caught_by("test_two_of_a_kind_stay_apart")
class ReadsTheWholeDocstore(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        found = {result.node.node_id for result in results}
        return results + [
            NodeWithScore(node=node, score=0.0) for i, node in self.docstore.docs.items() if i not in found
        ]


@caught_by("test_at_most_top_k_results_come_back")
class IgnoresTopK(ToyIndex):
    def as_retriever(self, **options: Any) -> Any:
        return super().as_retriever(**{**options, "similarity_top_k": 50})


@caught_by("test_scores_are_finite_floats_best_first", "test_results_can_be_written_as_json")
class ScoresInNumpy(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        for result in results:
            result.score = np.float32(result.get_score())  # type: ignore[assignment]
        return results


@caught_by("test_scores_are_finite_floats_best_first")
class WorstFirst(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        return results[::-1]


@caught_by("test_no_node_comes_back_twice")
class FindsTwice(ToyIndex):
    def as_retriever(self, **options: Any) -> Any:
        retriever = super().as_retriever(**options)
        retrieve = type(retriever).retrieve
        twice = type("Twice", (type(retriever),), {"retrieve": lambda self, query: retrieve(self, query) * 2})
        return twice(self, **options)


@caught_by("test_nodes_come_back_as_they_were_given", "test_large_and_nested_metadata_are_carried_unchanged")
class ExplainsInMetadata(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        for result in results:
            result.node.metadata["why"] = "near"
        return results


@caught_by("test_results_are_fresh_objects", "test_results_are_fused")
class GivesAwayItsOwn(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        kept = self.__dict__.setdefault("kept", {})
        return kept.setdefault(query.query_str, results)


@caught_by("test_the_query_bundle_is_neither_trusted_nor_changed")
class WritesIntoTheQuery(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        query.embedding = [1.0]
        return results


@caught_by("test_a_retriever_sees_what_was_written_after_it_was_made", "test_a_filter_holds_for_what_comes_later")
class RetrievesFromASnapshot(ToyIndex):
    def as_retriever(self, **options: Any) -> Any:
        return super().as_retriever(**{"node_ids": list(self.docstore.docs), **options})


@caught_by("test_any_question_is_answered")
class WantsWords(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        assert query.query_str.split()
        return results


@caught_by("test_a_misspelt_option_of_a_retriever_is_refused")
class SwallowsRetrieverOptions(ToyIndex):
    def as_retriever(self, **options: Any) -> Any:
        options.pop("misspelt_option", None)
        return super().as_retriever(**options)


@caught_by(
    "test_an_operator_lets_through_what_it_says",
    "test_filters_are_combined",
    "test_a_filter_that_nothing_passes_finds_nothing",
    "test_the_index_makes_a_query_engine",
    "test_a_filter_holds_for_what_comes_later",
)
class IgnoresFilters(ToyIndex):
    def as_retriever(self, **options: Any) -> Any:
        options.pop("filters", None)
        return super().as_retriever(**options)


@caught_by("test_the_best_are_taken_from_what_passes")
class FiltersTheBest(Spoils):
    def as_retriever(self, **options: Any) -> Any:
        filters = options.pop("filters", None)
        retriever = super().as_retriever(**options)
        passing = ToyIndex.as_retriever(self, similarity_top_k=50, filters=filters)

        def spoil(results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
            allowed = {result.node.node_id for result in passing.retrieve(query)}
            return [result for result in results if result.node.node_id in allowed]

        retriever.spoil = spoil
        return retriever


@caught_by("test_a_workflow_awaits_the_retriever", "test_asynchronous_writes_and_reads_equal_synchronous_ones")
class FindsNothingAsynchronously(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return results
        return []


@caught_by("test_a_long_question_takes_no_longer_on_the_event_loop")
class ReadsQuestionsOnTheLoop(Spoils):
    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        assert sum(1 for _ in query.query_str)
        return results


@caught_by("test_questions_at_once_have_the_answers_of_questions_in_turn")
class HasOneQuestionAtATime(ToyIndex):
    def as_retriever(self, **options: Any) -> Any:
        class Shared(type(super().as_retriever())):  # type: ignore[misc]
            async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                self.question = query_bundle
                await asyncio.sleep(0.001)
                return await super()._aretrieve(self.question)

        return Shared(self, **options)


@caught_by("test_readers_see_the_index_before_or_after_a_write")
class ShowsHalfAWrite(Spoils):
    _half = threading.Event()

    def insert(self, *args: Any, **kwargs: Any) -> None:
        self._half.set()
        time.sleep(0.05)
        super().insert(*args, **kwargs)
        self._half.clear()

    def spoil(self, results: list[NodeWithScore], query: QueryBundle) -> list[NodeWithScore]:
        return results[:2] if self._half.is_set() else results
