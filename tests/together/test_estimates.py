"""What a build will embed, told before it is paid, and what it does pay."""

from typing import Any

import pytest
from benchmarks import windows
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, TextNode
from tests.cases import CASES, Case

from llama_index.gemrag import KeyphraseQuestionExtractor
from llama_index.graphrag import CosineResolver, LLMResolver
from llama_index.ragkit import Estimate, ExtractiveSummarizer
from llama_index.ragkit.index.dry_run import HashedWords, sample_of
from llama_index.ragkit.text.tokens import count_tokens

pytestmark = pytest.mark.pairs

SUBJECTS = ("Ada Byron", "Charles Babbage", "the Royal Society", "Tern Rock", "Captain Hale", "the harbour of Oban")
DEEDS = ("kept the lamp", "drew the engine", "wrote to the keeper", "paid for the tower", "repaired the bell")
SPLIT = [SentenceSplitter(chunk_size=60, chunk_overlap=0)]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def documents(count: int = 12) -> list[Document]:
    """Documents of some sentences each, which share names but not sentences."""
    texts = [
        " ".join(
            f"{SUBJECTS[(i + j) % 6]} {DEEDS[(i * j) % 5]} with {SUBJECTS[(i + 2 * j + 1) % 6]} in {1800 + 7 * i + j}."
            for j in range(8)
        )
        for i in range(count)
    ]
    return [Document(text=text, id_=f"d{i}") for i, text in enumerate(texts)]


def estimate(case: Case, texts: list[Document], **kwargs: Any) -> Estimate:
    components = {k: v for k, v in case.components().items() if k in ("extractor", "summarizer")}
    return case.cls.estimate(texts, transformations=SPLIT, **{**components, **kwargs})


def embedded(case: Case, texts: list[Document]) -> list[str]:
    parameters = vars(case.cls.config_cls())
    components = {name: value for name, value in case.options().items() if name not in parameters}  # the defaults
    index = case.cls.from_documents(texts, transformations=SPLIT, **components)
    found: list[str] = index.embed_model.texts
    return found


@each_case
def test_an_estimate_is_what_is_then_embedded(case: Case) -> None:
    said, texts = estimate(case, documents()), embedded(case, documents())
    writes_summaries = "summarizer" in case.components()
    assert said.calls == 0
    if writes_summaries and case.name != "graphrag":
        assert len(texts) / 2 <= said.embedded_texts <= 2 * len(texts)
    else:
        assert said.embedded_texts == len(texts)
        assert said.embedded_tokens == sum(map(count_tokens, texts))
    assert said.embedding_is_exact == (not writes_summaries)


@each_case
def test_of_many_chunks_the_sentences_that_retrieve_them_count_too(case: Case) -> None:
    many = documents(60)
    said, texts = estimate(case, many), embedded(case, many)
    chunks = len(SPLIT[0].get_nodes_from_documents(many))
    assert chunks >= 160
    if "summarizer" in case.components() and case.name != "graphrag":
        assert len(texts) / 2 <= said.embedded_texts <= 2 * len(texts)
    else:
        assert said.embedded_texts == len(texts) > chunks + 40
        assert said.embedded_tokens == sum(map(count_tokens, texts))
    few = estimate(case, many, sample=30)
    assert 0.8 <= few.embedded_texts / said.embedded_texts <= 1.25


@pytest.mark.parametrize("case", [case for case in CASES if case.name != "toy"], ids=lambda case: case.name)
def test_with_an_llm_an_estimate_is_what_is_then_asked_and_embedded(case: Case) -> None:
    llm, model, texts = windows.WindowLLM(window=128_000), case.embed_model(), windows.documents(2, 40)
    said = case.cls.estimate(texts, transformations=SPLIT, llm=llm)
    given = {} if case.name == "mrag" else {"llm": llm}
    case.cls.from_documents(texts, transformations=SPLIT, embed_model=model, **given)
    assert len(llm.asked) <= said.calls + said.more_calls
    if case.name in ("gemrag", "pgrag", "raptor"):  # what the model writes is embedded
        assert len(model.texts) / 2 <= said.embedded_texts <= 2 * len(model.texts)
    else:
        assert said.embedded_texts == len(model.texts)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("graphrag", {"entity_vectors": True}),
        ("graphrag", {"entity_vectors": True, "resolver": CosineResolver()}),
        ("hipporag", {"phrase_vectors": True}),
    ],
    ids=["names", "names and a resolver", "phrases"],
)
def test_parameters_that_decide_what_is_embedded_count(name: str, parameters: dict[str, Any]) -> None:
    case = next(case for case in CASES if case.name == name)
    said = estimate(case, documents(), **parameters)
    index = case.cls.from_documents(documents(), transformations=SPLIT, **case.options(**parameters))
    texts = index.embed_model.texts
    assert said.embedded_texts == len(texts) > estimate(case, documents()).embedded_texts
    assert said.embedded_tokens == sum(map(count_tokens, texts))


@each_case
def test_a_parameter_that_a_method_does_not_have_is_refused(case: Case) -> None:
    for wrong in ({"colour": 1}, {"num_workers": 2}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            estimate(case, documents(1), **wrong)


def test_a_resolver_with_a_model_is_not_asked_by_an_estimate() -> None:
    case = next(case for case in CASES if case.name == "graphrag")
    with_llm = estimate(case, documents(), entity_vectors=True, resolver=LLMResolver(-1.0))
    assert with_llm.embedded_texts == estimate(case, documents(), entity_vectors=True).embedded_texts


@each_case
def test_a_sample_is_enough_for_the_order_of_magnitude(case: Case) -> None:
    texts = documents(40)
    whole, sampled = estimate(case, texts), estimate(case, texts, sample=60)
    assert sampled.embedded_texts >= whole.embedded_texts * 0.7
    assert sampled.embedded_texts <= whole.embedded_texts * 3
    assert case.name == "mrag" or not sampled.embedding_is_exact


@pytest.mark.parametrize("case", [case for case in CASES if case.cls.rule_extractor], ids=lambda case: case.name)
def test_with_an_llm_the_rules_stand_in_and_no_model_is_asked(case: Case) -> None:
    class Refuses(MockLLM):
        def complete(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("an estimate asks nothing")

    said = case.cls.estimate(documents(), transformations=SPLIT, llm=Refuses())
    assert said.calls > 0
    assert said.embedded_texts > len(documents())
    assert not said.embedding_is_exact


@each_case
def test_nothing_costs_nothing(case: Case) -> None:
    assert estimate(case, []).embedded_texts == 0


def test_estimates_add_up() -> None:
    one = Estimate(1, 2, 3, 4, 5)
    assert sum([one, one], Estimate()) == Estimate(2, 4, 6, 8, 10)
    assert not (one + Estimate(embedding_is_exact=False)).embedding_is_exact


def test_a_sample_is_of_documents_spread_over_all() -> None:
    nodes = [TextNode(text=f"{i}", id_=f"n{i}") for i in range(100)]
    assert sample_of(nodes, 200) == nodes
    assert [node.node_id for node in sample_of(nodes, 4)] == ["n0", "n25", "n50", "n75"]


@pytest.mark.parametrize("name", ["raptor", "gemrag"])
def test_without_an_llm_chunks_and_summaries_are_embedded_and_nothing_else(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    parts: dict[str, Any] = {"gemrag": {"extractor": KeyphraseQuestionExtractor()}}.get(name, {})
    parts["summarizer"] = ExtractiveSummarizer()
    model = HashedWords(model_name="that of estimates, so that clusters are the same")
    index = case.cls.from_documents(documents(), transformations=SPLIT, embed_model=model, **parts)
    written = len(index.state.written)
    assert written
    assert model.texts == len(index.docstore.docs) + written + 1  # and what tells models apart
    said = case.cls.estimate(documents(), transformations=SPLIT, **parts)
    assert (said.embedded_texts, said.embedded_tokens) == (model.texts, model.tokens)


def test_bars_say_what_is_embedded(capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in CASES if case.name == "hipporag")
    vectors = {"phrase_vectors": True, "fact_vectors": True}
    case.build([TextNode(text="Ada Byron met Charles Babbage in London.")], show_progress=True, **vectors)
    shown = capsys.readouterr().err
    assert [name for name in ("chunks", "phrases", "facts") if f"Embedding {name}: 100%" in shown] == [
        "chunks", "phrases", "facts",
    ]  # fmt: skip
    case.build([TextNode(text="Ada Byron met Charles Babbage in London.")], **vectors)
    assert "Embedding" not in capsys.readouterr().err


@pytest.mark.parametrize("show_progress", [False, True])
def test_a_visible_bar_changes_no_vector(show_progress: bool) -> None:
    case = next(case for case in CASES if case.name == "mrag")
    nodes = [TextNode(text=f"word{i} lamp", id_=f"n{i}") for i in range(200)]
    rows = case.build(nodes, show_progress=show_progress).storage.snapshot()
    model = case.embed_model()
    wanted = [model.vector(node.text) for node in nodes]
    assert abs(rows.vectors_of([node.node_id for node in nodes]) - wanted).max() < 1e-6


def test_a_write_says_what_it_will_do(caplog: pytest.LogCaptureFixture) -> None:
    case = next(case for case in CASES if case.name == "hipporag")
    with caplog.at_level("INFO", logger="llama_index.ragkit"):
        index = case.from_documents(documents(2))
        index.update_ref_doc(Document(text="Ada Byron wrote a letter.", id_="d0"))
    first, second = (r.getMessage() for r in caplog.records if r.name.endswith("index.preparation"))
    read = "to read with NounPhraseExtractor, 0 unchanged"
    assert first == f"hipporag: 2 chunks given, 2 to embed with hash, 2 {read}, 0 to remove."
    assert second == f"hipporag: 1 chunk given, 1 to embed with hash, 1 {read}, 1 to remove."
