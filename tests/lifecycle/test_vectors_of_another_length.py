"""Vectors of another length than the index has: no write stores them, and the index goes on working."""

from pathlib import Path

import pytest
from llama_index.core import Document, StorageContext
from llama_index.core.embeddings import BaseEmbedding
from tests.cases import CASES, Case

from llama_index.mrag import SplitEmbedding
from llama_index.ragkit.errors import EmbeddingError
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import HashEmbedding

QUESTION = "Who kept the light on Tern Rock?"


class Shortening(HashEmbedding):
    """A model whose vectors have another length from a batch on, until it is mended."""

    batches: int = 0
    broken_from: int = 10**9

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.batches += 1
        vectors = super()._get_text_embeddings(texts)
        return [vector[:-1] for vector in vectors] if self.batches >= self.broken_from else vectors


def documents(first: int, last: int) -> list[Document]:
    return [
        Document(text=f"Ada Hale {i} kept the light on Tern Rock. It burned whale oil for {i} years.", id_=f"d{i}")
        for i in range(first, last)
    ]


def adapted(case: Case, model: HashEmbedding) -> BaseEmbedding:
    return SplitEmbedding(model, num_heads=4) if case.name == "mrag" else model


@pytest.mark.parametrize("where", ["memory", "sqlite"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_batch_of_another_length_ends_the_write_and_spoils_nothing(case: Case, where: str, tmp_path: Path) -> None:
    refused = 0
    for batch in range(1, 7):
        url = f"sqlite:///{tmp_path}/{batch}.db"
        context = storage_context(url) if where == "sqlite" else StorageContext.from_defaults()
        model = Shortening()
        index = case.from_documents(documents(0, 8), storage_context=context, embed_model=adapted(case, model))
        model.batches, model.broken_from = 0, batch
        try:
            for document in documents(8, 11):
                index.insert(document)
        except EmbeddingError:
            refused += 1
        model.broken_from = 10**9
        assert index.as_retriever().retrieve(QUESTION)
        if where == "sqlite":
            index = case.load(storage_context(url), embed_model=adapted(case, model))
        index.refresh_ref_docs(documents(0, 11))
        assert index.unfinished == []
        assert set(index.ref_doc_info) == {f"d{i}" for i in range(11)}
        assert index.as_retriever().retrieve(QUESTION)
    assert refused
