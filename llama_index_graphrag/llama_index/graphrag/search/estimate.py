"""Estimates the cost of a question before it is asked."""

from collections.abc import Sequence
from typing import NamedTuple

from llama_index.ragkit.text.pieces import batches

__all__ = ["QuestionCost", "global_cost"]


class QuestionCost(NamedTuple):
    """The cost of a question about the whole.

    Attributes
    ----------
    calls : calls of a model: one for each batch, one for the answer
    tokens : tokens read in the batches, for the answer, with points as long as the reports, and for missing reports
    report_calls : additional calls for missing reports
    corpus_tokens : tokens of reading every chunk instead
    """

    calls: int
    tokens: int
    report_calls: int
    corpus_tokens: int

    @property
    def reading_all_is_cheaper(self) -> bool:
        """Whether the whole corpus has fewer tokens than the question would read."""
        return self.corpus_tokens < self.tokens


def global_cost(
    sizes: Sequence[int],
    batch_tokens: int,
    reduce_tokens: int,
    corpus_tokens: int,
    unwritten: Sequence[int] = (),
    *,
    map_calls: int | None = None,
    answer_room: int | None = None,
    tags: int = 0,
    instructions: int = 0,
) -> QuestionCost:
    """The cost of a question about the whole.

    Parameters
    ----------
    sizes : tokens of each passage that is read, that is, of each finding in the reports of the cut
    batch_tokens, reduce_tokens : see :class:`~llama_index.graphrag.ReportMapReduce`
    corpus_tokens : tokens of all chunks together
    unwritten : tokens of the prompt for each report that must be written first
    map_calls : number of batches, if the window of the model requires more than `batch_tokens` does
    answer_room : tokens that the window leaves for the points of the answer; None for no limit
    tags : tokens around each passage in a prompt
    instructions : tokens of a prompt without its passages
    """
    calls = len(batches(sizes, batch_tokens)) if map_calls is None else map_calls
    answer = min(reduce_tokens, sum(sizes), reduce_tokens if answer_room is None else answer_room)
    points = -(-len(sizes) * answer // max(1, sum(sizes)))
    prompts = calls + 1 if calls else 0
    read = sum(sizes) + answer + tags * (len(sizes) + points) + instructions * prompts
    return QuestionCost(prompts, read + sum(unwritten), len(unwritten), corpus_tokens)
