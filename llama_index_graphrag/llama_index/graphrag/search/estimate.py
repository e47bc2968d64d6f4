"""What building and asking would cost, before anything is paid."""

from collections.abc import Sequence
from typing import NamedTuple

from llama_index.ragkit.text.pieces import batches

__all__ = ["QuestionCost", "global_cost"]


class QuestionCost(NamedTuple):
    """What a question about the whole costs.

    Attributes
    ----------
    calls : of a model: one for each batch, one for the answer
    tokens : read in the batches, for the answer, with points as long as the reports, and for reports that are missing
    report_calls : further calls, for reports that are not written yet
    corpus_tokens : what reading every chunk would take instead
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
    """What a question about the whole costs.

    Parameters
    ----------
    sizes : tokens of each passage that is read: of each finding of the reports of the cut
    batch_tokens, reduce_tokens : see :class:`~llama_index.graphrag.ReportMapReduce`
    corpus_tokens : of all chunks together
    unwritten : tokens of the prompt for each report that must be written first
    map_calls : batches, where they are more than `batch_tokens` gives because the window of the model has no room
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
