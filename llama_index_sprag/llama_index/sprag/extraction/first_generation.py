"""`FirstGenerationContext`: a sentence about each document, with the name of its file, as in the first spRAG."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode

from llama_index.ragkit import Estimate, ExtractionContext, NodeExtractor, Steps
from llama_index.ragkit.llm.announcements import plain_answer
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.held import TextWords, held_prose
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import Count, choice
from llama_index.sprag.config import Sections
from llama_index.sprag.context.titles import file_name_of
from llama_index.sprag.extraction.auto_context import AutoContext
from llama_index.sprag.extraction.context_extractor import Description, DocumentChunks
from llama_index.sprag.prompts import CONTEXT_PROMPT

__all__ = ["FirstGenerationContext"]

_REPLY_TOKENS = 200
_NAME, _IS_CUT = "name", "is_cut"  # metadata keys of the nodes that stand for documents


class FirstGenerationContext(AutoContext):
    """Describes documents as the first spRAG did: the name of the file, and a sentence or two by a language model.

    There is one call per document. The model reads its name and its first tokens, and is told if the rest is missing.
    There are no sections. If the metadata name no file, the title, or else the id, takes the place of the file name.

    Parameters
    ----------
    document_tokens : tokens of the document that the model reads, at least 1 [6000, as published]
    guidance : additional instructions for the model, such as what matters in these documents [""]
    min_in_text, prompts, kwargs : see :class:`~llama_index.sprag.AutoContext`; the prompt "context" has the variables
        `file`, `guidance`, `cut` and `text`
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"context": CONTEXT_PROMPT}

    document_tokens: Count = 6000
    sections: Annotated[Sections, choice(("none",))] = "none"
    guidance: str = ""

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """A sentence or two about a document."""
        text, name = plain_text(node), str(node.metadata.get(_NAME, ""))
        cut = f"Only its first {self.document_tokens} tokens are given; do not mention that."
        prompt = self.prompt("context")
        task = TextWords(prompt.get_template())
        summary = yield from context.complete(
            prompt,
            parse=partial(_held_answer, words=TextWords(f"{name}\n{text}"), task=task, least=self.min_in_text),
            like=text,
            reply_tokens=_REPLY_TOKENS,
            file=fence([name], "file"),
            guidance=self.guidance,
            cut=cut if node.metadata.get(_IS_CUT) else "",
            text=fence([text], "document"),
        )
        return {"title": "", "summary": summary}

    def estimate_node(self, node: BaseNode, count: Callable[[str], int]) -> Estimate:
        """One call."""
        tokens = min(count(plain_text(node)), self.document_tokens)
        return Estimate(1, count(self.prompt("context").get_template()) + tokens, self.completion_tokens)

    estimate_document = NodeExtractor.estimate_document  # `AutoContext` may read sections too

    def _to_read(self, document: DocumentChunks) -> BaseNode:
        node = super()._to_read(document)
        is_cut = sum(count_tokens(plain_text(chunk)) for chunk in document.nodes) > self.document_tokens
        node.metadata = {_NAME: _name(document), _IS_CUT: is_cut}
        return node

    def _description(
        self, document: DocumentChunks, source: str, old: Description | None, record: Record | None
    ) -> Description:
        return replace(super()._description(document, source, old, record), title=_name(document))


def _name(document: DocumentChunks) -> str:
    first = document.nodes[0]
    return file_name_of(first.metadata) or first.ref_doc_id or document.key


def _held_answer(reply: str, words: TextWords, task: TextWords, least: float) -> str:
    """The answer on one line, if the document holds its words."""
    return held_prose(" ".join(plain_answer(reply).split()), words, task, least)
