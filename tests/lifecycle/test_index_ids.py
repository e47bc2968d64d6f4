"""The id of an index belongs to one index of a storage context."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from tests.cases import CASES, Case, ask, chunks

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import HashEmbedding

SERVED = {case.name: case.name != "toy" for case in CASES}


def stores(folder: Path) -> dict[str, Any]:
    made: dict[str, MatrixVectorStore] = {}
    context = storage_context(
        f"sqlite:///{folder / 'index.db'}", vectors=lambda space, dimension: made.setdefault(space, MatrixVectorStore())
    )
    return {"storage_context": context}


@pytest.mark.parametrize(
    ("case", "where"),
    [(case, where) for case in CASES for where in ("memory", "stores") if where == "memory" or SERVED[case.name]],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_an_id_that_is_taken_is_refused(case: Case, where: str, tmp_path: Path) -> None:
    options = {"storage_context": StorageContext.from_defaults()} if where == "memory" else stores(tmp_path)
    context = options["storage_context"]
    one, other = case.build(chunks("d", 3), **options), case.build(chunks("e", 2), **options)
    other.set_index_id("other")
    core = VectorStoreIndex([], storage_context=context, embed_model=HashEmbedding())
    before = {struct.index_id for struct in context.index_store.index_structs()}
    for taken in ("other", core.index_id):
        with pytest.raises(ConfigurationError, match=taken):
            one.set_index_id(taken)
    assert {struct.index_id for struct in context.index_store.index_structs()} == before
    one.set_index_id("one")
    one.set_index_id("one")
    assert {struct.index_id for struct in context.index_store.index_structs()} == {"one", "other", core.index_id}
    for name, index in (("one", one), ("other", other)):
        assert ask(case.load(context, index_id=name)) == ask(index)
