"""An index that is served from stores beside the same index in memory, each in a process of its own.

The passages, names and questions are those of `benchmarks.made_up_names`; vectors follow from the words of a text,
with the places as topics, so that passages of one place are near to each other. MRAG is asked two questions at once,
and has a store for each head, since halves of such vectors say little of each other.
The stores are an SQLite file with vectors in LanceDB, and the PostgreSQL of `PG_DSN` with pgvector.
`RAG_STORES_METHOD` names the method; RAPTOR has extractive summaries and is clustered once, at the end.
`RAG_STORES_PASSAGES` sets the size of the corpus in stores, and `RAG_EMBEDDED_PASSAGES` that of the index in memory:
answers are compared where both are the same. With `RAG_STORES_SCHEMA` the index on PostgreSQL is built in that schema
once and kept, and SQLite is left out. `RAG_STORES_HNSW` are the links, the candidates while building and those while
searching of the indexes of chunks and summaries there [16,64,800].
"""

import os
import shutil
import statistics
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from llama_index.core import Document, load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from sqlalchemy import text

from benchmarks.apart import apart
from benchmarks.made_up_names import passages, questions
from benchmarks.measuring import Times, peak_mb, resident_mb, timed
from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.graphrag import GraphRAGIndex
from llama_index.graphrag import RecordedExtractor as RecordedStatements
from llama_index.hipporag import HippoRAGIndex, RecordedExtractor
from llama_index.hipporag.graph.passage import Passage
from llama_index.mrag import MRAGIndex, SplitEmbedding
from llama_index.pgrag import OutlineExtractor, PGRAGIndex
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.sql import SQLStorageContext, make_engine, reading, storage_context, writing
from llama_index.raptor import RaptorIndex
from llama_index.sprag import RuleContext, SpRAGIndex

__all__ = ["measurements"]

METHODS: dict[str, Any] = {
    "gemrag": GEMRAGIndex, "graphrag": GraphRAGIndex, "hipporag": HippoRAGIndex, "mrag": MRAGIndex,
    "pgrag": PGRAGIndex, "raptor": RaptorIndex, "sprag": SpRAGIndex,
}  # fmt: skip
_RECORDED = (RecordedExtractor, RecordedStatements)
PASSAGES = 100_000
AT_ONCE = 1_000  # passages of one write
QUESTIONS = 100
TOP = 10
DIMENSION = 64
HEADS, HEAD_DIMENSION = 4, 32  # the size of a head of MiniLM
# What the index of the vectors misses, no answer has. Heads only vote: they do with fewer candidates.
_LINKS = {"hnsw_m": 16, "hnsw_ef_construction": 64}
_USUAL = {**_LINKS, "hnsw_ef_search": 800}
_HEAD = {**_LINKS, "hnsw_ef_search": 200}
_CHUNKS = dict(zip(_USUAL, map(int, os.environ.get("RAG_STORES_HNSW", "16,64,800").split(",")), strict=True))
_HNSW = {"chunks": _CHUNKS, "summaries": _CHUNKS, **{f"head{head}": _HEAD for head in range(HEADS)}}
_TOPIC = 3.0  # how often a place counts
_SEARCHED = {"pgrag": ("topics", "facts")}  # spaces that writes search: their indexes are not left for the end


class TopicEmbedding(BaseEmbedding):
    """The sum of a random vector for each word; places count three times.

    The deviation of number i of a word's vector is (1 + i) ** -0.5, since the variance of the vectors of embedding
    models is in few directions too. Vectors that are as wide in all directions are harder to index than real ones: of
    the nearest 125 among 100,000, an index with 16 links a node and 64 candidates finds 64 % of these when it looks at
    200, 95 % of the vectors here, and 98 % of those of all-MiniLM-L6-v2.
    """

    dimension: int = DIMENSION

    def _get_text_embedding(self, text: str) -> list[float]:
        words = text.lower().replace(".", " ").replace("?", " ").split()
        size = self.dimension
        parts = [_vector(word, size) * (_TOPIC if word.endswith("stadt") else 1.0) for word in words]
        total = np.sum(parts, axis=0) if parts else _vector("", size)
        return (total / np.linalg.norm(total)).tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


@lru_cache(1 << 18)
def _vector(word: str, size: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=size) * (1 + np.arange(size)) ** -0.5


def node_of(node_id: str, passage: Passage) -> TextNode:
    """A passage as a node, whose facts are sentences."""
    said = [f"{head.title()} {relation} {tail.title()}." for head, relation, tail in passage.statements]
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{node_id}")}
    return TextNode(text=" ".join(said), id_=node_id, relationships=source)


def _record(extractor: Any, passage: Passage) -> dict[str, Any]:
    """A passage as the recorded extractor of the method reads it."""
    facts = [list(fact) for fact in passage.statements]
    if isinstance(extractor, RecordedStatements):
        relations = [[head, tail, f"{head} {relation} {tail}"] for head, relation, tail in facts]
        return {"entities": [[name] for name in passage.named], "relations": relations}
    return {"entities": list(passage.named), "triples": facts}


def _factory(kind: str, place: str) -> Any:
    if kind == "sqlite":
        from llama_index.vector_stores.lancedb import LanceDBVectorStore

        class Quoted(LanceDBVectorStore):
            """The adapter 0.6.0 quotes values as SQL quotes names, so that none of its deletes works."""

            def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
                self.table.delete(f"{self.doc_id_key} = '{ref_doc_id}'")

            def delete_nodes(self, node_ids: list[str] | None = None, filters: Any = None, **kwargs: Any) -> None:
                self.table.delete("id in ({})".format(", ".join(f"'{each}'" for each in node_ids or [])))

        return lambda space, dimension: Quoted(uri=f"{place}/lance", table_name=space)
    from llama_index.vector_stores.postgres import PGVectorStore

    url = os.environ["PG_DSN"].split("://", 1)[1]

    def pgvector(space: str, dimension: int) -> BasePydanticVectorStore:
        store: BasePydanticVectorStore = PGVectorStore.from_params(
            connection_string=f"postgresql+psycopg2://{url}",
            async_connection_string=f"postgresql+asyncpg://{url}",
            schema_name=place,
            table_name=space,
            embed_dim=dimension,
            hnsw_kwargs={**_HNSW.get(space, _USUAL), "hnsw_dist_method": "vector_cosine_ops"},
        )
        return store

    return pgvector


def _context(kind: str, place: str) -> SQLStorageContext:
    url = (
        f"sqlite:///{place}/index.db" if kind == "sqlite" else f"{os.environ['PG_DSN']}?options=-csearch_path%3D{place}"
    )
    return storage_context(url, vectors=_factory(kind, place))


def _components(method: str, kind: str = "", place: str = "") -> dict[str, Any]:
    summaries = {"summarizer": ExtractiveSummarizer(), "summary_tokens": 60}
    own: dict[str, Callable[[], dict[str, Any]]] = {
        "gemrag": lambda: {"extractor": KeyphraseQuestionExtractor(embed_questions=True), **summaries},
        "graphrag": lambda: {"extractor": RecordedStatements(), "summarizer": ExtractiveSummarizer()},
        "hipporag": lambda: {"extractor": RecordedExtractor()},
        "mrag": lambda: {
            "embed_model": SplitEmbedding(_model(HEADS * HEAD_DIMENSION), num_heads=HEADS),
            "head_stores": _head_stores(kind, place) if place else None,
        },
        "pgrag": lambda: {"extractor": OutlineExtractor()},
        "raptor": lambda: summaries,
        "sprag": lambda: {"extractor": RuleContext()},
    }
    return {"embed_model": _model(), **own[method]()}


def _head_stores(kind: str, place: str) -> list[BasePydanticVectorStore]:
    factory = _factory(kind, place)
    return [factory(f"head{head}", HEAD_DIMENSION) for head in range(HEADS)]


def _written(index: Any, schema: str) -> list[str]:
    """The spaces with a table: one is made for the first row."""
    heads = [f"head{head}" for head in range(HEADS)] if isinstance(index, MRAGIndex) else []
    return [
        space for space in (*index.storage.struct.spaces, *heads) if _is_there("regclass", f"{schema}.data_{space}")
    ]


def _insert(index: Any, total: int, first: int, last: int) -> None:
    held, extractor = passages(total, first, last), index.resources.extractor
    if isinstance(extractor, _RECORDED):
        index.resources.extractor = type(extractor)({i: _record(extractor, passage) for i, passage in held.items()})
    index.insert_nodes([node_of(*each) for each in held.items()])


def build(method: str, kind: str, place: str, total: int) -> dict[str, Any]:
    """Build the index in stores."""
    components = _components(method, kind, place)
    index = METHODS[method]([], storage_context=_context(kind, place), **components)
    times = Times()
    for first in range(0, total, AT_ONCE):
        last = min(total, first + AT_ONCE)
        index.writer.more_follows = last < total  # RAPTOR's tree waits for the last passage
        times.run(partial(_insert, index, total, first, last))
        if kind == "postgresql" and not first:
            for space in _written(index, place):
                _index_rows(place, space)
                if space not in _SEARCHED.get(method, ()):
                    _run(f"DROP INDEX {place}.data_{space}_embedding_idx")
    indexing = Times()
    if kind == "postgresql":
        for space in _written(index, place):
            _index_rows(place, space)  # RAPTOR's summaries come with the last write
            indexing.run(partial(_index_vectors, place, space))  # at once, which takes less than row by row
    return {"build_s": round(sum(times.wall_s), 1), "build_ms_a_passage": round(sum(times.wall_s) / total * 1000, 2),
            "index_of_vectors_s": round(sum(indexing.wall_s), 1), "build_peak_mb": round(peak_mb())}  # fmt: skip


def _index_rows(schema: str, space: str) -> None:
    """Make an index of the column by which the adapter finds rows, and of which it makes none."""
    _run(f"CREATE INDEX IF NOT EXISTS data_{space}_node_id ON {schema}.data_{space} (node_id)")


def _index_vectors(schema: str, space: str) -> None:
    """Make the index of the vectors of a table that is full, under the name that the adapter gives it."""
    hnsw = _HNSW.get(space, _USUAL)
    m, candidates = hnsw["hnsw_m"], hnsw["hnsw_ef_construction"]
    _run(
        "SET maintenance_work_mem = '4GB'",
        f"CREATE INDEX IF NOT EXISTS data_{space}_embedding_idx ON {schema}.data_{space} "
        f"USING hnsw (embedding vector_cosine_ops) WITH (m = {m}, ef_construction = {candidates})",
    )


def _model(dimension: int = DIMENSION) -> TopicEmbedding:
    return TopicEmbedding(model_name="topics", dimension=dimension)


def _asked(method: str, total: int) -> list[str]:
    if method != "mrag":
        return [question.text for question in questions(total, QUESTIONS, 0)]
    texts = [question.text for question in questions(total, 2 * QUESTIONS, 0)]
    return [f"{one} {other}" for one, other in zip(texts[::2], texts[1::2], strict=True)]


def serve(method: str, kind: str, place: str, asked: Sequence[str]) -> dict[str, Any]:
    """Open the index in stores, answer, insert and delete."""
    context, before = _context(kind, place), resident_mb()
    index, open_s, _ = timed(lambda: load_index_from_storage(context, **_components(method, kind, place)))
    return {"open_s": round(open_s, 2), "without_an_index_mb": round(before), **_used(index, asked)}


def embedded(method: str, total: int, asked: Sequence[str]) -> dict[str, Any]:
    """The same in memory, where opening is building."""
    index = METHODS[method]([], **_components(method))
    _insert(index, total, 0, total)
    return {**_used(index, asked), "peak_mb": round(peak_mb())}


def _used(index: Any, asked: Sequence[str]) -> dict[str, Any]:
    retriever, times = index.as_retriever(similarity_top_k=TOP), Times()
    retriever.retrieve(asked[0])  # not counted: caches of the process
    lists = [[each.node.node_id for each in times.run(partial(retriever.retrieve, question))] for question in asked]
    resident = resident_mb()
    extra = passages(1_000, 7, 8)["p0000007"]
    words = node_of("one more", extra).get_content()
    if isinstance(index.resources.extractor, _RECORDED):
        index.resources.extractor.add({words: _record(index.resources.extractor, extra)})
    inserts, deletes = Times(), Times()
    for number in range(5):
        inserts.run(partial(index.insert, Document(text=words, id_=f"one more {number}")))
    for number in range(5):
        deletes.run(partial(index.delete_ref_doc, f"one more {number}", delete_from_docstore=True))
    whole: dict[str, Any] = {}
    if isinstance(index, GraphRAGIndex):
        _, seconds, _ = timed(index.rebuild)
        asking, about = Times(), index.as_retriever(mode="global")
        for question in asked[:10]:
            asking.run(partial(about.retrieve, question))
        whole = {
            "communities_s": round(seconds, 1), "global_median_ms": round(asking.median_ms, 1),
            "communities_peak_mb": round(peak_mb()),
        }  # fmt: skip
    return {
        **whole,
        "resident_mb": round(resident),
        "median_ms": round(times.median_ms, 1),
        "p95_ms": round(float(np.quantile(times.wall_s, 0.95)) * 1000, 1),
        "median_cpu_ms": round(statistics.median(times.cpu_s) * 1000, 1),
        "insert_ms": round(inserts.median_ms, 1),
        "delete_ms": round(deletes.median_ms, 1),
        "lists": lists,
    }


def measurements() -> Iterator[dict[str, Any]]:
    """A method in the stores that are there, and in memory."""
    method = os.environ.get("RAG_STORES_METHOD", "hipporag")
    total = int(os.environ.get("RAG_STORES_PASSAGES", PASSAGES))
    in_memory = min(total, int(os.environ.get("RAG_EMBEDDED_PASSAGES", PASSAGES)))
    asked = _asked(method, total)
    twin = apart(embedded, method, in_memory, _asked(method, in_memory))
    wanted = twin.pop("lists")
    yield {"name": f"{method}: {in_memory} passages in memory", **twin}
    kept = os.environ.get("RAG_STORES_SCHEMA")
    kinds = [*(["postgresql"] if os.environ.get("PG_DSN") else []), *([] if kept else ["sqlite"])]
    for kind in kinds:
        place = kept or f"bench_{uuid4().hex[:12]}"
        if kind == "sqlite":
            place = tempfile.mkdtemp()
        is_there = kind == "postgresql" and _is_there("regnamespace", place)
        if kind == "postgresql" and not is_there:
            _run(f"CREATE SCHEMA {place}")
        try:
            built = {} if is_there else apart(build, method, kind, place, total)
            used = apart(serve, method, kind, place, asked)
            lists = used.pop("lists")
            same = [set(one) == set(other) for one, other in zip(lists, wanted, strict=True)]
            yield {
                "name": f"{method}: {total} passages served from {kind}",
                **built,
                **used,
                "top_10_the_same_passages": round(statistics.mean(same), 3) if total == in_memory else None,
                "embedded_median_ms": twin["median_ms"],
                "embedded_mb": twin["resident_mb"],
                "to_reach": "open < 1 s, < 600 MB, median < 200 ms, p95 < 500 ms, insert and delete < 300 ms, 0.95",
            }
        finally:
            if kind == "sqlite":
                shutil.rmtree(place)
            elif not kept:
                _run(f"DROP SCHEMA {place} CASCADE")


def _is_there(kind: Literal["regclass", "regnamespace"], name: str) -> bool:
    server = make_engine(os.environ["PG_DSN"])
    with reading(server) as connection:
        found = connection.execute(text(f"SELECT to_{kind}(:name)"), {"name": name}).scalar()
    server.dispose()
    return found is not None


def _run(*statements: str) -> None:
    server = make_engine(os.environ["PG_DSN"])
    with writing(server) as connection:
        for statement in statements:
            connection.execute(text(statement))
    server.dispose()
