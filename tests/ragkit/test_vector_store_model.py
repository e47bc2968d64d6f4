"""The store against a dictionary and a loop, over random sequences of every operation."""

import math
import tempfile
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from llama_index.core import StorageContext
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from llama_index.ragkit.errors import ConfigurationError, EmbeddingError
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

DIM = 3
ALL_IDS = ["a", "b", "c", "d", "é\n", "漢", "", "None", '"']
ids = st.sampled_from(ALL_IDS)
documents = st.one_of(st.none(), st.sampled_from(["d1", "d2", "ü", "None", ""]))
# Sums and products of small integers are exact: the reference's scores are equal to the last bit.
vectors = st.lists(st.integers(-2, 2), min_size=DIM, max_size=DIM).map(lambda v: [float(x) for x in v])
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, 1.0, 1.5]),
    st.text("aAß漢", max_size=2),
    st.lists(st.sampled_from(["a", "aA", "ß"]), max_size=2),
    st.lists(st.integers(0, 2), max_size=2),
)
metadatas = st.dictionaries(st.sampled_from(["k", "l", "doc_id"]), values, max_size=2)
rows = st.tuples(ids, vectors, documents, metadatas, st.sampled_from(["", "k1", "k2"]))
filter_values = st.one_of(
    st.none(),
    st.integers(-2, 2),
    st.sampled_from([0.0, 1.5]),
    st.text("aAß漢", max_size=2),
    st.lists(st.sampled_from(["a", "aA", "ß"]), max_size=2),
    st.lists(st.integers(0, 2), max_size=2),
)
leaves = st.builds(
    MetadataFilter,
    key=st.sampled_from(["k", "l", "doc_id", "ref_doc_id"]),
    value=filter_values,
    operator=st.sampled_from(list(FilterOperator)),
)
filters = st.recursive(
    st.builds(
        MetadataFilters, filters=st.lists(leaves, max_size=2), condition=st.sampled_from([None, *FilterCondition])
    ),
    lambda groups: st.builds(
        MetadataFilters,
        filters=st.lists(st.one_of(leaves, groups), max_size=3),
        condition=st.sampled_from(list(FilterCondition)),
    ),
    max_leaves=4,
)
some_filters = st.one_of(st.none(), filters)
some_ids = st.one_of(st.none(), st.lists(ids, max_size=4))
some_documents = st.one_of(st.none(), st.lists(st.sampled_from(["d1", "d2", "ü", "None"]), max_size=2))


def passes(row, filter_):
    """The rules for one filter, spelled out; TypeError where values cannot be compared."""
    document, metadata = row[1], row[2]
    have = _named(document) if filter_.key in ("doc_id", "ref_doc_id") else metadata.get(filter_.key)
    want, operator = filter_.value, filter_.operator.name
    if operator == "IS_EMPTY":
        return have is None or have == "" or have == []
    if have is None:
        return operator in ("NE", "NIN")
    if operator.startswith("TEXT_MATCH"):
        if not isinstance(have, str) or not isinstance(want, str):
            raise TypeError
        return want.lower() in have.lower() if operator.endswith("INSENSITIVE") else want in have
    if operator == "EQ":
        return have == want
    if operator == "NE":
        return have != want
    if operator == "GT":
        return have > want
    if operator == "GTE":
        return have >= want
    if operator == "LT":
        return have < want
    if operator == "LTE":
        return have <= want
    if operator == "IN":
        return have in want
    if operator == "NIN":
        return have not in want
    if operator == "CONTAINS":
        return want in have
    found = [part in have for part in want]
    return any(found) if operator == "ANY" else all(found)


def passes_all(row, group):
    """Whether a row passes; None if that depends on values that cannot be compared."""
    parts = [passes_all(row, f) if isinstance(f, MetadataFilters) else attempted(row, f) for f in group.filters]
    if not parts or group.condition in (None, FilterCondition.AND):
        return False if False in parts else None if None in parts else True
    found = True if True in parts else None if None in parts else False
    return not found if group.condition == FilterCondition.NOT and found is not None else found


def attempted(row, filter_):
    try:
        return bool(passes(row, filter_))
    except TypeError:
        return None


def cosine(one, other):
    scale = math.sqrt(sum(x * x for x in one) * sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / scale if scale else 0.0


def _named(document: str | None) -> str:
    """What a document is called where ids are given: "None" for a node without one, and "" for one of that id."""
    return "None" if document is None else document


class StoreMachine(RuleBasedStateMachine):
    """`rows` maps an id to (vector, document, metadata, key); the store must answer as it does."""

    @initialize(stores_text=st.booleans())
    def start(self, stores_text):
        self.store = MatrixVectorStore(stores_text=stores_text)
        self.rows = {}
        self.kept = []
        self.generation = count()
        self.folder = tempfile.TemporaryDirectory()

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def selected(self, filters, node_ids, documents):
        """Ids that pass, or None where that depends on a comparison that is impossible."""
        among = {
            row_id: row
            for row_id, row in self.rows.items()
            if (node_ids is None or row_id in node_ids) and (documents is None or _named(row[1]) in documents)
        }
        if filters is None:
            return set(among)
        verdicts = {row_id: passes_all(row, filters) for row_id, row in among.items()}
        return None if None in verdicts.values() else {row_id for row_id, passed in verdicts.items() if passed}

    def ranked(self, vector, k, selected):
        scored = ((-cosine(self.rows[row_id][0], vector), self.rows[row_id][3], row_id) for row_id in selected)
        return [(row_id, -score) for score, _, row_id in sorted(scored)][:k]

    @rule(batch=st.lists(rows, max_size=6))
    def add(self, batch):
        if self.store.stores_text:
            nodes = []
            for row_id, vector, document, metadata, key in batch:
                source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)} if document is not None else {}
                nodes.append(TextNode(id_=row_id, text=key, embedding=vector, relationships=source, metadata=metadata))
            assert self.store.add(nodes) == [row[0] for row in batch]
            for node, (row_id, vector, document, metadata, _) in zip(nodes, batch, strict=True):
                self.rows[row_id] = (vector, document, metadata, f"{node.hash}\x1f{document or ''}\x1f")
        else:
            columns = [list(column) for column in zip(*batch, strict=True)] or [[]] * 5
            row_ids, matrix, refs, metas, keys = columns
            self.store.put(row_ids, matrix, ref_doc_ids=refs, metadatas=metas, keys=keys)
            for row_id, *row in batch:
                self.rows[row_id] = tuple(row)

    @rule(row=rows, bad=st.sampled_from([[math.nan] * DIM, [1.0] * (DIM + 1), [math.inf, 0.0, 0.0]]))
    def refuse(self, row, bad):
        if not self.rows:
            return
        nodes = [TextNode(id_="good", embedding=row[1]), TextNode(id_="bad", embedding=bad)]
        with pytest.raises(EmbeddingError, match="bad"):
            self.store.add(nodes)

    @rule(document=st.sampled_from(["d1", "d2", "ü", "None", "unknown"]))
    def delete(self, document):
        self.store.delete(document)
        self.rows = {row_id: row for row_id, row in self.rows.items() if _named(row[1]) != document}

    @rule(node_ids=some_ids, filters=some_filters)
    def delete_nodes(self, node_ids, filters):
        selected = self.selected(filters, node_ids, None)
        if selected is None:
            with pytest.raises(ConfigurationError, match="cannot be compared"):
                self.store.delete_nodes(node_ids, filters)
            return
        self.store.delete_nodes(node_ids, filters)
        for row_id in selected:
            del self.rows[row_id]

    @rule()
    def clear(self):
        self.store.clear()
        self.rows = {}

    @rule(vector=vectors, k=st.integers(0, 5), filters=some_filters, node_ids=some_ids, documents=some_documents)
    def query(self, vector, k, filters, node_ids, documents):
        sent = None if self.store.stores_text and node_ids == [] else node_ids  # core's always empty list
        selected = self.selected(filters, sent, documents)
        query = VectorStoreQuery(
            query_embedding=vector, similarity_top_k=k, filters=filters, node_ids=node_ids, doc_ids=documents
        )
        if selected is None:
            with pytest.raises(ConfigurationError, match="cannot be compared"):
                self.store.query(query)
            return
        result = self.store.query(query)
        assert list(zip(result.ids, result.similarities, strict=True)) == self.ranked(vector, k, selected)
        if self.store.stores_text:
            assert [node.node_id for node in result.nodes] == result.ids
            assert [node.metadata for node in result.nodes] == [self.rows[row_id][2] for row_id in result.ids]
        query.mode = VectorStoreQueryMode.MMR
        picks = self.store.query(query, mmr_threshold=1.0)
        assert dict(zip(picks.ids, picks.similarities, strict=True)) == dict(self.ranked(vector, k, selected))

    @rule(many=st.lists(vectors, max_size=3), k=st.integers(0, 5), filters=some_filters, documents=some_documents)
    def query_many(self, many, k, filters, documents):
        selected = self.selected(filters, None, documents)
        if selected is None:
            return
        for vector, hits in zip(many, self.store.query_many(many, k, filters=filters, doc_ids=documents), strict=True):
            assert list(zip(hits.ids, hits.scores, strict=True)) == self.ranked(vector, k, selected)
            assert [self.store.snapshot().ids[row] for row in hits.rows] == hits.ids

    @rule(node_ids=some_ids, filters=some_filters)
    def get_nodes(self, node_ids, filters):
        selected = self.selected(filters, node_ids, None)
        if selected is None or not self.store.stores_text:
            return
        order = (
            sorted(selected, key=lambda row_id: (self.rows[row_id][3], row_id))
            if node_ids is None
            else [row_id for row_id in dict.fromkeys(node_ids) if row_id in selected]
        )
        assert [node.node_id for node in self.store.get_nodes(node_ids, filters)] == order

    @rule()
    def persist_and_load(self):
        self.store.tag = {"generation": next(self.generation)}
        StorageContext.from_defaults(vector_store=self.store).persist(self.folder.name)
        loaded = StorageContext.from_defaults(persist_dir=self.folder.name).vector_store
        store = MatrixVectorStore.from_simple(loaded)
        assert (store.tag, store.stores_text) == (self.store.tag, self.store.stores_text)
        self.store = store

    @rule()
    def keep_a_snapshot(self):
        self.kept.append((self.store.snapshot(), dict(self.rows)))

    def same(self, snapshot, rows):
        assert len(snapshot) == len(rows) == len(snapshot.ids)
        assert dict(zip(snapshot.ids, snapshot.matrix.tolist(), strict=True)) == {i: row[0] for i, row in rows.items()}
        for row_id in (*ALL_IDS, "unknown"):
            assert (row_id in snapshot) == (row_id in rows)
        assert snapshot.dim == (DIM if rows else None)
        assert {i: snapshot.metadata_of(i) for i in snapshot.ids} == {i: row[2] for i, row in rows.items()}
        assert snapshot.rows_of(snapshot.ids).tolist() == list(range(len(rows)))
        column, codes = snapshot.column("k")
        assert [column.values[code] for code in codes] == [rows[row_id][2].get("k") for row_id in snapshot.ids]
        if rows:
            (hits,) = snapshot.search([[1.0, -1.0, 2.0]], 4)
            scored = sorted((-cosine(row[0], [1.0, -1.0, 2.0]), row[3], i) for i, row in rows.items())[:4]
            assert hits.ids == [i for _, _, i in scored]

    @invariant()
    def snapshots_are_what_they_were(self):
        if hasattr(self, "store"):
            for snapshot, rows in [*self.kept[-4:], (self.store.snapshot(), self.rows)]:
                self.same(snapshot, rows)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=60, stateful_step_count=25)
