"""Whatever stands in filters, ids and names: answers equal those in memory, or are a clear error, and nothing else is
done to the database."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core import Document
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from sqlalchemy import text
from tests.cases import TEXTS, Case, retriever
from tests.serving.conftest import SERVED
from tests.serving.places import PLACES, Kind, Place

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.sql import make_engine, reading

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"), pytest.mark.pairs]

QUESTION = "Where does the Rhone meet the Saone?"
BREAKS_OUT = "A'; CREATE TABLE public.broke_out(a int); COMMIT; SELECT 1 AS distance WHERE 'a'='a"
HOSTILE = [
    BREAKS_OUT, "O'Brien", "a''b", 'a"b', 'x" or id != "', "a\\", "\\' OR 1=1 --", "/* */", "; DROP TABLE x",
    "%", "%s", "%(a)s", ":a", "::text", "{}", "{0}", "{table}", "$1", "?", "`", "a\nb", "a\x00b", "\ud800", "é\u200bא",
    "x" * 10_000, "'" * 10_000, "", " ", "None", "null", "1", "1e5", "nan", "a.b", "a[0]", "metadata_", "ragkit_space",
]  # fmt: skip
STORABLE = [each for each in HOSTILE if "\x00" not in each and "\ud800" not in each]
NAMES = [BREAKS_OUT, "O'Brien", 'a"b', "a\\", "%s", ":a", "{table}", "1e5"]
texts = st.sampled_from(HOSTILE) | st.text(max_size=40)
values = texts | st.integers(-2, 2) | st.lists(texts, max_size=3)


def documents() -> list[Document]:
    """The hostile texts are metadata, keys of metadata and ids of documents, beside plain ones."""
    odd = [
        Document(text=f"Volume {i}. {TEXTS[i % len(TEXTS)]}", id_=f"{value}/{i}", metadata={"tenant": value, value: i})
        for i, value in enumerate(each for each in STORABLE if len(each) < 100 and each)
    ]
    plain = [Document(text=each, id_=f"D{i}", metadata={"tenant": "AB"[i % 2]}) for i, each in enumerate(TEXTS)]
    return [*odd, *plain]


@dataclass
class Pair:
    """An index that is served from stores, its twin in memory, and what the database holds."""

    served: Any
    twin: Any
    place: Place

    def held(self) -> dict[str, int]:
        """How many rows each table has."""
        engine = self.place.engine()
        sqlite = engine.dialect.name == "sqlite"
        names = (
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            if sqlite
            else "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables WHERE "
            f"schemaname = current_schema() OR tablename LIKE '%{self.place.tag}%' OR tablename LIKE 'broke_out%'"
        )
        with reading(engine) as connection:
            tables = list(connection.execute(text(names)).scalars())
            return {t: connection.execute(text(f"SELECT count(*) FROM {t}")).scalar_one() for t in tables}


ENGINES = [kind for kind in PLACES if kind.name != "sqlite-milvus"]  # its client leaves tasks of closed event loops


@pytest.fixture(scope="module", params=[pytest.param((c, k), id=f"{c.name}-{k.name}") for k in ENGINES for c in SERVED])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    case, kind = request.param
    with ExitStack() as stack:
        place = Place(kind, tmp_path_factory.mktemp("hostile"), stack)
        given_documents = documents()
        served = case.from_documents(given_documents, storage_context=place.open())
        yield Pair(served, case.from_documents(given_documents), place)


def answer(index: Any, how: str, **options: Any) -> list[tuple[str, float]] | str:
    """The answer, or the kind of the error."""
    try:
        asked = retriever(index, similarity_top_k=5, **options)
        found = asyncio.run(asked.aretrieve(QUESTION)) if how == "async" else asked.retrieve(QUESTION)
    except RagKitError as error:
        return type(error).__name__
    return [(each.node.node_id, round(each.score, 3)) for each in found]


def one(key: str, value: Any, operator: FilterOperator) -> MetadataFilter:
    if isinstance(value, list) != (operator in (FilterOperator.IN, FilterOperator.NIN)):
        value = [value] if not isinstance(value, list) else "".join(map(str, value))
    return MetadataFilter(key=key, value=value, operator=operator)


OPERATORS = st.sampled_from([FilterOperator.EQ, FilterOperator.NE, FilterOperator.IN, FilterOperator.NIN])
single = st.builds(one, st.just("tenant") | texts, values, OPERATORS)
filters = st.builds(
    lambda parts, condition: MetadataFilters(filters=parts, condition=condition),
    st.lists(single, min_size=1, max_size=3),
    st.sampled_from(list(FilterCondition)),
)
ids = st.lists(texts | st.sampled_from(["D1", "D2", "O'Brien/1"]), max_size=4)
options = st.one_of(
    st.builds(lambda given: {"filters": given}, filters),
    st.builds(lambda given: {"doc_ids": given}, ids),
    st.builds(lambda given: {"node_ids": given}, ids),
)


def test_odd_filters_and_ids_answer_as_in_memory_and_leave_the_database_as_it_was(pair: Pair) -> None:
    before, plain = pair.held(), answer(pair.served, "sync")

    @settings(max_examples=12, database=None, suppress_health_check=list(HealthCheck))
    @given(options, st.sampled_from(["sync", "async"]))
    def ask(restriction: dict[str, Any], how: str) -> None:
        ours, theirs = answer(pair.served, how, **restriction), answer(pair.twin, "sync", **restriction)
        if isinstance(theirs, str) or isinstance(ours, str):
            assert ours == theirs
        else:
            assert {node for node, _ in ours} == {node for node, _ in theirs}

    for hostile in HOSTILE[ENGINES.index(pair.place.kind) :: len(ENGINES)]:  # every method has all of them
        restriction = {"filters": MetadataFilters(filters=[MetadataFilter(key="tenant", value=hostile)])}
        ours, theirs = answer(pair.served, "sync", **restriction), answer(pair.twin, "sync", **restriction)
        assert {node for node, _ in ours} == {node for node, _ in theirs}, hostile
    ask()
    assert answer(pair.served, "sync") == plain
    assert pair.held() == before


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("hostile", NAMES, ids=lambda text: repr(text[:12]))
def test_odd_names_of_tenants_and_indexes_and_files_are_names_and_nothing_more(
    hostile: str, kind: Kind, tmp_path: Any
) -> None:
    case: Case = next(each for each in SERVED if each.name == "raptor")
    with ExitStack() as stack:
        place = Place(kind, tmp_path, stack)
        for tenant in ("plain", hostile):
            index = case.cls([], storage_context=place.open(tenant), **case.options())
            index.set_index_id(hostile)
            index.insert(
                Document(text=f"Lyon lies on the Rhone and the Saone, said {len(tenant)}.", id_=f"{hostile}.pdf")
            )
            index.insert(Document(text="Bread is baked at night.", id_=f"{hostile}2.pdf"))
        for tenant in ("plain", hostile):
            again = case.load(place.open(tenant), index_id=hostile)
            found = retriever(again, similarity_top_k=5, doc_ids=[f"{hostile}.pdf"]).retrieve(QUESTION)
            assert [each.text for each in found] == [f"Lyon lies on the Rhone and the Saone, said {len(tenant)}."]
            again.delete_ref_doc(f"{hostile}.pdf", delete_from_docstore=True)
            assert set(again.ref_doc_info) == {f"{hostile}2.pdf"}
            assert place.open(tenant).drop() > 0


@pytest.mark.parametrize("hostile", ["x" * 10_000, BREAKS_OUT, "%s{}:a", "O'Brien"])
def test_a_file_of_any_name_is_one_or_a_clear_error(hostile: str, tmp_path: Any) -> None:
    try:
        engine = make_engine(f"sqlite:///{tmp_path}/{hostile}.db")
        with reading(engine) as connection:
            connection.execute(text("SELECT 1"))
    except RagKitError:
        return
    engine.dispose()
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".db")] == [f"{hostile}.db"]
