"""The extractors of the questions that a node answers, by a language model or by key phrases."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode
from pydantic import Field, field_validator

from llama_index.gemrag.extraction.keyphrases import key_questions
from llama_index.gemrag.prompts import QUESTION_PROMPT
from llama_index.ragkit import Estimate, Extraction, ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.json.shapes import Reply, TextList, read_reply
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.held import Held, TextWords, held
from llama_index.ragkit.text.prose import prose
from llama_index.ragkit.validation import Share, count

__all__ = ["KeyphraseQuestionExtractor", "UtilityQuestionExtractor"]

_TOKENS_PER_QUESTION = 25

Count = Annotated[int, count(0)]


class _Questions(Reply):
    """What the model's reply must hold."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "questions": ("question", "queries", "utilityquestions", "items", "list")
    }
    items: ClassVar[str] = "questions"

    questions: TextList = Field(min_length=1, description="Questions that the text answers.")

    @field_validator("questions")
    @classmethod
    def _distinct(cls, values: list[str]) -> list[str]:
        distinct = list({value.casefold(): value for value in reversed(values)}.values())[::-1]
        with_words = [question for question in distinct if any(c.isalnum() for c in question)]
        if not with_words:
            raise ValueError("none of the questions has a word")
        return with_words


class UtilityQuestionExtractor(NodeExtractor):
    """Generates the questions that a node answers with a language model, in one call per node.

    The record is `{"questions": [...]}`, distinct and not empty, at most `num_questions`; a reply with fewer is
    accepted, one without any is requested again. Questions that share too few words with the text are dropped, and
    counted in the record under `dropped`; if all are dropped, the reply is requested again.

    Parameters
    ----------
    num_questions : questions per node, m in the paper [5]; 0 generates none and needs no LLM
    min_in_text : least share of the words of a question that the text must have, in [0, 1]; 0 for no check, for example
        if the questions are in another language [0.1]
    prompts : {"questions": ...} to replace the default prompt; its variables are `text` and `num_questions`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    method: ClassVar[str] = "gemrag"
    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"questions": QUESTION_PROMPT}

    without_llm: ClassVar[str] = "extractor=KeyphraseQuestionExtractor()"

    num_questions: Count = 5
    min_in_text: Share = 0.1

    def check_llm(self, llm: LLM | None) -> None:
        """As for every extractor; see :meth:`NodeExtractor.check_llm`."""
        if self.num_questions:
            super().check_llm(llm)

    def extract(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Steps[list[Extraction]]:
        """As for every extractor; see :meth:`NodeExtractor.extract`."""
        if not self.num_questions:
            return [Extraction(node.node_id, {"questions": []}) for node in nodes]
        return (yield from super().extract(nodes, **kwargs))

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Read one node with one call."""
        text = plain_text(node)
        reply = yield from context.complete(
            self.prompt("questions"),
            parse=partial(_read, words=TextWords(text), least=self.min_in_text),
            output_cls=_Questions,
            like=text,
            reply_tokens=self.reply_tokens("questions", 0),
            text=PromptTexts([text], "text"),
            num_questions=self.num_questions,
        )
        dropped = {"dropped": {"questions": reply.dropped}} if reply.dropped else {}
        return {"questions": reply.kept[: self.num_questions], **dropped}

    def reply_tokens(self, prompt: str, tokens: int) -> int:
        """Twice the expected length of the questions."""
        return 64 + 2 * _TOKENS_PER_QUESTION * self.num_questions

    def estimate_node(self, node: BaseNode, count: Callable[[str], int]) -> Estimate:
        """One call."""
        if not self.num_questions:
            return Estimate()
        work = super().estimate_node(node, count)
        return Estimate(work.calls, work.prompt_tokens, _TOKENS_PER_QUESTION * self.num_questions)


def _read(reply: str, words: TextWords, least: float) -> Held[str]:
    return held(read_reply(reply, _Questions).questions, words.share, least, "questions")


class KeyphraseQuestionExtractor(NodeExtractor):
    """Builds questions from the key phrases of a node's most informative sentences; needs no language model.

    Each sentence gives one question: its phrases, without the words between them ("Ada Byron, Charles Babbage,
    London?"). See :mod:`llama_index.gemrag.extraction.keyphrases`. Code, addresses and numbers in tables or alone on a
    line are left out. Lines that repeat in chunks of one document that are written together (headers, footers, legal
    lines) are ignored.

    These questions repeat the words of their chunk, which is already found by its words and its vector. So they are
    shown but not embedded, unless the index has `paper=True`.

    Parameters
    ----------
    num_questions : largest number of questions per node [5]
    embed_questions : whether questions are embedded too, so that a prompt is compared with the vector of each; costs
        five more embedded texts a chunk [False]
    language : ISO 639-1 code of the texts, for sentences and stop words; None to choose them by the script and words
        of each text

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    method: ClassVar[str] = "gemrag"
    needs_llm: ClassVar[bool] = False

    num_questions: Count = 5
    language: str | None = None
    embed_questions: bool = False

    @property
    def fingerprint(self) -> dict[str, str]:
        """As for every extractor; without `embed_questions` as in earlier versions, whose indexes a write converts."""
        found = super().fingerprint
        return found if self.embed_questions else {name: found[name] for name in found if name != "embed_questions"}

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Read one node without a call."""
        passage = yield from context.passage(node, None)
        text = prose(passage.body) or passage.body  # a text that is only a table or code is taken as it is
        questions = yield from offload(key_questions, text, self.num_questions, self.language)
        return {"questions": questions}
