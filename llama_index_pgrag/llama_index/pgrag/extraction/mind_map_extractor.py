"""`MindMapExtractor`: extracts topic, verified statements and mind map with a language model (section 2.3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode
from pydantic import Field

from llama_index.pgrag.extraction.mind_map_reply import MindMapReply, ReadMindMap, read_mind_map_reply
from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.verification import Check, rouge_l
from llama_index.pgrag.prompts import MIND_MAP_PROMPT
from llama_index.pgrag.records import to_record
from llama_index.ragkit import (
    Estimate,
    ExtractionContext,
    NodeExtractor,
    Record,
    Rejected,
    Steps,
    count_tokens,
    embed_texts,
    fence,
    offload,
    plain_text,
)
from llama_index.ragkit.errors import ExtractionError, LanguageModelError
from llama_index.ragkit.text.sentences import split_sentences
from llama_index.ragkit.validation import count, number

__all__ = ["MindMapExtractor"]


class MindMapExtractor(NodeExtractor):
    """Has a language model rewrite each node as a mind map of facts.

    1. For each part of the text one call gives topic, statements (the paper's fact-checking items) and a mind map of
       them, as JSON, parsed tolerantly. The published code makes one call for each of the three.
    2. Facts of whose words the text has too few are dropped, and counted in the record under `dropped`.
    3. The statements are verified against the text (:mod:`~llama_index.pgrag.maps.verification`). If they fail, the
       model is told why and asked again, up to `max_regenerations` times; if no attempt passes, the best is kept and
       the record has `"verified": False`. In the published code such documents were processed manually.

    There is one call for each node of up to `part_tokens` tokens: with whole documents as nodes, as published, that is
    one call a document.

    Parameters
    ----------
    verify : whether statements are verified
    min_rouge_l : least ROUGE-L, in [0, 1] [0.15, the published code's; paper: 0.75]
    min_semantic : least cosine of the embeddings of text and statements, in [-1, 1]; suitable values depend on the
        embedding model [0.85]
    max_regenerations : further attempts at the statements of a part, at least 0 [2; paper: unlimited]
    part_tokens : longer texts are split at sentence boundaries into parts, each with its own statements and map under
        one topic; at least 50 [1500]
    join_lists : whether a list of texts is one fact, as published [False: each item is a fact]
    min_in_text : least share of the words of a fact that the text must have, in [0, 1]; 0 for no check, as for mind
        maps in another language [0.3]
    embed_model : for the semantic score; defaults to the index's, else to `Settings.embed_model`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    method: ClassVar[str] = "pgrag"
    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"mind_map": MIND_MAP_PROMPT}
    completion_tokens: ClassVar[int] = 1000
    without_llm: ClassVar[str] = "extractor=OutlineExtractor()"

    verify: bool = True
    min_rouge_l: Annotated[float, number(0, 1)] = 0.15
    min_semantic: Annotated[float, number(-1, 1)] = 0.85
    max_regenerations: Annotated[int, count(0)] = 2
    part_tokens: Annotated[int, count(50)] = 1500
    join_lists: bool = False
    min_in_text: Annotated[float, number(0, 1)] = 0.3
    embed_model: BaseEmbedding | None = Field(default=None, exclude=True)

    @property
    def fingerprint(self) -> dict[str, str]:
        """As for every extractor, but without the embedding model, which is only used for verification."""
        return {name: value for name, value in super().fingerprint.items() if name != "embed_model"}

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Process one node: 1 call for each part, and 1 for each regeneration."""
        parts = yield from offload(_parts, plain_text(node), self.part_tokens)
        topic = ""
        paths: list[Path] = []
        checks: list[Check] = []
        attempts = dropped = 0
        for part in parts:
            found = yield from self._read_part(part, topic, context)
            topic = found.map.topic
            attempts += found.attempts
            dropped += found.map.dropped
            checks += [] if found.check is None else [found.check]
            paths += found.map.paths
        return to_record(topic, dict.fromkeys(paths), checks, attempts, dropped)

    def _read_part(self, part: str, topic: str, context: ExtractionContext) -> Steps["_Attempt"]:
        """The first mind map of a part whose statements pass verification, or else the best."""
        best: _Attempt | None = None
        rejected: Rejected | None = None
        read = partial(
            read_mind_map_reply, text=part, topic=topic, join_lists=self.join_lists, min_in_text=self.min_in_text
        )
        attempt = 0
        while True:
            attempt += 1
            try:
                found = yield from context.complete(
                    self.prompt("mind_map"),
                    parse=read,
                    output_cls=MindMapReply,
                    rejected=rejected,
                    like=part,
                    text=fence([part], "text"),
                    topic=topic or "(none)",
                )
            except ExtractionError as error:
                if best is None or isinstance(error, LanguageModelError):
                    raise
                return replace(best, attempts=attempt)
            if not self.verify:
                return _Attempt(found, None, 1)
            check = yield from self._check(part, found.statements, context)
            if best is None or best.check is None or check.rank > best.check.rank:
                best = _Attempt(found, check, attempt)
            if check.passed or attempt > self.max_regenerations:
                return replace(best, attempts=attempt)
            rejected = Rejected(found.reply, self._reason(check))

    def _reason(self, check: Check) -> str:
        """What is wrong with statements that failed, for the model."""
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
        model = self.embed_model or context.embed_model
        one, other = (yield from embed_texts(model, [part, text])).astype(np.float64)
        norms = float(np.sqrt((one @ one) * (other @ other)))
        semantic = float(one @ other) / norms if norms > 0 else 0.0
        return Check(lexical, semantic, lexical >= self.min_rouge_l and semantic >= self.min_semantic)

    def estimate_node(self, node: BaseNode, count: Callable[[str], int]) -> Estimate:
        """One call for each part, without regeneration."""
        text = count(plain_text(node))
        parts = max(1, -(-text // self.part_tokens))
        prompt = count(self.prompt("mind_map").get_template())
        return Estimate(parts, parts * prompt + text, parts * self.completion_tokens)


@dataclass(frozen=True)
class _Attempt:
    map: ReadMindMap
    check: Check | None
    attempts: int


def _parts(text: str, most: int) -> list[str]:
    """Split the text into parts of whole sentences of at most `most` tokens; longer sentences are cut."""
    text = text.strip()
    if count_tokens(text) <= most:
        return [text]
    parts: list[str] = []
    open_: list[str] = []
    left = most
    for sentence in split_sentences(text):
        pieces = [sentence]
        while (tokens := count_tokens(pieces[-1])) > most:
            cut = max(1, len(pieces[-1]) * most // tokens * 9 // 10)
            pieces[-1:] = [pieces[-1][:cut], pieces[-1][cut:]]
        for piece in pieces:
            cost = count_tokens(piece) + 1
            if cost > left and open_:
                parts.append("\n".join(open_))
                open_, left = [], most
            open_.append(piece)
            left -= cost
    return [*parts, "\n".join(open_)] if open_ else parts
