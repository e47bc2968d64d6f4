"""Two tenants in one index: under a filter nothing shows, and nothing depends on, what the other one has."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from tests.cases import CASES, Case, told
from tests.page_data import page_data
from tests.serving.places import PLACES, Place
from tests.together.plugins import postprocessor

from llama_index.ragkit import Builder

MARK = "qorvex"  # in every text, name, title and id of the other tenant; letters that no escape changes
PEOPLE = {
    "arcadia": ("Ada Byron", "Hester Lyle", "Jonah Peake"),
    MARK: ("Qorvexa Brandt", "Moriz Qorvexson", "L Qorvexov"),
}
DOINGS = [
    "met the harbour master",
    "bought a lamp from the keeper",
    "wrote letters about the storm",
    "repaired the old mole",
    "kept the tide tables",
    "sold pilchards in the market",
]
QUESTION = "Who met the harbour master, and who bought a lamp from the keeper? What did the Harbour Trust repair?"
METHODS = [case for case in CASES if case.name != "toy"]
MODES: dict[str, list[dict[str, Any]]] = {
    "gemrag": [{}, {"mode": "best_first"}],
    "graphrag": [{"mode": "local"}, {"mode": "global"}, {"mode": "basic"}],
    "pgrag": [{}, {"return_source": True}],
    "raptor": [{"summary_margin": None}, {"mode": "tree_traversal"}],
    "sprag": [{"segment_headers": True}, {"mode": "chunks"}],
}
ASKED = [pytest.param(case, mode, id=f"{case.name} {mode}") for case in METHODS for mode in MODES.get(case.name, [{}])]
# Not from stores, where they would read the whole index for each question.
IN_MEMORY = ({"mode": "best_first"}, {"mode": "tree_traversal"})
# A tree is clustered over everything.
EQUAL = [param for param in ASKED if param.values[0].name != "raptor"]


def texts_of(tenant: str) -> list[TextNode]:
    """Four documents of four chunks; both tenants write of the same things, so that what is derived may join them."""
    nodes = []
    for number in range(16):
        document, who = number // 4, PEOPLE[tenant][(number + number // 4) % 3]
        text = (
            f"{who} {DOINGS[number % 6]} in {tenant.title()}town. The {tenant.title()} Company of {who} and the "
            f"Harbour Trust used lamp {number}. Lyon lies on the Rhone."
        )
        node = TextNode(
            id_=f"{tenant}-node-{number}",
            text=text,
            metadata={"tenant": tenant, "title": f"{tenant.title()} report {document}"},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"{tenant}-document-{document}")},
        )
        node.excluded_embed_metadata_keys = node.excluded_llm_metadata_keys = ["tenant"]
        nodes.append(node)
    return nodes


OURS, THEIRS = texts_of("arcadia"), texts_of(MARK)
BOTH = [node for pair in zip(OURS, THEIRS, strict=True) for node in pair]
RESTRICTIONS: dict[str, dict[str, Any]] = {
    "filters": {"filters": MetadataFilters(filters=[MetadataFilter(key="tenant", value="arcadia")])},
    "node_ids": {"node_ids": [node.node_id for node in OURS]},
    "doc_ids": {"doc_ids": sorted({str(node.ref_doc_id) for node in OURS})},
}


class Indexes:
    """Indexes of both tenants, and of one alone, each made once."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._made: dict[tuple[str, str, bool], Any] = {}

    def of(self, case: Case, way: str, alone: bool = False) -> Any:
        key = (case.name, way, alone)
        if key not in self._made:
            where: dict[str, Any] = {}
            if way == "stores":
                folder = self._folder / f"{case.name} {alone}"
                folder.mkdir()
                where = {"storage_context": Place(PLACES[0], folder, self._stack).open()}
            self._made[key] = case.build(OURS if alone else BOTH, **where)
        return self._made[key]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexes]:
    with ExitStack() as stack:
        yield Indexes(tmp_path_factory.mktemp("tenants"), stack)


def skip_what_is_refused(mode: dict[str, Any], way: str) -> None:
    if way == "stores" and mode in IN_MEMORY:
        pytest.skip("not from stores")


@pytest.mark.parametrize("restriction", RESTRICTIONS.values(), ids=list(RESTRICTIONS))
@pytest.mark.parametrize("way", ["memory", "stores"])
@pytest.mark.parametrize(("case", "mode"), ASKED)
def test_neither_page_nor_answer_nor_reason_shows_what_a_filter_excludes(
    case: Case, mode: dict[str, Any], way: str, restriction: dict[str, Any], indexes: Indexes, tmp_path: Path
) -> None:
    skip_what_is_refused(mode, way)
    index = indexes.of(case, way)
    options = {**mode, **restriction, "similarity_top_k": 5}
    pages = [index.visualize(tmp_path / "asked.html", QUESTION, **options), index.visualize(tmp_path / "again.html")]
    if way == "memory":
        index.as_retriever().retrieve(QUESTION)  # the page of a restricted index does not show the question of another
        pages.append(index.visualize(tmp_path / "index.html", **restriction))
    for page in pages:
        assert MARK not in page.read_text(encoding="utf-8").lower()
    retriever = index.as_retriever(**options)
    found, reasons = retriever.retrieve(QUESTION), retriever.explain(QUESTION)
    assert found
    assert reasons
    assert MARK not in repr(reasons).lower() + " ".join(result.node.model_dump_json() for result in found).lower()


@pytest.mark.parametrize("way", ["memory", "stores"])
@pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)
def test_a_postprocessor_drops_the_chunks_that_a_filter_excludes_and_keeps_those_of_no_index(
    case: Case, way: str, indexes: Indexes
) -> None:
    processor = postprocessor(case, indexes.of(case, way), **RESTRICTIONS["filters"])
    nodes = [*BOTH[:8], TextNode(id_="foreign", text="A chunk of no index.")]
    found = processor.postprocess_nodes([NodeWithScore(node=node, score=0.5) for node in nodes], query_str=QUESTION)
    assert len(found) > 1
    assert "foreign" in [each.node.node_id for each in found]
    assert MARK not in " ".join(each.node.model_dump_json() for each in found).lower()


@pytest.mark.parametrize("way", ["memory", "stores"])
@pytest.mark.parametrize(("case", "mode"), ASKED)
def test_a_postprocessor_drops_what_was_derived_from_chunks_that_a_filter_excludes(
    case: Case, mode: dict[str, Any], way: str, indexes: Indexes
) -> None:
    skip_what_is_refused(mode, way)
    index = indexes.of(case, way)
    given = index.as_retriever(**mode).retrieve(QUESTION)
    found = postprocessor(case, index, **RESTRICTIONS["filters"]).postprocess_nodes(given, query_str=QUESTION)
    assert MARK not in " ".join(each.node.model_dump_json() for each in found).lower()


@pytest.mark.parametrize("way", ["memory", "stores"])
@pytest.mark.parametrize(("case", "mode"), EQUAL)
def test_an_answer_and_its_scores_are_those_of_an_index_of_the_allowed_nodes(
    case: Case, mode: dict[str, Any], way: str, indexes: Indexes
) -> None:
    skip_what_is_refused(mode, way)
    alone = indexes.of(case, way, alone=True).as_retriever(**mode).retrieve(QUESTION)
    for name, restriction in RESTRICTIONS.items():
        found = indexes.of(case, way).as_retriever(**mode, **restriction).retrieve(QUESTION)
        assert told(found) == told(alone), name


@pytest.mark.parametrize(
    "case", [case for case in METHODS if case.name in ("graphrag", "hipporag", "sprag")], ids=lambda case: case.name
)
def test_where_more_pass_than_a_question_reads_words_are_counted_over_these(
    case: Case, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that pass a filter of equality are known to the lexical index, however many they are."""
    monkeypatch.setattr(Builder, "few", 0)
    alone = indexes.of(case, "stores", alone=True).as_retriever().retrieve(QUESTION)
    found = indexes.of(case, "stores").as_retriever(**RESTRICTIONS["filters"]).retrieve(QUESTION)
    assert told(found) == told(alone)


@pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)
def test_the_numbers_on_a_page_are_those_of_an_index_of_the_allowed_nodes(
    case: Case, indexes: Indexes, tmp_path: Path
) -> None:
    """Those of its facts; trees and themes of two indexes may differ, and have numbers of their own."""
    options = {"similarity_top_k": 5, **({"mode": "local"} if case.name == "graphrag" else {})}
    facts = []
    for alone, restriction in ((False, RESTRICTIONS["filters"]), (True, {})):
        index = indexes.of(case, "memory", alone)
        page = index.visualize(tmp_path / f"{alone}.html", QUESTION, **options, **restriction)
        panels = page_data(page)["panels"]
        facts.append({name: n for panel in panels if panel["kind"] == "facts" for name, n in panel["rows"]})
    if case.name == "raptor":
        facts = [{"chunks": each["chunks"]} for each in facts]
    assert facts[0] == facts[1]


def test_a_page_shows_the_answer_to_its_own_question(indexes: Indexes, tmp_path: Path) -> None:
    """Not that of another user, which was asked last."""
    index = indexes.of(next(case for case in CASES if case.name == "mrag"), "memory")
    page = index._page

    def draw(**kwargs: Any) -> Any:
        index.as_retriever().retrieve(f"Where is {MARK}town?")
        return page(**kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_page", draw)
        made = index.visualize(tmp_path / "page.html", QUESTION, **RESTRICTIONS["filters"])
    assert MARK not in made.read_text(encoding="utf-8").lower()
