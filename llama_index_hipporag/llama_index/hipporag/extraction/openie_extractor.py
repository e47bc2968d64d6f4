"""`OpenIEExtractor`: entities, then triples about them, by a language model (paper, section 2.3 and appendix I)."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode
from pydantic import Field

from llama_index.hipporag.prompts import ENTITIES_PROMPT, PUBLISHED_PROMPTS, TRIPLES_PROMPT
from llama_index.hipporag.text.noun_phrases import subject_names
from llama_index.ragkit import Estimate, ExtractionContext, NodeExtractor, Steps
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.json.shapes import Reply, TextList, TripleList, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.storage.nodes import plain_text, title_of
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.text.held import Held, TextWords, held, is_name
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import Share

__all__ = ["Entities", "OpenIEExtractor", "Triples", "read_entities"]


_MOST_OBJECT_WORDS = 20


class Entities(Reply):
    """Reply to the first prompt, and to the prompt for the entities of a question."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "named_entities": ("namedentity", "entities", "entity", "names", "ner")
    }
    by_type: ClassVar[bool] = True
    items: ClassVar[str] = "named_entities"

    bounds: ClassVar[Mapping[str, Any]] = {"named_entities": {"items": {"maxLength": 200}}}

    named_entities: TextList = Field(description="names, as they stand in the text")


class Triples(Reply):
    """Reply to the second prompt."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "triples": ("triple", "triplets", "facts", "relations", "relationships", "statements")
    }
    items: ClassVar[str] = "triples"

    bounds: ClassVar[Mapping[str, Any]] = {
        "triples": {"items": {"minItems": 3, "maxItems": 3, "items": {"maxLength": 300}}}
    }

    triples: TripleList = Field(description="lists [subject, relation, object]")


class OpenIEExtractor(NodeExtractor):
    """Extracts the named entities of a passage by a language model, then triples that contain them.

    There are two calls per passage; the prompt of the second contains the entities of the first. The record is
    `{"entities": [...], "triples": [[head, relation, tail], ...], "subject": [title]}`. Each reply is checked against
    the passage: entities, subjects and objects need enough of their words in it, otherwise the entity or triple is
    dropped and counted in the record under `dropped`. Clauses in place of names, and triples about one thing, are
    dropped too. A reply that cannot be read, or of which nothing is in the passage, is requested again, and then the
    node fails. An empty result is stored only if the model says that there is nothing. If only the triples fail, the
    entities are kept.

    Parameters
    ----------
    title_key : the metadata key of a title, which is put before the text; for a node without one, a heading at the
        beginning of its text is the title (:mod:`llama_index.ragkit.text.headings`). None for no titles at all
    min_in_text : least share of the words of a name that the passage must have, in [0, 1]; 0 for no check, for example
        if entities are translated [0.5]
    kwargs : see :class:`~llama_index.ragkit.NodeExtractor`
    """

    method: ClassVar[str] = "hipporag"
    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {
        "entities": ENTITIES_PROMPT,
        "triples": TRIPLES_PROMPT,
    }

    without_llm: ClassVar[str] = "extractor=NounPhraseExtractor()"

    title_key: str | None = "title"
    min_in_text: Share = 0.5

    @classmethod
    def paper(cls, **kwargs: Any) -> "OpenIEExtractor":
        """An extractor with prompts of the paper's form: the task as system message, and a worked example paragraph.

        Replies are not held against the passage.

        Parameters
        ----------
        kwargs : further parameters
        """
        prompts = {name: PUBLISHED_PROMPTS[name] for name in cls.default_prompts}
        return cls(**{"prompts": prompts, "min_in_text": 0, **kwargs})

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node with two consecutive calls; other passages are processed in between."""
        title, text = title_of(node, self.title_key), plain_text(node)
        whole = f"{title}\n{text}" if title else text
        passage = PromptTexts([whole], "text")
        words, length = TextWords(whole), count_tokens(whole)
        first = yield from context.complete(
            self.prompt("entities"),
            parse=partial(read_entities, words=words, least=self.min_in_text),
            output_cls=Entities,
            reply_tokens=self.reply_tokens("entities", length),
            text=passage,
        )
        names = json.dumps({"named_entities": first.kept}, ensure_ascii=False)
        triples = context.complete(
            self.prompt("triples"),
            parse=partial(_read_triples, words=words, least=self.min_in_text),
            output_cls=Triples,
            reply_tokens=self.reply_tokens("triples", length),
            text=passage,
            entities=fence([names], "entities"),
        )
        second = yield from context.keep(triples, Held([], 0))
        subject = subject_names((yield from context.passage(node, self.title_key)).title)
        dropped = {"entities": first.dropped, "triples": second.dropped}
        return {
            "entities": first.kept,
            "triples": second.kept,
            "subject": subject,
            **({"dropped": dropped} if any(dropped.values()) else {}),
        }

    def reply_tokens(self, prompt: str, tokens: int) -> int:
        """Entities are at most as long as the text, triples twice as long."""
        return 128 + tokens if prompt == "entities" else 256 + 2 * tokens

    def tokens_beside(self, prompt: str, tokens: int) -> int:
        """The entities, in the second prompt."""
        return _entity_tokens(tokens) if prompt == "triples" else 0

    def estimate_node(self, node: BaseNode, count: Callable[[str], int]) -> Estimate:
        """Two calls; the entities go into the second prompt, and triples are about twice as long as entities."""
        text = count(plain_text(node))
        entities = _entity_tokens(text)
        prompts = {name: count(prompt.get_template()) for name, prompt in self._get_prompts().items()}
        return Estimate(1, prompts["entities"] + text, entities) + Estimate(
            1, prompts["triples"] + text + entities, max(16, text)
        )


def _entity_tokens(tokens: int) -> int:
    return max(8, tokens // 4)


def read_entities(reply: str, words: TextWords, least: float) -> Held[str]:
    """The entities of a reply that are in a text; a `ParseError` if it cannot be read, or no entity is in the text."""
    named = read_reply(reply, Entities).named_entities
    return held(named, words.share, least, "entities", is_name)


def _read_triples(reply: str, words: TextWords, least: float) -> Held[list[str]]:
    def share(triple: list[str]) -> float:
        return min(words.share(triple[0]), words.share(triple[2]))

    return held(read_reply(reply, Triples).triples, share, least, "triples", _relates)


def _relates(triple: list[str]) -> bool:
    """Whether a triple relates two things; an object may be longer than a name."""
    head, _, tail = triple
    return is_name(head) and len(tail.split()) <= _MOST_OBJECT_WORDS and normalise(head) != normalise(tail)
