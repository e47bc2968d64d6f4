"""Small parts that several methods share."""

from dataclasses import asdict, dataclass

import numpy as np
import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from tests.cases import CASES, chunks

from llama_index.ragkit.errors import ConfigurationError, EmbeddingError
from llama_index.ragkit.extras import need
from llama_index.ragkit.index.keywords import choose_parameters
from llama_index.ragkit.index.results import LOOKED_AT_PER_RESULT, deepened, take_nodes
from llama_index.ragkit.llm import embeddings as embedding
from llama_index.ragkit.masks import FEW, RecentMasks, shown
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.nodes import title_of
from llama_index.ragkit.testing import HashEmbedding


def test_a_ranking_goes_deeper_only_when_it_is_used_up() -> None:
    ranking = [(str(i), -float(i)) for i in range(20)]
    asked = []

    def rank(depth: int) -> list[tuple[str, float]]:
        asked.append(depth)
        return ranking[:depth]

    entries = deepened(ranking[:3], rank, 3)
    assert [next(entries) for _ in range(3)] == ranking[:3]
    assert asked == []
    assert list(entries) == ranking[3:]
    assert asked == [12, 48]


@pytest.mark.parametrize("depth", [0, -1])
def test_a_ranking_of_no_depth_is_refused_before_it_is_read(depth: int) -> None:
    with pytest.raises(ConfigurationError, match=f"depth must be a whole number of at least 1, not {depth}"):
        deepened([], lambda depth: [], depth)


@pytest.mark.parametrize("token_budget", [None, 1000])
def test_an_answer_that_is_full_asks_for_no_deeper_search(token_budget: int | None) -> None:
    asked = []

    def rank(depth: int) -> list[tuple[str, float]]:
        asked.append(depth)
        return [(str(i), -float(i)) for i in range(depth)]

    def fetch(node_id: str):
        yield from ()
        return TextNode(id_=node_id, text="word")

    ranking = deepened(rank(3), rank, 3)
    found = run_steps(take_nodes(ranking, fetch, top_k=3, token_budget=token_budget))
    assert [result.node.node_id for result in found] == ["0", "1", "2"]
    assert asked == [3]


def test_a_budget_looks_at_four_nodes_for_each_that_is_wanted() -> None:
    looked_at = []

    def fetch(node_id: str):
        looked_at.append(node_id)
        return TextNode(id_=node_id, text="many words " * 20)
        yield

    ranking = [(str(i), 1.0) for i in range(50)]
    assert run_steps(take_nodes(ranking, fetch, top_k=3, token_budget=5)) == []
    assert len(looked_at) == 3 * LOOKED_AT_PER_RESULT


def test_texts_are_embedded_in_blocks_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text {i}" for i in range(10)]
    whole = run_steps(embedding.embed_texts(HashEmbedding(), texts))
    monkeypatch.setattr(embedding, "_BLOCK", 3)
    assert np.array_equal(run_steps(embedding.embed_texts(HashEmbedding(), texts)), whole)

    class Growing(HashEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return [1.0] * (2 if text < "text 5" else 3)

    with pytest.raises(EmbeddingError, match=r"lengths \[2, 3\]"):
        run_steps(embedding.embed_texts(Growing(), [f"text {i}" for i in (1, 2, 3, 6, 7, 8)]))


def test_a_derived_thing_is_shown_if_all_its_sources_are_and_may_be() -> None:
    allowed = np.array([True, True, False])
    sources = [np.array([0, 1]), np.array([1, 2]), np.array([0, -1]), np.array([], np.intp)]
    assert shown(sources, None) is None
    mask = shown(sources, allowed)
    assert mask is not None
    assert mask.tolist() == [True, False, False, True]


def test_a_title_is_a_text_of_the_metadata() -> None:
    node = TextNode(text="x", metadata={"title": " A lamp ", "year": 1852})
    assert [title_of(node, key) for key in ("title", "year", "name", None)] == ["A lamp", "", "", ""]


def test_what_is_missing_says_how_to_install_it() -> None:
    assert need("json", "it", "x[y]").loads("1") == 1
    with pytest.raises(ImportError, match=r'to_x\(\) needs no_such_module: pip install "a\[b\]"'):
        need("no_such_module", "to_x()", "a[b]")


@dataclass(frozen=True)
class Parameters:
    k: int = 1
    group_by: str | None = "document"


@dataclass(frozen=True)
class Published:
    rotate: bool = True
    poles: int = 1


@dataclass(frozen=True)
class WithPublished(Parameters):
    published: Published = Published()


def test_parameters_of_numpy_are_stored_as_those_of_python() -> None:
    chosen = choose_parameters(Parameters, {}, {"k": np.int64(3)}, fixed=True)
    assert type(chosen.k) is int
    with pytest.raises(ConfigurationError, match="built with k=3, not 4"):
        choose_parameters(Parameters, asdict(chosen), {"k": 4}, fixed=True)
    assert choose_parameters(Parameters, asdict(chosen), {"k": 4}, fixed=False).k == 4


def test_options_of_one_keyword_are_read_as_stored_and_as_earlier_versions_stored_them() -> None:
    chosen = WithPublished(published=Published(rotate=False))
    for stored in (asdict(chosen), {"rotate": False}, {"rotate": True, **asdict(chosen)}):
        assert choose_parameters(WithPublished, stored, {}, fixed=True) == chosen
    other = {"published": Published(poles=2)}
    assert choose_parameters(WithPublished, {"rotate": False}, other, fixed=False).published == Published(poles=2)
    with pytest.raises(ConfigurationError, match="built with published="):
        choose_parameters(WithPublished, asdict(chosen), other, fixed=True)


def test_none_is_a_choice_only_where_a_parameter_can_be_none() -> None:
    stored = {"k": 3, "group_by": "year", "of an older version": 1}
    assert choose_parameters(Parameters, stored, {"k": None}, fixed=True) == Parameters(3, "year")
    assert choose_parameters(Parameters, stored, {"group_by": None}, fixed=False) == Parameters(3, None)
    assert choose_parameters(Parameters, {}, {"other": 1}, fixed=True) == Parameters()


def test_a_retriever_asks_its_own_model_or_that_of_the_index() -> None:
    case = next(case for case in CASES if case.name == "pgrag")
    own, shared = MockLLM(max_tokens=1), MockLLM(max_tokens=2)
    index = case.build(chunks("d", 2), llm=shared)
    retriever = index.as_retriever()
    assert retriever.llm is shared
    assert index.as_retriever(llm=own).llm is own
    with pytest.raises(ConfigurationError, match="has no prompt 'nothing'"):
        index.as_retriever(prompts={"nothing": retriever.prompt("key_points")})


def test_masks_in_use_are_kept_four_and_more_if_they_divide_the_rows_among_them() -> None:
    made: list[int] = []

    def make(mask: np.ndarray) -> list[int]:
        made.append(int(mask.nonzero()[0][0]))
        return made[-1:]

    tenants = [np.arange(20) % 10 == i for i in range(10)]
    recent = RecentMasks[list[int]]()
    assert [recent.of(mask, make)[0] for mask in [*tenants, *tenants]] == [*range(10), *range(10)]
    assert made == list(range(10))

    few = RecentMasks[list[int]](FEW)  # where the size does not depend on the mask, only the last four stay
    for mask in [*tenants, *tenants[-4:]]:
        few.of(mask, make)
    assert made[10:] == list(range(10))

    almost_all = [np.arange(20) != i for i in range(6)]
    for mask in [*almost_all, almost_all[2], almost_all[0]]:  # the third is in use, the first is not
        recent.of(mask, make)
    assert made[20:] == [1, 0, 0, 0, 0, 0, 1]
