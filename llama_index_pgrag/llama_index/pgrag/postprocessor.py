"""`PGRAGPostprocessor` replaces the nodes of any retriever with their facts that are relevant to a question."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import Unpack

from llama_index.pgrag.builder import MapBuilder
from llama_index.pgrag.config import PGRAGConfig, SearchConfig
from llama_index.pgrag.keywords import PGRAGPostprocessorKeywords
from llama_index.pgrag.path_nodes import ContextPath, context_text, outline_node
from llama_index.pgrag.search.candidates import Allowed, Candidate, Vector, cells_by_words
from llama_index.pgrag.search.ranking import MergedPath, path_scores, rank_paths, score_facts
from llama_index.pgrag.state import PseudoGraph
from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Steps, content_id, offload
from llama_index.ragkit.index.matching import match_nodes
from llama_index.ragkit.index.results import fresh
from llama_index.ragkit.validation import Count, Share, choice
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT, question_cosines, result_scores, standardised

__all__ = ["PGRAGPostprocessor"]


class PGRAGPostprocessor(DerivedPostprocessor):
    """Replaces chunks with the fact paths of their documents that are relevant to the question, as nested outlines.

    The maps of the chunks' documents are walked as :class:`~llama_index.pgrag.PGRAGRetriever` walks its candidates. The
    best `max_paths` paths are returned, one node per topic, the topic of the best path first. The text of a node is the
    outline of the topic's paths, and its score is that of the best path; the source nodes are CHILD relationships.
    Nodes that are not in the index, or have no facts, keep their rank. Without a question the paths keep the order of
    the nodes.

    Parameters
    ----------
    index : the :class:`PGRAGIndex` whose mind maps are used
    max_paths : largest number of fact paths, at least 1 [20]
    scope : "documents" uses all facts of a chunk's document, "nodes" only those of the chunk ["documents"]
    lexical_weight : weight of BM25 in the nearness of a path, in [0, 1]; its cosine has the rest [0.5]
    filters : metadata filters; nodes that do not match are dropped, and their facts are not used [None]
    top_n, token_budget : see :class:`~llama_index.ragkit.DerivedPostprocessor`; an outline is one node

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or has an invalid value.
    """

    method: ClassVar[str] = "pgrag"
    keywords: ClassVar[type] = PGRAGPostprocessorKeywords

    max_paths: Count = Field(default=20, description="Largest number of fact paths.")
    scope: Annotated[Literal["documents", "nodes"], choice(("documents", "nodes"))] = Field(
        default="documents", description="Scope of the facts used."
    )
    lexical_weight: Share = Field(default=LEXICAL_WEIGHT, description="Weight of BM25 in the nearness of a path.")

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[PGRAGConfig, PseudoGraph], **kwargs: Unpack[PGRAGPostprocessorKeywords]
        ) -> None: ...

    def _vectors(self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None) -> Steps[list[Vector] | None]:
        """The vectors of the key points of a question."""
        index: DerivedIndex[PGRAGConfig, PseudoGraph] = self._index
        if bundle is None or index.storage.is_empty:
            return None
        yield from index.writer.checks.embed_model()
        return (yield from index.resources.embed_strings(bundle, index.storage.struct.embedding["dimension"]))

    def _results(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: list[Vector] | None
    ) -> Steps[list[NodeWithScore]]:
        """The kept nodes and the outlines."""
        index: DerivedIndex[PGRAGConfig, PseudoGraph] = self._index
        builder: MapBuilder = self._index.builder
        contents = yield from index.writer.recovered()
        graph = yield from builder.maps.of_documents(contents.state, [each.node for each in nodes])
        matched = match_nodes(nodes, graph.chunks)
        sources = [m for m in dict.fromkeys(matched) if m is not None and m in graph.of_node]
        kept = [(rank, node) for rank, (node, m) in enumerate(zip(nodes, matched, strict=True)) if m not in sources]
        outlines: list[NodeWithScore] = []
        if sources:
            scope = self._scope(graph, sources)
            maps = dict.fromkeys(fact.topic_id for node_id in sources for fact in graph.of_node[node_id])
            if self.scope == "documents":
                documents = {graph.maps[topic_id].document for topic_id in maps} - {None}
                further = (i for i, found in sorted(graph.maps.items()) if found.document in documents)
                maps.update(dict.fromkeys(further))
            candidates = [Candidate(topic_id, "fact", 0.0) for topic_id in maps]
            outlines = yield from self._outlines((yield from self._rank(graph, candidates, scope, bundle, vectors)))
        placed = [(rank, 1, fresh(node.node, node.score or 0.0)) for rank, node in kept]
        placed += [(rank, 0, outline) for rank, outline in enumerate(outlines)]
        placed.sort(key=lambda entry: entry[:2])
        return [result for _, _, result in placed]

    def _scope(self, graph: PseudoGraph, sources: list[str]) -> set[str]:
        """Ids of the nodes whose facts may be used."""
        scope = set(sources)
        if self.scope == "documents":
            documents = {fact.document for node_id in sources for fact in graph.of_node[node_id]} - {None}
            scope |= {node_id for node_id, facts in graph.of_node.items() if facts[0].document in documents}
        allowed = self._selection.allowed(graph.chunks)
        if allowed is not None:
            scope &= {graph.chunks.ids[row] for row in np.flatnonzero(allowed)}
        return scope

    def _rank(
        self,
        graph: PseudoGraph,
        candidates: list[Candidate],
        scope: set[str],
        bundle: QueryBundle | None,
        points: list[Vector] | None,
    ) -> Steps[list[MergedPath]]:
        mask = np.zeros(len(graph.chunks), np.bool_)
        mask[graph.chunks.rows_of(sorted(scope))] = True
        allowed = yield from offload(Allowed.of, graph, mask)
        if bundle is None or points is None:
            facts = [fact for c in candidates for fact in graph.maps[c.topic_id].facts if allowed.fact(fact)]
            return MergedPath.of([(fact, 0.0) for fact in facts])[: self.max_paths]
        return (yield from offload(self._best_paths, graph, points, candidates, allowed, bundle.query_str))

    def _best_paths(
        self, graph: PseudoGraph, points: list[Vector], candidates: list[Candidate], allowed: Allowed, question: str
    ) -> list[MergedPath]:
        config, nodes = SearchConfig(), None
        builder: MapBuilder = self._index.builder
        if builder.maps.by_words(config) and allowed.chunks is not None:
            # The vectors of nodes stand in for those of cells. From stores, not all nodes out of scope are here.
            shown = graph.chunks.part(np.flatnonzero(allowed.chunks))
            nodes = np.zeros(len(graph.chunks))
            nodes[allowed.chunks] = standardised(np.max([question_cosines(shown, point) for point in points], axis=0))
            scores = np.where(allowed.chunks, nodes, -np.inf)
            graph, points = cells_by_words(graph, scores, len(scores), [question])
            candidates = [candidate for candidate in candidates if candidate.topic_id in graph.maps]
            allowed = Allowed.of(graph, allowed.chunks)
        facts = score_facts(graph, points, candidates, config, allowed)
        scores = path_scores(graph, facts, nodes, self.lexical_weight, config)
        ranked = rank_paths(graph, scores, len(scores), question, self.lexical_weight, 0.0)
        found = np.array([score for _, score in ranked])
        shown = result_scores(found, found).tolist()
        ranking = [(graph.fact(graph.facts.ids[row]), score) for (row, _), score in zip(ranked, shown, strict=True)]
        return MergedPath.of(ranking)[: self.max_paths]

    def _outlines(self, results: list[MergedPath]) -> Steps[list[NodeWithScore]]:
        """One node for each topic."""
        by_topic: dict[str, list[MergedPath]] = defaultdict(list)
        for result in results:
            by_topic[result.fact.path[0]].append(result)
        nodes = []
        for topic, found in by_topic.items():
            whole = MergedPath(found[0].fact, found[0].score, tuple(fact for result in found for fact in result.facts))
            text = context_text([ContextPath(result.fact.path) for result in found])
            name = content_id("outline", *(result.fact.id for result in found))
            node = yield from outline_node(name, text, topic, whole, self._index.storage.get_node)
            nodes.append(NodeWithScore(node=node, score=whole.score))
        return nodes
