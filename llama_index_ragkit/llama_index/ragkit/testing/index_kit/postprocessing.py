"""Does the method's postprocessor work behind any retriever?"""

import asyncio

from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing.corpus import QUESTION, chunks
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness

__all__ = ["PostprocessorTests"]


class PostprocessorTests(IndexHarness):
    """A method's postprocessor takes the nodes of any retriever, and drops none for being unknown.

    Inherit it in addition to `IndexConformance` if the method has a postprocessor, and override `postprocessor`.
    """

    def postprocessor(self, index: Index) -> BaseNodePostprocessor:
        """The method's postprocessor over an index, with its defaults; override it."""
        raise ConfigurationError(f"{type(self).__name__} must override postprocessor() to use PostprocessorTests.")

    def _over_core(self) -> tuple[BaseNodePostprocessor, list[NodeWithScore]]:
        """The postprocessor, and what core's own index retrieves over the same nodes."""
        nodes, context = chunks("d", 6), StorageContext.from_defaults()
        index = self.build(nodes, storage_context=context)
        core = VectorStoreIndex(nodes, storage_context=context, embed_model=self.embed_model())
        return self.postprocessor(index), core.as_retriever(similarity_top_k=4).retrieve(QUESTION)

    def test_what_it_is_given_is_not_changed(self) -> None:
        """Results are fresh: the retriever's own nodes and scores stay as they are."""
        processor, given = self._over_core()
        before = [(result.node.node_id, result.node.hash, result.score) for result in given]
        for result in processor.postprocess_nodes(given, QueryBundle(QUESTION)):
            result.score = -1.0
        assert [(result.node.node_id, result.node.hash, result.score) for result in given] == before

    def test_its_results_are_scored_and_unique(self) -> None:
        """Python floats, and no node twice."""
        processor, given = self._over_core()
        results = processor.postprocess_nodes(given, QueryBundle(QUESTION))
        assert results
        assert all(type(result.score) is float for result in results)
        assert len({result.node.node_id for result in results}) == len(results)

    def test_nodes_that_it_does_not_know_are_kept(self) -> None:
        """A node of another index passes through."""
        processor, given = self._over_core()
        stranger = NodeWithScore(node=TextNode(id_="stranger", text="Nobody knows me."), score=0.01)
        results = processor.postprocess_nodes([*given, stranger], QueryBundle(QUESTION))
        assert "stranger" in {result.node.node_id for result in results}

    def test_it_does_the_same_asynchronously(self) -> None:
        """`apostprocess_nodes` gives what `postprocess_nodes` gives."""
        processor, given = self._over_core()
        results = processor.postprocess_nodes(given, QueryBundle(QUESTION))
        awaited = asyncio.run(processor.apostprocess_nodes(given, QueryBundle(QUESTION)))
        assert [(r.node.node_id, r.score) for r in awaited] == [(r.node.node_id, r.score) for r in results]

    def test_nothing_stays_nothing(self) -> None:
        """Without nodes there is no result."""
        processor, _ = self._over_core()
        assert processor.postprocess_nodes([], QueryBundle(QUESTION)) == []

    def test_it_does_without_a_question(self) -> None:
        """Core calls postprocessors without a query bundle, too."""
        processor, given = self._over_core()
        assert processor.postprocess_nodes(given)
