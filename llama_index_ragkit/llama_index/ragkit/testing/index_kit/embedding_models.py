"""Is an embedding model that does not fit refused?"""

from pathlib import Path

import pytest
from llama_index.core.schema import TextNode

from llama_index.ragkit.testing.corpus import chunks
from llama_index.ragkit.testing.index_kit.harness import IndexHarness, reopened

__all__ = ["EmbeddingModelTests"]


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
