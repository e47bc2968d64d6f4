"""`StoredGraphRAGBuilder`: keeps the statements of an index that is served from stores, and reads of them what a
question needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.builder import ENTITIES
from llama_index.graphrag.chunk_reading import added_statements, store_rewritten
from llama_index.graphrag.clustering.base import Clustering
from llama_index.graphrag.community_rows import CommunityRows
from llama_index.graphrag.components import check_fixed, checked_clustering, maker_of
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.changes import statement_graph
from llama_index.graphrag.graph.statement import ChunkStatements, bare, scoped
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.report_maker import ReportMaker
from llama_index.graphrag.reports.planning import unwritten
from llama_index.graphrag.resolvers import EntityResolver
from llama_index.graphrag.state import NEAREST, GraphRAGState, GraphView, GraphViews, WrittenReport, name_id, names_of
from llama_index.graphrag.statement_rows import StatementRows
from llama_index.graphrag.stored_state import StoredGraphRAGState
from llama_index.ragkit import (
    Change,
    ChunkView,
    Failure,
    IndexStorage,
    Resources,
    Selection,
    Snapshot,
    SpaceRows,
    Steps,
    StoredBuilder,
    count_tokens,
    offload,
    plain_text,
)
from llama_index.ragkit.errors import ConfigurationError, ExtractionError

__all__ = ["StoredGraphRAGBuilder"]

_CHUNKS = "chunks"
_EVERYTHING = Selection()


class StoredGraphRAGBuilder(StoredBuilder[GraphRAGConfig, GraphRAGState]):
    """Keeps statements as rows, which a write changes by exact sums and differences.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.index.stored_builder.StoredBuilder`
    clustering : finds the communities; default :class:`~llama_index.graphrag.AgglomerativeClustering`
    resolver : refused, since it compares the vectors of all names of a document

    Attributes
    ----------
    reports : has reports written
    rows : the statements
    communities : found when a question first needs them after a write

    Raises
    ------
    ConfigurationError
        For a resolver, for `reports="eager"`, or if a parameter is not that of the stored index.
    """

    spaces: ClassVar[tuple[str, ...]] = (_CHUNKS, ENTITIES)

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        config: GraphRAGConfig,
        clustering: Clustering | None = None,
        resolver: EntityResolver | None = None,
    ) -> None:
        super().__init__(storage, resources, config)
        self._clustering = checked_clustering(clustering)
        check_fixed(storage.struct, config)
        if resolver is not None:
            raise ConfigurationError(
                'With serve_from="stores" names are merged by rules alone: leave out resolver=, or build the index '
                'with serve_from="memory".'
            )
        self.reports = ReportMaker(storage, resources, config)
        if config.reports == "eager":
            raise ConfigurationError(
                'With serve_from="stores" reports="eager" would find all communities again at each write: choose '
                '"lazy" or "deferred".'
            )
        self.rows = StatementRows(storage.stores.graph(), storage.records, config.entity_vectors)
        self.communities = CommunityRows(storage.records)

    @property
    def summarizes(self) -> bool:
        """No: reports are written after writes."""
        return False

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """The fingerprint of the clustering."""
        return {"clustering": self._clustering.fingerprint}

    # -- writing ------------------------------------------------------------------------------------

    def load(self) -> Steps[GraphRAGState]:
        """Nothing: statements stay in the database."""
        return self._over(StatementGraph(), Snapshot.empty(), Snapshot.empty())
        yield

    def apply(self, state: GraphRAGState, change: Change) -> Steps[GraphRAGState]:
        """Store what chunks state, and take away what removed ones stated."""
        added = added_statements(change, self.config.partition_by)
        tokens = yield from offload(lambda: {node.node_id: count_tokens(plain_text(node)) for node in change.added})
        gone, rewritten, grown = yield from self.rows.replace(change.removed, added, tokens)
        yield from store_rewritten(self.storage, rewritten)
        counters = self.storage.struct.counters
        counters["tokens"] = counters.get("tokens", 0) + grown
        if self.config.entity_vectors:
            yield from self._embed_names(gone.values(), added)
        yield from self.communities.outdate(bool(gone))
        yield from self.reports.release((yield from self.communities.delete_reports_on(gone)))
        return state

    def _embed_names(self, gone: Iterable[ChunkStatements], added: Sequence[ChunkStatements]) -> Steps[None]:
        """Delete the vectors of names that no chunk states any more, and embed new names."""
        space = self.storage.stored[ENTITIES]
        before, after = _names_in(gone), _names_in(added)
        lost = before - after
        lost -= yield from self.rows.still_stated(lost)
        yield from space.remove(map(name_id, sorted(lost)))
        known = yield from space.records_of(map(name_id, sorted(after)))
        stored = {record["id"] for record in known.values()}
        new = sorted(name for name in after if name_id(name) not in stored)
        if new:
            ids, texts = [name_id(name) for name in new], sorted({bare(name) for name in new})
            vectors = yield from self.resources.embed(texts, ENTITIES)
            row_of = {text: row for row, text in enumerate(texts)}
            yield from space.put(SpaceRows(ids, vectors[[row_of[bare(name)] for name in new]], new, ids))

    # -- communities and reports ----------------------------------------------------------------------

    def find_communities(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """Find the communities of all statements, which are in memory meanwhile, and store them."""
        graph = yield from self.rows.everything()
        view = self._over(graph, Snapshot.empty(), Snapshot.empty()).everything
        yield from self.reports.release((yield from self.communities.replace(view, self.reports.by_model)))
        self.storage.struct.counters.update(
            entities=len(graph.entities),
            relations=sum(map(len, graph.links.values())) // 2,
            communities=len(view.hierarchy),
        )
        return state

    def need_communities(self) -> Steps[bool]:
        """Whether communities must be found before a question about the whole."""
        current = yield from self.communities.current()
        return current is None or bool(current["stale"])

    def write_reports(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """Find communities if a write has changed them, and write all reports that are missing."""
        if (yield from self.need_communities()):
            yield from self.find_communities(state)
        if not self.reports.by_model:
            return state
        whole = self.whole()
        view = yield from whole.community_view(None)
        yield from view.load(range(len(view.hierarchy)))
        todo = unwritten(view.plans(), view.known({}))
        written, failed = yield from self.reports.make(whole, view, todo)
        yield from self.communities.put_reports(written)
        self.storage.struct.counters["reports"] = len((yield from self.communities.sizes()))
        if failed and self.resources.on_error == "raise":
            key, reason = next(iter(failed.items()))
            raise ExtractionError(f"The report {key} failed: {reason}")
        return replace(state, failed=failed)

    def keep_reports(
        self, identity: str, written: Mapping[str, WrittenReport], state: GraphRAGState
    ) -> Steps[GraphRAGState]:
        """Store reports that a question has written, if its communities are still the current ones.

        Parameters
        ----------
        identity : of the communities
        """
        current = yield from self.communities.current()
        if current is None or current["gone"] or current["id"] != identity:
            yield from self.reports.release(written)
        else:
            yield from self.communities.put_reports(written)
            self.storage.struct.counters["reports"] = len((yield from self.communities.sizes()))
        return state

    def retry(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """As :meth:`write_reports`."""
        return (yield from self.write_reports(state))

    def failures(self, state: GraphRAGState) -> list[Failure]:
        """The reports that could not be written."""
        return [Failure(key, "report", reason) for key, reason in state.failed.items()]

    # -- reading ------------------------------------------------------------------------------------

    def whole(self, selection: Selection = _EVERYTHING) -> StoredGraphRAGState:
        """Where chunks and statements are, without the chunks near to a question."""
        return self._around(ChunkView(Snapshot.empty(), np.zeros(0)), selection)

    def view(self, question: str, vector: NDArray[np.float32], wanted: int, selection: Selection) -> Steps[Any]:
        """What a question is answered from, with enough chunks for the entities of the nearest to be known."""
        return (yield from super().view(question, vector, max(NEAREST, wanted), selection))

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[GraphRAGState]:
        """The chunks near to a question, and where the statements are; of few given chunks, all that they state."""
        return self._around(near, selection) if selection.only is None else (yield from self._of_few(near))

    def _around(self, near: ChunkView, selection: Selection) -> StoredGraphRAGState:
        nothing = self._over(StatementGraph(), near.rows, Snapshot.empty())
        return StoredGraphRAGState(
            nothing.chunks,
            nothing.entities,
            nothing.views,
            rows=self.rows,
            stored=self.chunks,
            near=near,
            selection=selection,
            storage=self.storage,
            communities=self.communities,
        )

    def _of_few(self, near: ChunkView) -> Steps[GraphRAGState]:
        """The state of an index of some chunks and of nothing else, in memory."""
        stated = yield from self.rows.of(near.rows.ids)
        here = stated.keys()
        chunks = [
            chunk.without_merged({i for s in chunk.all_statements for i in s.merged_from} - here)
            for chunk, _ in stated.values()
        ]
        graph = yield from offload(statement_graph, chunks)
        names = Snapshot.empty()
        if self.config.entity_vectors:
            names = yield from self.storage.stored[ENTITIES].fetch(map(name_id, sorted(names_of(graph))))
        return self._over(graph, near.rows, names)

    def _over(self, graph: StatementGraph, chunks: Snapshot, entities: Snapshot) -> GraphRAGState:
        view = GraphView(graph, self._clustering, self.config, maker_of(self.resources), whole=False)
        return GraphRAGState(chunks, entities, GraphViews(view))


def _names_in(chunks: Iterable[ChunkStatements]) -> set[str]:
    """The normalised names that chunks state, each within its scope."""
    return {scoped(chunk.scope, name) for chunk in chunks for name, _ in chunk.typed_names}
