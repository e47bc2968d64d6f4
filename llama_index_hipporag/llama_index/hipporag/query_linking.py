"""`Linker`: links a question to the phrases from which a walk starts, as steps."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.extraction.openie_extractor import Entities, read_entities
from llama_index.hipporag.graph.passage import Fact
from llama_index.hipporag.graph_view import AskedGraph
from llama_index.hipporag.search.query_seeds import (
    FactFilter,
    Link,
    QuerySeeds,
    linked_facts,
    nearest_phrases,
    seeds_of_facts,
    specificity,
)
from llama_index.hipporag.text.late_interaction import TokenEncoder, late_similarities
from llama_index.hipporag.text.noun_phrases import read_question
from llama_index.ragkit import Steps, offload
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, ParseError
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.json.shapes import read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.text.held import Held, TextWords
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["Linker"]

logger = logging.getLogger(__name__)

_COMPARED = 100  # phrases that are compared with an entity by their tokens, as published

Floats = NDArray[np.float32]


@immediate
def _no_llm(prompt: str, parse: Callable[[str], Any], **variables: Any) -> Any:
    raise ConfigurationError("This step has no llm.")


@dataclass(frozen=True)
class Linker:
    """Links questions to a graph; `ask` gives the parsed reply to a prompt, which only some configurations need."""

    config: SearchConfig
    normal: Callable[[str], str]
    embed: Callable[[list[str]], Steps[Floats]]
    ask: Callable[..., Steps[Any]] = _no_llm

    def link(self, graph: AskedGraph, question: str, vector: Floats | None = None) -> Steps[QuerySeeds]:
        """The seeds of the walk for a question; none, with the reason, if a language model fails.

        Only linking by facts needs the vector of the question.
        """
        try:
            return (yield from self._linked(graph, question, vector))
        except ExtractionError as error:
            logger.warning("No links were found for %r, so a dense search is used. %s", question, error)
            return QuerySeeds(reason=str(error))

    def _linked(self, graph: AskedGraph, question: str, vector: Floats | None) -> Steps[QuerySeeds]:
        if not graph.has_phrases:
            return QuerySeeds(reason="the graph has no phrases")
        if self.config.linking == "facts":
            return (yield from self._by_facts(graph, question, vector))
        if self.config.linking == "entities":
            return (yield from self._by_entities(graph, question))
        links = yield from graph.links(question, self.normal, self.config.published.node_specificity)
        return _seeds_of(links, "no phrase of the question is in the graph")

    def _by_entities(self, graph: AskedGraph, question: str) -> Steps[QuerySeeds]:
        entities = yield from self._entities(question)
        if not entities:
            return QuerySeeds(reason="the question names no entity")
        names = list(dict.fromkeys(filter(None, map(self.normal, entities))))
        config, published = self.config, self.config.published
        most = published.links_per_entity
        vectors, encoder = (yield from self.embed(names)), config.phrase_encoder
        wanted = most if encoder is None else max(most, _COMPARED)
        phrases, shown = yield from graph.phrases_near(vectors, wanted)
        least = config.link_threshold if encoder is None else -1.0
        near = yield from offload(nearest_phrases, phrases, shown, vectors, wanted, least)
        if encoder is not None:
            compare = partial(_compared, encoder, names, near, most, config.link_threshold)
            near = yield from offload(compare)
        places = yield from graph.places(list(dict.fromkeys(phrase for hits in near for phrase, _ in hits)))
        links = [
            Link(name, phrase, places[phrase][0], cosine, specificity(places[phrase][1], published.node_specificity))
            for name, hits in zip(names, near, strict=True)
            for phrase, cosine in hits
        ]
        return _seeds_of(links, "no phrase is near to an entity of the question")

    def _entities(self, question: str) -> Steps[Sequence[str]]:
        source = self.config.question_entities
        if isinstance(source, Mapping):
            return source.get(question, [])
        if callable(source):
            return (yield from offload(source, question))
        if source == "rules":
            return read_question(question)
        reply: Held[str] = yield from self.ask(
            "question",
            partial(read_entities, words=TextWords(question), least=self.config.published.min_in_text),
            output_cls=Entities,
            reply_tokens=128 + count_tokens(question),
            question=fence([question], "question"),
        )
        return reply.kept

    def _by_facts(self, graph: AskedGraph, question: str, vector: Any) -> Steps[QuerySeeds]:
        config = self.config
        near, shown = yield from graph.facts_near(vector, config.facts_top_k)
        facts = yield from offload(linked_facts, near, shown, vector, config.facts_top_k)
        if not facts:
            return QuerySeeds(reason="the graph has no facts")
        if config.filter_facts:
            facts = yield from self._helpful(question, facts, config.facts_top_k - 1 or 1)
            if not facts:
                return QuerySeeds(reason="none of the facts near to the question helps")
        places = yield from graph.places(list(dict.fromkeys(end for fact, _ in facts for end in (fact[0], fact[2]))))
        links = seeds_of_facts(facts, places, config.facts_top_k, config.published.node_specificity)
        return replace(_seeds_of(links, "the facts near to the question have no phrases"), facts=facts)

    def _helpful(
        self, question: str, facts: Sequence[tuple[Fact, float]], most: int
    ) -> Steps[list[tuple[Fact, float]]]:
        """The facts that a language model finds helpful (HippoRAG 2's recognition graph), in its order.

        Numbers that belong to no fact are ignored, so a fact can be dropped but not invented; a reply with only such
        numbers is a failure.
        """
        reply = yield from self.ask(
            "facts",
            partial(_read_facts, count=len(facts)),
            output_cls=FactFilter,
            reply_tokens=64 + 8 * len(facts),
            question=fence([question], "question"),
            facts=PromptTexts(["; ".join(fact) for fact, _ in facts], "fact"),
            max_facts=str(most),
        )
        numbers = dict.fromkeys(number for number in reply.facts if 1 <= number <= len(facts))
        return [facts[number - 1] for number in list(numbers)[:most]]


def _compared(
    encoder: TokenEncoder, names: Sequence[str], near: Sequence[list[tuple[str, float]]], most: int, threshold: float
) -> list[list[tuple[str, float]]]:
    """The `most` nearest by their tokens of the phrases near to each name, with these similarities."""
    found = []
    for name, hits in zip(names, near, strict=True):
        phrases = [phrase for phrase, _ in hits]
        scores = late_similarities(encoder, name, phrases)
        best = np.argsort(-scores, kind="stable")[:most]
        found.append([(phrases[row], float(scores[row])) for row in best if scores[row] >= threshold])
    return found


def _read_facts(reply: str, count: int) -> FactFilter:
    read = read_reply(reply, FactFilter)
    if read.facts and not any(1 <= number <= count for number in read.facts):
        raise ParseError(f"The numbers of the facts are 1 to {count}; the reply has {read.facts[:5]}.")
    return read


def _seeds_of(links: Sequence[Link], reason: str) -> QuerySeeds:
    """The seeds of these links; if a phrase has several, the last is used, as published."""
    weights = {link.row: link.weight for link in links}
    if not any(weights.values()):
        return QuerySeeds(reason=reason)
    return QuerySeeds(links, weights, weakest=min(link.cosine for link in links))
