"""Extractors of topic, verified statements and mind map with a language model, in one call or two (section 2.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, TextNode
from pydantic import BaseModel, Field

from llama_index.pgrag.extraction.mind_map_reply import (
    MapReply,
    MindMapReply,
    ReadMindMap,
    StatementsReply,
    read_mind_map_reply,
)
from llama_index.pgrag.maps.node_maps import node_maps
from llama_index.pgrag.maps.verification import Check, Scorer, bert_scores, rouge_l
from llama_index.pgrag.prompts import MAP_PROMPT, MIND_MAP_PROMPT, STATEMENTS_PROMPT
from llama_index.pgrag.records import read_together, to_record
from llama_index.ragkit import Estimate, ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.errors import ExtractionError, LanguageModelError
from llama_index.ragkit.llm.completion import Rejected
from llama_index.ragkit.llm.context_window import PromptTexts, prompt_room
from llama_index.ragkit.llm.embeddings import embed_texts
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.tokens import count_tokens, pieces_of
from llama_index.ragkit.validation import Share, count, number

__all__ = ["Attempt", "DocumentPart", "MindMapExtractor", "TwoStageMindMapExtractor", "parts_of"]


class MindMapExtractor(NodeExtractor):
    """Uses a language model to rewrite each document as a mind map of facts.

    1. One call for the nodes of a document, or for each part of a longer one, gives the topic, statements (the paper's
       fact-checking items) and a mind map of them, as JSON, parsed tolerantly. The published code makes one call for
       each of the three.
    2. Facts are dropped if the text has too few of their words, and counted in the record under `dropped`. Each other
       fact belongs to the node whose text holds most of its words, or to several nodes at a tie
       (:mod:`~llama_index.pgrag.maps.node_maps`).
    3. The statements are verified against the text (:mod:`~llama_index.pgrag.maps.verification`). If they fail, the
       model is told why and asked again, up to `max_regenerations` times. If no attempt passes, the best is kept and
       the record has `"verified": False`. In the published code such documents were processed manually.

    :class:`~llama_index.pgrag.TwoStageMindMapExtractor` makes the map in a separate call, from verified statements.

    Nodes of a document that are written together are read together: 1,000 chunks of 300 documents cost 300 calls. If a
    call fails, the nodes of its part fail. Their document is tried again as a whole, but cached replies are not paid
    for twice.

    An update with a changed chunk reads the other chunks of its document again, in the same call, so that the index
    equals one built from the new document. Chunks that are inserted without their document are read separately. A
    delete makes no LLM call: the facts of other chunks stay, without words that only the deleted chunk had.

    Parameters
    ----------
    verify : whether statements are verified
    min_rouge_l : least ROUGE-L, in [0, 1] [0.15, the published code's; paper: 0.75]
    min_semantic : least semantic score of the statements, in [-1, 1]; suitable values depend on the model that computes
        it [0.85]
    scorer : computes the semantic score as F1 of BERTScore, as in the paper, for example a `bert_score.BERTScorer`;
        None for the cosine of the embeddings of text and statements, as in the published code [None]
    max_regenerations : further attempts at the statements of a part, at least 0 [2; paper: unlimited]
    part_tokens : tokens of text for one call, at least 50; fewer if they and the reply do not fit into the window of
        the model. Longer documents are read in parts of whole nodes, longer nodes in parts of whole sentences, each
        with its own statements and map under one topic. A reply is up to twice as long as its text [1500]
    join_lists : whether a list of texts is one fact, as published [False: each item is a fact]
    min_in_text : least share of the words of a fact that the text must have, in [0, 1]; 0 for no check, for example if
        mind maps are in another language; each node is then read separately, since nothing tells which node a fact is
        from [0.3]
    embed_model : for the cosine; defaults to the index's, else to `Settings.embed_model`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    method: ClassVar[str] = "pgrag"
    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"mind_map": MIND_MAP_PROMPT}
    without_llm: ClassVar[str] = "extractor=OutlineExtractor()"
    first_call: ClassVar[tuple[str, type[BaseModel]]] = "mind_map", MindMapReply  # which gives the statements

    verify: bool = True
    min_rouge_l: Share = 0.15
    min_semantic: Annotated[float, number(-1, 1)] = 0.85
    max_regenerations: Annotated[int, count(0)] = 2
    part_tokens: Annotated[int, count(50)] = 1500
    join_lists: bool = False
    min_in_text: Share = 0.3
    embed_model: BaseEmbedding | None = Field(default=None, exclude=True)
    scorer: Scorer | None = Field(default=None, exclude=True)

    @property
    def fingerprint(self) -> dict[str, str]:
        """As for every extractor, but without the models that only verification uses."""
        return {name: value for name, value in super().fingerprint.items() if name not in ("embed_model", "scorer")}

    @property
    def reads_documents(self) -> bool:
        """Whether the nodes of a document are read together; needs the words of facts to tell their nodes."""
        return self.min_in_text > 0

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Read one node as a document."""
        return (yield from self.extract_document([node], context))[0]

    def extract_document(self, nodes: Sequence[BaseNode], context: ExtractionContext) -> Steps[list[Record]]:
        """Read the nodes of a document, with one call for each part and one for each regeneration."""
        while True:
            budget = self._part_budget(context.llm)
            parts = yield from offload(parts_of, nodes, budget)
            topic = ""
            found: list[tuple[DocumentPart, Attempt]] = []
            for part in parts:
                attempt = yield from context.keep(self._read_part(part.text, topic, context), None, part.places)
                if attempt is not None:
                    topic = attempt.map.topic
                    found.append((part, attempt))
            # If the server takes less than the model declares, it may have been sent less than a whole part.
            if self._part_budget(context.llm) >= budget:
                break
            context.lost.clear()
        if not found:
            raise next(iter(context.lost.values()))
        return (yield from offload(_records, [plain_text(node).strip() for node in nodes], topic, found))

    def _read_part(self, part: str, topic: str, context: ExtractionContext) -> Steps["Attempt"]:
        """The first mind map of a part whose statements pass verification, or the best if all fail."""
        prompt, output_cls = self.first_call
        best: Attempt | None = None
        rejected: Rejected | None = None
        attempt = 0
        while True:
            attempt += 1
            try:
                found = yield from context.complete(
                    self.prompt(prompt),
                    parse=self._parser(part, topic),
                    output_cls=output_cls,
                    reply_tokens=self.reply_tokens(prompt, count_tokens(part)),
                    rejected=rejected,
                    like=part,
                    text=PromptTexts([part], "text"),
                    topic=topic or "(none)",
                )
            except ExtractionError as error:
                if best is None or isinstance(error, LanguageModelError):
                    raise
                return replace(best, attempts=attempt)
            if not self.verify:
                return Attempt(found, None, 1)
            check = yield from self._check(part, found.statements, context)
            if best is None or best.check is None or check.rank > best.check.rank:
                best = Attempt(found, check, attempt)
            if check.passed or attempt > self.max_regenerations:
                return replace(best, attempts=attempt)
            rejected = Rejected(found.reply, self._reason(check))

    def _part_budget(self, llm: LLM | None) -> int:
        """The tokens of text for one call."""
        prompt, _ = self.first_call
        return min(self.part_tokens, prompt_room(llm, self.prompt(prompt), self.reply_tokens(prompt, self.part_tokens)))

    def reply_tokens(self, prompt: str, tokens: int) -> int:
        """Statements and map repeat the text twice, as JSON."""
        return 256 + 3 * tokens

    def _parser(self, part: str, topic: str) -> Callable[[str], ReadMindMap]:
        """A function that reads a reply about a part."""
        return partial(
            read_mind_map_reply, text=part, topic=topic, join_lists=self.join_lists, min_in_text=self.min_in_text
        )

    def _reason(self, check: Check) -> str:
        """The text that tells the model why statements failed."""
        reasons = []
        if check.rouge_l < self.min_rouge_l:
            reasons.append(
                f"The statements do not keep to the wording of the text: ROUGE-L is {check.rouge_l:.2f}, and at least "
                f"{self.min_rouge_l:.2f} is needed. Leave out no particular, and use the words of the text."
            )
        if check.semantic is not None and check.semantic < self.min_semantic:
            reasons.append(
                f"The statements together do not say what the text says: their similarity is {check.semantic:.2f}, and "
                f"at least {self.min_semantic:.2f} is needed. Cover the whole text, and add nothing."
            )
        return " ".join(reasons)

    def _check(self, part: str, items: list[str], context: ExtractionContext) -> Steps[Check]:
        text = "\n".join(items)
        lexical = yield from offload(rouge_l, part, text)
        if self.scorer is not None:
            (semantic,) = yield from offload(bert_scores, [part], [text], self.scorer)
        else:
            model = self.embed_model or context.embed_model
            one, other = (yield from embed_texts(model, [part, text])).astype(np.float64)
            norms = float(np.sqrt((one @ one) * (other @ other)))
            semantic = float(one @ other) / norms if norms > 0 else 0.0
        return Check(lexical, semantic, lexical >= self.min_rouge_l and semantic >= self.min_semantic)

    def estimate_document(
        self, nodes: Sequence[BaseNode], count: Callable[[str], int], llm: LLM | None = None
    ) -> Estimate:
        """One call for each part, with a reply of about the length of its text; `more_calls` has the regenerations.

        Verification embeds each part and its statements, unless a scorer compares them.
        """
        parts = parts_of(nodes, self._part_budget(llm))
        text = sum(count(part.text) for part in parts)
        prompt = count(self.prompt("mind_map").get_template())
        asked = Estimate(len(parts), len(parts) * prompt + text, text)
        if not self.verify:
            return asked
        more = Estimate(more_calls=len(parts) * self.max_regenerations)
        if self.scorer is None:
            more += Estimate(embedded_texts=2 * len(parts), embedded_tokens=2 * text, embedding_is_exact=False)
        return asked + more


class DocumentPart(NamedTuple):
    """A part of a document, and the places of its nodes."""

    text: str
    places: tuple[int, ...]


def parts_of(nodes: Sequence[BaseNode], most: int) -> list[DocumentPart]:
    """The nodes of a document in as few parts of whole nodes as possible; a longer node is split into its own parts.

    Text that a node shares with the node before it, as overlapping chunks do, is read once. A part has at most `most`
    tokens.
    """
    parts: list[DocumentPart] = []
    open_: list[tuple[str, int]] = []
    left = most
    for place, node in enumerate(nodes):
        text = plain_text(node).strip()
        new = text if not open_ else _without_overlap(nodes[place - 1], node)
        cost = count_tokens(new) + 1
        if open_ and cost > left:
            parts.append(_joined(open_))
            open_, left, new = [], most, text
            cost = count_tokens(new) + 1
        if count_tokens(text) > most:
            parts += [DocumentPart(piece, (place,)) for piece in pieces_of(text, most, count_tokens)]
        else:
            open_.append((new, place))
            left -= cost
    return [*parts, _joined(open_)] if open_ else parts


def _joined(open_: Sequence[tuple[str, int]]) -> DocumentPart:
    return DocumentPart("\n".join(text for text, _ in open_ if text), tuple(place for _, place in open_))


def _without_overlap(before: BaseNode, node: BaseNode) -> str:
    """The text of a node without its overlap with the node before it, found by positions and words."""
    text = plain_text(node).strip()
    if not (isinstance(before, TextNode) and isinstance(node, TextNode)):
        return text
    if before.end_char_idx is None or node.start_char_idx is None:
        return text
    shared = before.end_char_idx - node.start_char_idx
    is_shared = 0 < shared < len(text) and plain_text(before).strip().endswith(text[:shared].strip())
    return text[shared:].strip() if is_shared else text


@dataclass(frozen=True)
class Attempt:
    """The map read from a part, the verification of its statements, if any, and the number of attempts."""

    map: ReadMindMap
    check: Check | None
    attempts: int


def _records(texts: list[str], topic: str, found: Sequence[tuple[DocumentPart, Attempt]]) -> list[Record]:
    """The record of each node; checks and attempts are those of the parts that contain it."""
    maps = node_maps(texts, topic, [(part.places, attempt.map.paths) for part, attempt in found])
    records = []
    for i, own in enumerate(maps):
        attempts = [attempt for part, attempt in found if i in part.places]
        checks = [attempt.check for attempt in attempts if attempt.check is not None]
        dropped = sum(attempt.map.dropped for part, attempt in found if part.places[0] == i)  # counted once
        records.append(to_record(topic, own.paths, checks, sum(each.attempts for each in attempts), dropped))
    if len(texts) > 1:
        read_together(records, maps, texts)
    return records


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
