"""Ids and vectors from the table of a `PGVectorStore`, without making a node of each row.

A question finds some hundred rows and reads their vectors. The adapter's `query` and `get_nodes` make a node of each of
them, from its metadata and the text of its vector, which took longer than the search. Only ids and vectors count here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

__all__ = ["PostgresVectors"]

_HEADER = 4  # bytes before the numbers in pgvector's binary form

Floats = NDArray[np.float32]


class PostgresVectors:
    """Reads the table of a `PGVectorStore` by its engine.

    Both methods return None where the store is another one, is not connected yet, has a function of its own for
    queries, or has a table of another form: then its own methods are to be called, which also tell what is wrong.

    Parameters
    ----------
    store : any vector store
    """

    def __init__(self, store: BasePydanticVectorStore) -> None:
        self._store = store
        self._works = True

    def search(self, vector: Floats, top_k: int) -> list[str] | None:
        """Ids of the nearest rows by cosine, as the index of the store finds them.

        Parameters
        ----------
        vector : shape (dimension,)
        """
        if (store := self._connected()) is None:
            return None
        settings = {"enable_bitmapscan": "off", "hnsw.ef_search": str((store.hnsw_kwargs or {}).get("hnsw_ef_search"))}
        kind = "halfvec" if store.use_halfvec else "vector"
        rows = self._rows(
            store,
            f"SELECT node_id FROM {{table}} ORDER BY embedding <=> CAST(:vector AS {kind}) LIMIT :top_k",
            {"vector": str(vector.tolist()), "top_k": top_k},
            settings if store.hnsw_kwargs else {},
        )
        return None if rows is None else [row_id for (row_id,) in rows]

    def fetch(self, ids: Sequence[str]) -> dict[str, Floats] | None:
        """The vectors of rows by id."""
        if (store := self._connected()) is None:
            return None
        statement = "SELECT node_id, vector_send(embedding::vector) FROM {table} WHERE node_id = ANY(:ids)"
        rows = self._rows(store, statement, {"ids": list(ids)})
        if rows is None:
            return None
        return {row_id: np.frombuffer(data, ">f4", offset=_HEADER).astype(np.float32) for row_id, data in rows}

    def _connected(self) -> Any:
        store: Any = getattr(self._store, "made", self._store)
        if not self._works or store is None or store.class_name() != "PGVectorStore" or store.client is None:
            return None
        return None if getattr(store, "_customize_query_fn", None) else store

    def _rows(
        self, store: Any, statement: str, values: dict[str, Any], settings: dict[str, str] | None = None
    ) -> Sequence[Any] | None:
        """The rows of a statement on the table, under settings of its transaction."""
        from sqlalchemy import func, select, text
        from sqlalchemy.exc import ProgrammingError

        quoted = store.client.dialect.identifier_preparer.quote
        table = f"{quoted(store.schema_name)}.{quoted(f'data_{store.table_name}')}"
        try:
            with store.client.connect() as connection:
                if settings:
                    connection.execute(select(*(func.set_config(*each, True) for each in settings.items())))
                found: Sequence[Any] = connection.execute(text(statement.format(table=table)), values).all()
        except Exception as error:  # the adapter will say what is wrong
            self._works = not isinstance(
                error, ProgrammingError
            )  # the table has another form; else the server fails now
            return None
        return found
