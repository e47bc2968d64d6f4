"""What an index measures of its embedding model when it is built, by retrieving its own sentences."""

import dataclasses
import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import Document, TextNode
from llama_index.core.storage import StorageContext
from tests.cases import CASES, Case, HashHeads, ask
from tests.ragkit.test_self_retrieval import prose

from llama_index.ragkit import HybridRetriever, MatrixVectorStore, persist
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.vectors.trust import lexical_share

pytestmark = pytest.mark.pairs

METHODS = [case for case in CASES if case.name != "toy"]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_method = pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)


class Noise(HashHeads):
    """Knows no words: each text has a random vector, always the same."""

    def _get_text_embedding(self, text: str) -> list[float]:
        self.texts.append(text)
        return random.Random(text).choices([-1.0, 1.0], k=self.dim)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Names(Noise):
    """Knows the names of `prose`: texts with the same one have the same vector."""

    def _get_text_embedding(self, text: str) -> list[float]:
        name = re.search(r"Q\w+x", text)
        return super()._get_text_embedding(name[0] if name else text)


def nodes(count: int, seed: int = 0) -> list[TextNode]:
    return [TextNode(text=text, id_=f"n{seed}-{i}") for i, text in enumerate(prose(count, seed))]


def advantage(index: Any) -> float:
    found: float = index.index_struct.advantage
    return found


@each_case
def test_words_have_an_advantage_over_a_model_that_knows_nothing(case: Case) -> None:
    assert advantage(case.build(nodes(170), embed_model=Noise())) > 0.5
    assert advantage(case.build(nodes(170), embed_model=Names())) < 0.1


@each_method
def test_it_is_kept_where_the_index_is_stored_and_the_same_in_stores(case: Case, tmp_path: Path) -> None:
    def context() -> StorageContext:
        return storage_context(f"sqlite:///{tmp_path / 'index.db'}", vectors=lambda name, dim: MatrixVectorStore())

    built = case.build(nodes(170), embed_model=Noise())
    persist(built.storage_context, tmp_path / "folder")
    loaded = case.load(StorageContext.from_defaults(persist_dir=str(tmp_path / "folder")), embed_model=Noise())
    stored = case.build(nodes(170), embed_model=Noise(), storage_context=context())
    assert advantage(built) == advantage(loaded) == advantage(stored) > 0.5
    answers = [ask(index, "Which loom burns coal?") for index in (built, loaded, stored)]
    assert answers[0] == answers[1]
    assert {text for text, _ in answers[0]} == {text for text, _ in answers[2]}


@pytest.mark.parametrize("of_documents", [False, True], ids=["nodes", "documents"])
@each_method
def test_of_many_chunks_stores_measure_the_same_as_memory(
    case: Case, of_documents: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llama_index.ragkit.index.write_plan.AT_ONCE", 170)
    stores = storage_context(f"sqlite:///{tmp_path / 'index.db'}", vectors=lambda name, dim: MatrixVectorStore())
    given = nodes(400)
    documents = [Document(text=node.text, id_=node.node_id) for node in given]

    def build(**kwargs: Any) -> Any:
        if of_documents:
            return case.from_documents(documents, embed_model=Noise(), **kwargs)
        return case.build(given, embed_model=Noise(), **kwargs)

    built, stored = build(), build(storage_context=stores)
    assert advantage(built) == advantage(stored) > 0.5
    assert built.index_struct.measured == stored.index_struct.measured == 170


@each_method
def test_another_reader_of_the_stores_sees_it(case: Case, tmp_path: Path) -> None:
    spaces: dict[str, MatrixVectorStore] = {}

    def context() -> StorageContext:
        url = f"sqlite:///{tmp_path / 'index.db'}"
        return storage_context(url, vectors=lambda name, dim: spaces.setdefault(name, MatrixVectorStore()))

    writer = case.build(nodes(20), embed_model=Noise(), storage_context=context())
    reader = case.load(context(), embed_model=Noise())
    assert advantage(reader) == 0
    writer.insert_nodes(nodes(170, 1))
    ask(reader)
    assert advantage(reader) == advantage(writer) > 0.5


@each_case
def test_small_writes_measure_nothing_and_larger_ones_measure_anew(case: Case) -> None:
    model = Noise()
    index = case.build(nodes(159), embed_model=model)
    assert (index.index_struct.advantage, index.index_struct.measured) == (0, 0)
    index.insert_nodes(nodes(160, 1))
    first = advantage(index)
    assert index.index_struct.measured == 160
    index.insert_nodes(nodes(300, 2))
    assert (advantage(index), index.index_struct.measured) == (first, 160)
    index.delete_nodes([f"n1-{i}" for i in range(160)])
    assert advantage(index) == first > 0
    index.insert_nodes(nodes(320, 3))
    assert index.index_struct.measured == 320
    assert advantage(index) not in (0, first)


@each_case
def test_no_sentence_is_embedded_where_too_few_can_be_taken_out(case: Case) -> None:
    model = Noise()
    several, single = nodes(19), nodes(160, 1)
    given = [*several, *(TextNode(text=node.text.split(".")[0], id_=node.node_id) for node in single)]
    index = case.build(given, embed_model=model)
    assert (advantage(index), index.index_struct.measured) == (0, 179)
    assert not {node.text.split(". ")[1] + "." for node in several} & set(model.texts)


@each_case
def test_a_struct_of_an_earlier_version_has_none(case: Case) -> None:
    struct = case.build(nodes(3)).index_struct
    old = {k: v for k, v in dataclasses.asdict(struct).items() if k not in ("advantage", "measured")}
    loaded: DerivedStruct = type(struct).from_json(json.dumps(old))
    assert (loaded.advantage, loaded.measured) == (0, 0)


def test_a_hybrid_retriever_measures_it_too() -> None:
    def contents(model: BaseEmbedding, **kwargs: Any) -> float:
        return HybridRetriever(nodes(170), model, **kwargs)._contents.advantage

    assert contents(Noise()) == advantage(CASES[0].build(nodes(170), embed_model=Noise())) > 0.5
    assert contents(Names()) < 0.1
    assert contents(Noise(), lexical_weight=0) == 0


def test_with_an_advantage_words_count_more() -> None:
    texts, model = nodes(170), Noise()
    found = [HybridRetriever(some, model) for some in (texts[:159], texts)]
    question = texts[7].text[:40]
    full = [retriever._contents.scored(question, None)[1] for retriever in found]
    cosines, lexical = np.arange(50.0), np.arange(50.0) ** 2
    without, with_it = (lexical_share(cosines, lexical, 0.5, each._replace(score=5e3)) for each in full)
    assert full[0].advantage == 0 < full[1].advantage
    assert without < with_it < 1
