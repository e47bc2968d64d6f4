"""A small index of its own, to test what all indexes share: chunks, and the words in them.

Its derived space holds one vector for each word, its records the words of each chunk, and a question
finds the chunks that share words with it before the chunks that are merely near. Built at once or grown,
it must always be the same.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from llama_index.core.schema import BaseNode, NodeWithScore

from llama_index.ragkit import (
    Builder,
    Change,
    DerivedIndex,
    DerivedRetriever,
    DerivedStruct,
    Found,
    LastQuery,
    NodeExtractor,
    Query,
    Selection,
    Snapshot,
    SpaceRows,
    Steps,
    content_id,
    register_index,
)
from llama_index.ragkit.html import Grid, Page


def words_of(text: str) -> list[str]:
    return sorted({word.strip(".,!?").casefold() for word in text.split()} - {""})


class WordExtractor(NodeExtractor):
    """Reads the words of a node, without an LLM; fails at nodes that say so."""

    needs_llm: ClassVar[bool] = False
    fail_on: str | None = None

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": "WordExtractor"}

    def extract_node(self, node: BaseNode, context: Any) -> Steps[dict[str, Any]]:
        text = node.get_content()
        if self.fail_on and self.fail_on in text:
            raise ValueError(f"cannot read {text!r}")
        return {"words": words_of(text)}
        yield


@dataclass
class ToyStruct(DerivedStruct):
    type_name = "tests.toy"


@dataclass(frozen=True)
class ToyState:
    chunks: Snapshot = field(default_factory=Snapshot.empty)
    words: Snapshot = field(default_factory=Snapshot.empty)
    chunks_of: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ToyConfig:
    """No parameters."""


class ToyBuilder(Builder[ToyConfig, ToyState]):
    def load(self) -> Steps[ToyState]:
        new: dict[str, set[str]] = {}
        chunks, space = self.storage.snapshot(), self.storage.space("words")
        for node_id, entry in (yield from self.storage.manifest.entries()).items():
            for word in (entry.record or {"words": []})["words"] if node_id in chunks else ():
                new.setdefault(word, set()).add(node_id)
        rows = self.storage.snapshot("words").records
        yield from space.remove([row.id for row in rows if row.key not in new])  # left by a write that was killed
        embedded = {row.key for row in rows}
        return self._state({word: frozenset(ids) for word, ids in new.items() if word in embedded})

    def apply(self, state: ToyState, change: Change) -> Steps[ToyState]:
        gone = set(change.removed)
        new: dict[str, set[str]] = {word: set(ids) - gone for word, ids in state.chunks_of.items()}
        for node_id, record in change.records.items():
            for word in record["words"]:
                new.setdefault(word, set()).add(node_id)
        dropped = [word for word, ids in new.items() if not ids]
        fresh = sorted(word for word, ids in new.items() if ids and word not in state.chunks_of)
        space = self.storage.space("words")
        yield from space.remove([content_id("word", word) for word in dropped])
        if fresh:
            vectors = yield from self.resources.embed(fresh)
            ids = [content_id("word", word) for word in fresh]
            yield from space.put(SpaceRows(ids, vectors, fresh, ids))
        return self._state({word: frozenset(ids) for word, ids in new.items() if ids})

    def _state(self, chunks_of: dict[str, frozenset[str]]) -> ToyState:
        return ToyState(self.storage.snapshot(), self.storage.snapshot("words"), chunks_of)


class ToyRetriever(DerivedRetriever[ToyState, Found, str]):
    method = "toy"

    def _search(self, query: Query[ToyState]) -> Steps[Found]:
        state = query.state
        vector = yield from query.vector()
        hits = state.chunks.search(np.stack([vector]), len(state.chunks), query.allowed)[0]
        shared = Counter(i for w in words_of(query.text) for i in state.chunks_of.get(w, ()))
        ranking = [(i, shared[i] + s) for i, s in zip(hits.ids, hits.scores, strict=True)]
        ranking.sort(key=lambda pair: (-pair[1], state.chunks.record_of(pair[0]).key))
        return Found(ranking)

    def _explanations(self, found: Found, nodes: Sequence[NodeWithScore]) -> Steps[list[str]]:
        return [f"{result.node.node_id} is near" for result in nodes]
        yield


class ToyIndex(DerivedIndex[ToyConfig, ToyState]):
    index_struct_cls = ToyStruct
    method = "toy"
    space_names = ("chunks", "words")
    config_cls = ToyConfig
    builder_cls = ToyBuilder
    retriever_cls = ToyRetriever

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        return Page(title="Toy", view=Grid(rows=[], columns=[], values=np.zeros((0, 0))))


register_index(ToyIndex)
