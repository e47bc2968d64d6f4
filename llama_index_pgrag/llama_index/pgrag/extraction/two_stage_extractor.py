"""`TwoStageMindMapExtractor` extracts statements first, then a mind map of the verified ones (section 2.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode
from pydantic import BaseModel

from llama_index.pgrag.extraction.mind_map_extractor import Attempt, MindMapExtractor
from llama_index.pgrag.extraction.mind_map_reply import MapReply, StatementsReply
from llama_index.pgrag.prompts import MAP_PROMPT, STATEMENTS_PROMPT
from llama_index.ragkit import Estimate, ExtractionContext, Steps
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["TwoStageMindMapExtractor"]


class TwoStageMindMapExtractor(MindMapExtractor):
    """As :class:`~llama_index.pgrag.MindMapExtractor`, in two calls for each document or part of one, as in the paper.

    The first call gives topic and statements. They are verified, and requested again if they fail. The second call
    makes a mind map of the verified statements and does not see the text (section 2.3: M = LLM(d_fci, x_t)). The
    published code asks for the topic in a third call.

    Parameters
    ----------
    kwargs : see :class:`~llama_index.pgrag.MindMapExtractor`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {
        "statements": STATEMENTS_PROMPT,
        "mind_map": MAP_PROMPT,
    }
    first_call: ClassVar[tuple[str, type[BaseModel]]] = "statements", StatementsReply

    def _read_part(self, part: str, topic: str, context: ExtractionContext) -> Steps[Attempt]:
        first = yield from super()._read_part(part, topic, context)
        statements = "\n".join(first.map.statements)
        found = yield from context.complete(
            self.prompt("mind_map"),
            parse=self._parser(part, first.map.topic),
            output_cls=MapReply,
            like=statements,
            reply_tokens=self.reply_tokens("mind_map", count_tokens(statements)),
            statements=PromptTexts([statements], "statements"),
            topic=first.map.topic,
        )
        return replace(first, map=replace(found, statements=first.map.statements))

    def estimate_document(
        self, nodes: Sequence[BaseNode], count: Callable[[str], int], llm: LLM | None = None
    ) -> Estimate:
        """Two calls for each part, each with a reply of about the length of its text; the first may be regenerated."""
        one = super().estimate_document(nodes, count, llm)
        return one + Estimate(one.calls, one.prompt_tokens, one.completion_tokens)
