"""Is a loaded index the one that was stored, undisturbed by others of its context, and asked with its own model?"""

from pathlib import Path

import pytest
from llama_index.core import Document, StorageContext, SummaryIndex, VectorStoreIndex, load_index_from_storage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore

from llama_index.ragkit.testing.corpus import QUESTION, TEXTS, chunks, texts_and_scores
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness, reopened

__all__ = ["EmbeddingModelTests", "PersistenceTests", "SharedContextTests"]


class PersistenceTests(IndexHarness):
    """`storage_context.persist` and `load_index_from_storage` keep everything, and an index goes on from there."""

    def test_a_loaded_index_gives_the_same_answers(self, tmp_path: Path) -> None:
        """Class, id, texts, scores and order are those of the stored index."""
        index = self.build([*chunks("d", 6), *chunks("e", 3)])
        index.set_index_id("kept")
        loaded = self.reloaded(index, tmp_path, index_id="kept")
        assert type(loaded) is self.index_class
        assert loaded.index_id == "kept"
        assert self.ask(loaded) == self.ask(index) != []

    def test_a_loaded_index_goes_on_like_the_original(self, tmp_path: Path) -> None:
        """The same writes after loading lead to the same answers, and can be stored in turn."""
        index = self.build([*chunks("d", 9), *chunks("e", 3)])
        loaded = self.reloaded(index, tmp_path / "1")
        for each in (index, loaded):
            each.insert(Document(text="Zanzibar exports cloves.", id_="z"))
            each.delete_ref_doc("d", delete_from_docstore=True)
        assert self.ask(loaded) == self.ask(index)
        assert self.ask(self.reloaded(loaded, tmp_path / "2")) == self.ask(index)

    def test_a_loaded_index_knows_its_documents(self, tmp_path: Path) -> None:
        """Documents that did not change are not written again by a refresh."""
        documents = [Document(text=text, id_=f"D{i}") for i, text in enumerate(TEXTS)]
        loaded = self.reloaded(self.from_documents(documents), tmp_path)
        changed = Document(text="Zanzibar exports cloves.", id_="D0")
        assert loaded.refresh_ref_docs([changed, *documents[1:]]) == [True, False, False, False, False, False]

    def test_an_empty_index_comes_back_and_takes_documents(self, tmp_path: Path) -> None:
        """An index may be stored before it holds anything."""
        loaded = self.reloaded(self.build([]), tmp_path)
        assert self.ask(loaded) == []
        loaded.insert(Document(text=TEXTS[2], id_="n"))
        assert any(TEXTS[2] in text for text, _ in self.ask(loaded))

    def test_loading_changes_nothing_that_is_stored(self, tmp_path: Path) -> None:
        """An index that was only read and stored again is the same."""
        index = self.build(chunks("d", 6))
        index.storage_context.persist(str(tmp_path / "1"))
        between = reopened(tmp_path / "1")
        self.ask(self.load(between))
        between.persist(str(tmp_path / "2"))
        assert self.ask(self.load(reopened(tmp_path / "2"))) == self.ask(index)


class SharedContextTests(IndexHarness):
    """Indexes of one kind, and of core's kinds, share a storage context and its docstore."""

    def _best_by_core(self, index: Index) -> list[tuple[str, float]]:
        return texts_and_scores(index.as_retriever(similarity_top_k=3).retrieve(QUESTION))

    def test_two_of_a_kind_stay_apart(self, tmp_path: Path) -> None:
        """Each finds its own nodes only, also after loading in either order."""
        context = StorageContext.from_defaults()
        first = self.build(chunks("d", 5), storage_context=context)
        second = self.build(chunks("e", 4), storage_context=context)
        expected = {first.index_id: self.ask(first), second.index_id: self.ask(second)}
        assert {text for text, _ in expected[first.index_id]}.isdisjoint(text for text, _ in expected[second.index_id])
        context.persist(str(tmp_path))
        for order in (list(expected), list(expected)[::-1]):
            again = reopened(tmp_path)
            loaded = {index_id: self.load(again, index_id) for index_id in order}
            assert {index_id: self.ask(index) for index_id, index in loaded.items()} == expected

    def test_core_indexes_beside_it_are_undisturbed(self, tmp_path: Path) -> None:
        """A `VectorStoreIndex` and a `SummaryIndex` over the same nodes answer as if they were alone."""
        nodes, context = chunks("d", 5), StorageContext.from_defaults()
        alone = self._best_by_core(VectorStoreIndex(nodes, embed_model=self.embed_model()))
        vector = VectorStoreIndex(nodes, storage_context=context, embed_model=self.embed_model())
        summary = SummaryIndex(nodes, storage_context=context)
        index = self.build(nodes, storage_context=context)
        expected = self.ask(index)
        assert self._best_by_core(vector) == alone
        context.persist(str(tmp_path))
        for core_first in (True, False):
            again = reopened(tmp_path)
            loaded = None if core_first else self.load(again, index.index_id)
            beside = load_index_from_storage(again, vector.index_id, embed_model=self.embed_model())
            assert self._best_by_core(beside) == alone
            assert self.ask(loaded or self.load(again, index.index_id)) == expected
            assert len(load_index_from_storage(again, summary.index_id).as_retriever().retrieve(QUESTION)) == 5

    def test_all_indexes_of_a_context_are_loaded_at_once(self, tmp_path: Path) -> None:
        """`load_indices_from_storage` passes its keywords to indexes of every kind."""
        context = StorageContext.from_defaults()
        index = self.build(chunks("d", 4), storage_context=context)
        summary = SummaryIndex(chunks("e", 2), storage_context=context)
        context.persist(str(tmp_path))
        loaded = {each.index_id: each for each in self.load_all(reopened(tmp_path))}
        assert set(loaded) == {index.index_id, summary.index_id}
        assert self.ask(loaded[index.index_id]) == self.ask(index)

    def test_a_context_without_a_default_store_will_do(self) -> None:
        """A context made from named vector stores has no store of the name "default"."""
        context = StorageContext.from_defaults(vector_stores={"mine": SimpleVectorStore()})
        assert self.ask(self.build(chunks("d", 3), storage_context=context))

    def test_core_indexes_keep_what_this_one_deletes(self) -> None:
        """A delete that leaves the docstore alone concerns no other index."""
        nodes, context = chunks("d", 4), StorageContext.from_defaults()
        vector = VectorStoreIndex(nodes, storage_context=context, embed_model=self.embed_model())
        summary = SummaryIndex(nodes, storage_context=context)
        before = self._best_by_core(vector)
        self.build(nodes, storage_context=context).delete_ref_doc("d")
        assert self._best_by_core(vector) == before
        assert len(summary.as_retriever().retrieve(QUESTION)) == 4

    def test_a_document_that_another_index_deleted_can_be_deleted_here(self) -> None:
        """Its nodes are gone from the shared docstore; they are not found here, and the delete still succeeds."""
        nodes, context = [*chunks("d", 4), *chunks("e", 2)], StorageContext.from_defaults()
        one, other = self.build(nodes, storage_context=context), self.build(nodes, storage_context=context)
        one.delete_ref_doc("d", delete_from_docstore=True)
        other.delete_ref_doc("d", delete_from_docstore=True)
        assert set(other.ref_doc_info) == {"e"}
        assert not any(" d " in text for text, _ in self.ask(other))
        assert self.ask(one) == self.ask(other)

    def test_a_refresh_goes_by_what_this_index_holds(self) -> None:
        """A document that another index of the context has refreshed is still new to this one."""
        documents, context = [Document(text=" ".join(TEXTS), id_="D")], StorageContext.from_defaults()
        one = self.from_documents(documents, storage_context=context)
        other = self.from_documents(documents, storage_context=context)
        changed = [Document(text="Zanzibar exports cloves.", id_="D")]
        assert one.refresh_ref_docs(changed) == [True]
        assert other.refresh_ref_docs(changed) == [True]
        assert self.ask(other, "cloves") == self.ask(one, "cloves")
        assert not any("Babbage" in text for text, _ in self.ask(other, "Babbage"))


class EmbeddingModelTests(IndexHarness):
    """Vectors of different models are never compared, and an invalid vector is never stored."""

    def test_a_model_with_vectors_of_another_length_is_refused(self, tmp_path: Path) -> None:
        """At the latest when the loaded index is first asked, by an error that speaks of the embedding."""
        self.build(chunks("d", 3)).storage_context.persist(str(tmp_path))
        with pytest.raises(Exception, match=r"(?i)embed"):
            self.ask(self.load(reopened(tmp_path), embed_model=self.embed_model(dim=16)))

    def test_another_model_with_vectors_of_the_same_length_is_refused(self, tmp_path: Path) -> None:
        """The lengths agree, and every answer would be noise."""
        self.build(chunks("d", 3)).storage_context.persist(str(tmp_path))
        other = self.embed_model(model_name="other", salt="other")
        with pytest.raises(Exception, match=r"(?i)embed"):
            self.ask(self.load(reopened(tmp_path), embed_model=other))

    @pytest.mark.parametrize(
        "wrong", [[float("nan")] * 32, [float("inf")] * 32, [1.0, 0.0]], ids=["nan", "inf", "short"]
    )
    def test_a_vector_that_does_not_fit_is_refused_before_anything_is_written(self, wrong: list[float]) -> None:
        """A node may bring its vector: NaN, infinity and another length are refused, and the index stays as it was."""
        index = self.build(chunks("d", 3))
        before, stored = self.ask(index), set(index.docstore.docs)
        with pytest.raises(Exception, match=r"(?i)embed|vector"):
            index.insert_nodes([TextNode(id_="good", text="good"), TextNode(id_="bad", text="bad", embedding=wrong)])
        assert self.ask(index) == before
        assert set(index.docstore.docs) == stored
        index.insert_nodes([TextNode(id_="good", text="good")])
        assert any(text == "good" for text, _ in self.ask(index, "good"))

    def test_a_vector_that_a_node_brings_is_used_and_stays_out_of_the_docstore(self) -> None:
        """A question close to the vector ranks the node higher; the docstore keeps no copy of the vector."""
        elsewhere = self.embed_model().vector("cloves of Zanzibar")
        ranks = []
        for vector in (None, elsewhere):
            node = TextNode(id_="n", text="silk from Lyon", embedding=vector)
            index = self.build([node, TextNode(text="cloves grow on trees of Zanzibar"), *chunks("d", 3)])
            ranks.append([text for text, _ in self.ask(index, "cloves of Zanzibar")].index(node.text))
            assert index.docstore.docs["n"].embedding is None
            assert node.embedding == vector
        assert ranks[1] < ranks[0]
