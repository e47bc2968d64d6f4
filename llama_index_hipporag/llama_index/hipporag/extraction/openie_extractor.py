"""`OpenIEExtractor`: entities, then triples about them, by a language model (paper, section 2.3 and appendix I)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode
from pydantic import BaseModel, Field, field_validator

from llama_index.hipporag.prompts import ENTITIES_PROMPT, TRIPLES_PROMPT
from llama_index.hipporag.text.noun_phrases import subject_names
from llama_index.ragkit import (
    Estimate,
    ExtractionContext,
    NodeExtractor,
    Record,
    Steps,
    fence,
    parse_model,
    plain_text,
    title_of,
)

__all__ = ["Entities", "OpenIEExtractor", "Triples"]


class Entities(BaseModel):
    """Reply to the first prompt."""

    named_entities: list[Any] = Field(description="names, as they stand in the text")

    @field_validator("named_entities")
    @classmethod
    def _texts(cls, values: list[Any]) -> list[str]:
        """Texts and numbers, each once; other values, such as objects, are dropped."""
        return list(
            dict.fromkeys(str(v).strip() for v in values if isinstance(v, (str, int, float)) and str(v).strip())
        )


class Triples(BaseModel):
    """Reply to the second prompt."""

    triples: list[Any] = Field(description="lists [subject, relation, object]")

    @field_validator("triples")
    @classmethod
    def _three(cls, values: list[Any]) -> list[list[str]]:
        """Triples of three texts or numbers; others are dropped."""
        return [
            [str(part).strip() for part in triple]
            for triple in values
            if isinstance(triple, list) and len(triple) == 3 and all(isinstance(p, (str, int, float)) for p in triple)
        ]


class OpenIEExtractor(NodeExtractor):
    """Extracts the named entities of a passage by a language model, then triples that contain them.

    Two calls per passage; the prompt of the second contains the entities of the first. The record is
    `{"entities": [...], "triples": [[head, relation, tail], ...], "subject": [title]}`. A reply without the requested
    key is retried, and then the node fails: an empty result is never stored for it.

    Parameters
    ----------
    title_key : the metadata key of a title, which is put before the text; for a node without one, a heading at the
        beginning of its text is the title (:mod:`llama_index.ragkit.text.headings`). None for no titles at all
    kwargs : see :class:`~llama_index.ragkit.NodeExtractor`
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {
        "entities": ENTITIES_PROMPT,
        "triples": TRIPLES_PROMPT,
    }

    title_key: str | None = "title"

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node with two consecutive calls; other passages are processed in between."""
        title, text = title_of(node, self.title_key), plain_text(node)
        passage = fence([f"{title}\n{text}" if title else text], "text")
        first = yield from context.complete(
            self.prompt("entities"), parse=partial(parse_model, model=Entities), output_cls=Entities, text=passage
        )
        names = first.model_dump_json()
        second = yield from context.complete(
            self.prompt("triples"),
            parse=partial(parse_model, model=Triples),
            output_cls=Triples,
            text=passage,
            entities=fence([names], "entities"),
        )
        subject = subject_names((yield from context.passage(node, self.title_key)).title)
        return {"entities": first.named_entities, "triples": second.triples, "subject": subject}

    def estimate_node(self, node: BaseNode, count: Callable[[str], int]) -> Estimate:
        """Two calls; the entities go into the second prompt, and triples are about twice as long as entities."""
        text = count(plain_text(node))
        entities = max(8, text // 4)
        prompts = {name: count(prompt.get_template()) for name, prompt in self._get_prompts().items()}
        return Estimate(1, prompts["entities"] + text, entities) + Estimate(
            1, prompts["triples"] + text + entities, max(16, text)
        )
