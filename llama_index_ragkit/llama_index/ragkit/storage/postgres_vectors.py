"""The table of a `PGVectorStore`, read and written without an object for each row.

A question finds some hundred rows and reads their vectors. The adapter's `query` and `get_nodes` make a node of each of
them, from its metadata and the text of its vector, which took longer than the search. Only ids and vectors count here.
Its `add` makes an entity of SQLAlchemy's object-relational mapper of each row, which took most of the time of a build.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, FilterCondition, MetadataFilters
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from numpy.typing import NDArray

from llama_index.ragkit.adapter_internals import is_pgvector, pgvector_session

__all__ = ["PostgresVectors"]

_FEW = 100  # rows; a search for fewer keeps fewer candidates
_HEADER = 4  # bytes before the numbers in pgvector's binary form

Floats = NDArray[np.float32]


class PostgresVectors:
    """Reads and writes the table of a `PGVectorStore` by its engine.

    All methods return None if the store is another one or a class derived from it, is not connected yet, or has a table
    of another form. Then call the store's own methods, which also say what is wrong.
    """

    def __init__(self, store: BasePydanticVectorStore) -> None:
        self._store = store
        self._works = True
        self._scans_on: bool | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the store is one that the other methods know, and has been connected to."""
        return self._connected() is not None

    def search(self, vectors: Floats, top_k: int, filters: MetadataFilters | None = None) -> list[list[str]] | None:
        """Ids of the rows nearest to each vector by cosine, as the index of the store finds them; None too if the user
        of the store has a function for its queries.

        Parameters
        ----------
        filters : which rows are searched, with the operator IN alone; keys and values travel as parameters
        """
        store = self._connected()
        if store is None or getattr(store, "_customize_query_fn", None):
            return None
        settings: dict[str, str] = {}
        if (ef_search := (store.hnsw_kwargs or {}).get("hnsw_ef_search")) is not None:
            settings = {"enable_bitmapscan": "off", "hnsw.ef_search": str(_candidates(int(ef_search), top_k))}
            if filters is not None and self._can_scan_on(store):
                settings["hnsw.iterative_scan"] = "strict_order"  # until enough rows have passed the filter
        values: dict[str, Any] = {"vectors": [str(vector) for vector in vectors.tolist()], "top_k": top_k}
        where = "" if filters is None else f"WHERE {_condition(filters, values)} "
        # Many vectors travel together: a build of PG-RAG looks for the neighbours of thousands. They are cast before
        # the join: where the planner reads the table instead of the index, each row would cast them again.
        statement = (
            f"SELECT number, node_id FROM unnest(CAST(CAST(:vectors AS text[]) AS {_kind(store)}[])) "
            "WITH ORDINALITY AS given (vector, number) CROSS JOIN LATERAL "
            f"(SELECT node_id FROM {{table}} {where}ORDER BY embedding <=> given.vector LIMIT :top_k) AS near"
        )
        rows = self._rows(store, statement, values, settings)
        if rows is None:
            return None
        found: list[list[str]] = [[] for _ in vectors]
        for number, row_id in rows:
            found[number - 1].append(row_id)
        return found

    def fetch(self, ids: Sequence[str]) -> dict[str, Floats] | None:
        """The vectors of rows by id."""
        if (store := self._connected()) is None:
            return None
        statement = "SELECT node_id, vector_send(embedding::vector) FROM {table} WHERE node_id = ANY(:ids)"
        rows = self._rows(store, statement, {"ids": list(ids)})
        if rows is None:
            return None
        return {row_id: np.frombuffer(data, ">f4", offset=_HEADER).astype(np.float32) for row_id, data in rows}

    def add(self, nodes: Sequence[BaseNode], vectors: Floats) -> int | None:
        """Add rows, all or none, as the adapter writes them; how many."""
        if (store := self._connected()) is None:
            return None
        flat = store.flat_metadata
        metadatas = [node_to_metadata_dict(node, remove_text=True, flat_metadata=flat) for node in nodes]
        statement = (
            "INSERT INTO {table} (node_id, text, metadata_, embedding) SELECT node_id, text, "
            f"CAST(metadata AS {'jsonb' if store.use_jsonb else 'json'}), CAST(vector AS {_kind(store)}) FROM unnest("
            "CAST(:ids AS text[]), CAST(:texts AS text[]), CAST(:metadatas AS text[]), CAST(:vectors AS text[])) "
            "AS given (node_id, text, metadata, vector) RETURNING 1"
        )
        rows = self._rows(
            store,
            statement,
            {
                "ids": [node.node_id for node in nodes],
                "texts": [node.get_content(MetadataMode.NONE) for node in nodes],
                "metadatas": [json.dumps(metadata) for metadata in metadatas],
                "vectors": [str(vector) for vector in vectors.tolist()],
            },
        )
        return None if rows is None else len(rows)

    def _can_scan_on(self, store: Any) -> bool:
        """Whether an HNSW index goes on where its candidates do not pass a filter, as from pgvector 0.8 on."""
        if self._scans_on is None:
            rows = self._rows(store, "SELECT extversion FROM pg_extension WHERE extname = 'vector'", {})
            if rows:
                self._scans_on = tuple(map(int, rows[0][0].split(".")[:2])) >= (0, 8)
        return bool(self._scans_on)

    def _connected(self) -> Any:
        store: Any = getattr(self._store, "made", self._store)
        return store if self._works and is_pgvector(store) and store.client is not None else None

    def _rows(
        self, store: Any, statement: str, values: dict[str, Any], settings: dict[str, str] | None = None
    ) -> Sequence[Any] | None:
        """The rows of a statement on the table, in a transaction of its own, under settings."""
        from sqlalchemy import func, select, text
        from sqlalchemy.exc import ProgrammingError

        quoted = store.client.dialect.identifier_preparer.quote
        table = f"{quoted(store.schema_name)}.{quoted(f'data_{store.table_name}')}"
        try:
            with pgvector_session(store) as session, session.begin():
                if settings:
                    session.execute(select(*(func.set_config(*each, True) for each in settings.items())))
                found: Sequence[Any] = session.execute(text(statement.format(table=table)), values).all()
        except Exception as error:  # the adapter will say what is wrong
            self._works = not isinstance(
                error, ProgrammingError
            )  # the table has another form; else the server fails now
            return None
        return found


def _candidates(ef_search: int, top_k: int) -> int:
    """How many candidates the search of an HNSW index keeps for so many rows.

    `ef_search` was chosen for the hundred rows of a question. A write looks for the few neighbours of a new row, where
    as many candidates would take most of its time.
    """
    return min(ef_search, max(_FEW, ef_search * top_k // _FEW))


def _condition(filters: MetadataFilters, values: dict[str, Any]) -> str:
    """The condition that rows pass a filter; its keys and texts are added to the values of the statement."""
    parts = []
    for part in filters.filters:
        if isinstance(part, MetadataFilters):
            parts.append(f"({_condition(part, values)})")
            continue
        key, texts = f"key_{len(values)}", f"texts_{len(values)}"
        values |= {key: part.key, texts: part.value}
        parts.append(f"metadata_ ->> CAST(:{key} AS text) = ANY(CAST(:{texts} AS text[]))")
    return (" OR " if filters.condition == FilterCondition.OR else " AND ").join(parts)


def _kind(store: Any) -> str:
    return "halfvec" if store.use_halfvec else "vector"
