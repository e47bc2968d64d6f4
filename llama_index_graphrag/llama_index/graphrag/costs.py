"""What reports and questions about the whole cost, before anything is asked of a model."""

from collections.abc import Sequence
from typing import NamedTuple

from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode

from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.map_reduce import BATCH_TOKENS, REDUCE_TOKENS, map_batches, room_of
from llama_index.graphrag.prompts import ANSWER_PROMPT, MAP_PROMPT
from llama_index.ragkit import Estimate, Summarizer
from llama_index.ragkit.llm.completion import known_llm
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["QuestionCost", "question_cost", "work_of_reports"]

_TOKENS_PER_COMMUNITY = 400  # of text; the recorded published run has 122 communities for 50,288 tokens


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


def question_cost(
    question: str, texts: Sequence[str], corpus_tokens: int, unwritten: Sequence[int], llm: LLM | None
) -> QuestionCost:
    """The cost of a question about the whole to :class:`~llama_index.graphrag.ReportMapReduce`.

    Parameters
    ----------
    texts : the passages that are read, that is, the findings in the reports of the cut
    unwritten : tokens of the prompt for each report that must be written first
    """
    sizes = [count_tokens(text) for text in texts]
    calls = len(map_batches(texts, BATCH_TOKENS, room_of(llm, MAP_PROMPT, question)))
    answer = min(REDUCE_TOKENS, sum(sizes), room_of(llm, ANSWER_PROMPT, question))
    points = -(-len(sizes) * answer // max(1, sum(sizes)))
    prompts = calls + 1 if calls else 0
    tags, instructions = count_tokens(fence([""])), count_tokens(MAP_PROMPT.get_template()) + count_tokens(question)
    read = sum(sizes) + answer + tags * (len(sizes) + points) + instructions * prompts
    return QuestionCost(prompts, read + sum(unwritten), len(unwritten), corpus_tokens)


def work_of_reports(
    nodes: Sequence[BaseNode], summarizer: Summarizer, llm: LLM | None, config: GraphRAGConfig
) -> Estimate:
    """The largest number of calls for reports."""
    tokens = sum(count_tokens(plain_text(node)) for node in nodes)
    # As many communities as on the recorded run, or one for each chunk if there are few. If short ones are verbatim:
    # leaves of more than `report_tokens`, and a hierarchy above them that halves at each level.
    reports = max(len(nodes), tokens // _TOKENS_PER_COMMUNITY)
    if config.verbatim:
        reports = min(reports, 2 * (tokens // config.report_tokens))
    if not reports:
        return Estimate()
    read = min(reports * config.context_tokens, 4 * tokens)
    # Of all reports together; each report ends a part.
    parts = summarizer.estimate(read, 0, config.report_tokens, known_llm(llm)).calls
    return Estimate(reports + parts - 1, read, reports * config.report_tokens)
