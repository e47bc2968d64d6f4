"""A reply that cannot be used costs what it was asked for, and nothing else: no build, and no other part of a node."""

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from tests.cases import CASES, Case, chunks
from tests.llm_server import Asked, LLMServer, Reply
from tests.together.plugins import ONCE, chunk_retriever, with_llm
from tests.together.server import client

from llama_index.graphrag import EntityExtractor, GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, OpenIEExtractor
from llama_index.pgrag import MindMapExtractor, PGRAGIndex
from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError
from llama_index.ragkit.extraction.failure_watch import FailureWatch
from llama_index.ragkit.llm.json.shapes import ITEMS, read_reply
from llama_index.ragkit.llm.json.shapes import Reply as ReplyModel
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.sprag import AutoContext, SpRAGIndex

ASKING = [case for case in CASES if with_llm(case)]
each_asking = pytest.mark.parametrize("case", ASKING, ids=lambda case: case.name)
READING = [case for case in ASKING if "extractor" in with_llm(case)]
each_reading = pytest.mark.parametrize("case", READING, ids=lambda case: case.name)

FACT = "Ada Byron met Charles Babbage in London."
GOOD = json.dumps(
    {
        "named_entities": ["Ada Byron"],
        "triples": [],
        "entities": [{"name": "Ada Byron"}],
        "questions": [f"Whom did {FACT}"],
        "topic": FACT,
        "statements": [FACT],
        "mind_map": {"met": FACT},
        "title": FACT,
        "summary": FACT,
    }
)
UNREADABLE = "I would rather not."


def of_documents(count: int) -> list[TextNode]:
    """A node a document, with equal texts but for a number."""
    return [
        TextNode(
            id_=f"n{i}",
            text=f"{FACT} No {i}.",
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{i}")},
        )
        for i in range(count)
    ]


@each_reading
def test_unreadable_replies_in_a_row_cost_their_nodes_alone(case: Case) -> None:
    def script(prompt: str) -> str:
        return UNREADABLE if any(f"No {i}." in prompt for i in range(2, 8)) else GOOD

    index = case.cls(
        nodes=of_documents(12), llm=ScriptedLLM(script), embed_model=case.embed_model(), num_workers=1, **with_llm(case)
    )
    failed = [failure for failure in index.failures() if failure.node_id.startswith("n") or failure.step == "context"]
    assert len(failed) == 6
    assert index.as_retriever(similarity_top_k=3).retrieve("Whom did Ada Byron meet?")


@each_asking
def test_a_model_that_nothing_can_be_read_of_leaves_an_index_and_an_error_in_the_log(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    index = case.cls(nodes=chunks("d", 30), llm=ScriptedLLM(""), embed_model=case.embed_model(), **with_llm(case))
    assert index.failures()
    assert len(index.as_retriever(similarity_top_k=3).retrieve("Which engine used punched cards?")) > 0
    if case in READING:
        (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
        assert "with the model 'scripted'" in told
        assert "The reply" in told


# -- in place of a model ------------------------------------------------------------------------------


TWINS = [
    case for case in READING if case.cls.rule_extractor is not None and case.name != "sprag"
]  # test_written_by_rules.py


def marked(index: Any) -> dict[str, str]:
    """The chunks that explanations say were read by rules, and by which."""
    explained = chunk_retriever(index, similarity_top_k=9).explain("Whom did Ada Byron meet?")
    assert {"n0", "n1", "n2"} <= {each.node_id for each in explained}
    return {each.node_id: each.by for each in explained if each.by and each.node_id.startswith("n")}


def records(index: Any) -> dict[str, Any]:
    return {i: entry.record for i, entry in run_steps(index.storage.manifest.entries()).items()}


@pytest.mark.parametrize("case", TWINS, ids=lambda case: case.name)
def test_nodes_at_which_the_model_fails_are_read_by_rules_until_it_reads_them(
    case: Case, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    broken = [True]
    llm = ScriptedLLM(lambda prompt: UNREADABLE if broken[0] and "No 1." in prompt else GOOD)
    given: dict[str, Any] = {"llm": llm, "embed_model": case.embed_model(), **with_llm(case)}
    index = case.cls(nodes=of_documents(3), **given)
    rules = case.cls(nodes=of_documents(3), **{**given, "extractor": case.cls.rule_extractor()})
    twin = case.cls.rule_extractor.__name__
    assert records(index)["n1"] == records(rules)["n1"]
    assert records(index)["n0"] != records(rules)["n0"]
    assert [failure.by for failure in index.failures() if failure.node_id == "n1"] == [twin]
    page = index.visualize(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Done by rules" in page
    assert twin in page
    assert marked(index) == {"n1": twin}
    (told,) = [r.getMessage() for r in caplog.records if "stood in" in r.getMessage()]
    assert f" nodes: {twin} for " in told
    assert "failed at" not in caplog.text  # is said once
    broken[0] = False
    index.retry_failed()
    assert "n1" not in {failure.node_id for failure in index.failures()}
    assert marked(index) == {}
    assert records(index)["n1"].keys() == records(index)["n0"].keys()
    assert records(index)["n1"] != records(rules)["n1"]


@pytest.mark.parametrize("case", TWINS, ids=lambda case: case.name)
def test_explanations_of_an_index_in_stores_tell_what_was_read_by_rules(case: Case, tmp_path: Path) -> None:
    llm = ScriptedLLM(lambda prompt: UNREADABLE if "No 1." in prompt else GOOD)
    spaces: dict[str, MatrixVectorStore] = {}
    context = storage_context(
        f"sqlite:///{tmp_path / 'index.db'}", vectors=lambda space, _: spaces.setdefault(space, MatrixVectorStore())
    )
    given: dict[str, Any] = {"llm": llm, "embed_model": case.embed_model(), **with_llm(case)}
    index = case.cls(nodes=of_documents(3), storage_context=context, **given)
    assert marked(index) == {"n1": case.cls.rule_extractor.__name__}


def test_a_path_is_marked_where_no_model_read_it_from_any_of_its_sources() -> None:
    llm = ScriptedLLM(lambda prompt: UNREADABLE if "No 1." in prompt else GOOD)
    index = PGRAGIndex(of_documents(3), llm=llm, embed_model=HashEmbedding(), extractor=MindMapExtractor(retry=ONCE))
    explained = index.as_retriever().explain("Whom did Ada Byron meet?")
    assert {each.by for each in explained if each.sources == ["n1"]} == {"OutlineExtractor"}
    assert {each.by for each in explained if each.sources != ["n1"]} == {""}


def test_facts_are_marked_where_no_model_read_them_from_any_passage() -> None:
    read = {"named_entities": ["Ada Byron"], "triples": [["Ada Byron", "met", "Charles Babbage"]]}
    llm = ScriptedLLM(lambda prompt: UNREADABLE if "No 1." in prompt else json.dumps(read))
    index = hippo(llm, of_documents(3))
    explained = {each.node_id: each for each in index.as_retriever().explain("Whom did Ada Byron meet?")}
    assert explained["n0"].facts == [("ada byron", "met", "charles babbage")]
    assert explained["n0"].facts_by == {}
    by_rules = set(explained["n1"].facts) - set(explained["n0"].facts)
    assert explained["n1"].facts_by == dict.fromkeys(by_rules, "NounPhraseExtractor")
    assert by_rules


@pytest.mark.parametrize("case", TWINS, ids=lambda case: case.name)
def test_without_a_fallback_such_nodes_have_no_record(case: Case) -> None:
    llm = ScriptedLLM(lambda prompt: UNREADABLE if "No 1." in prompt else GOOD)
    options: dict[str, Any] = {"llm": llm, "embed_model": case.embed_model(), **with_llm(case)}
    index = case.cls(nodes=of_documents(3), fallback=None, **options)
    assert records(index)["n1"] is None
    assert [failure.by for failure in index.failures() if failure.node_id == "n1"] == [""]
    with pytest.raises(ConfigurationError, match="fallback must be one of 'rules', not 'llm'"):
        case.cls(nodes=of_documents(1), fallback="llm", **options)


# -- the server -----------------------------------------------------------------------------------------


def hippo(llm: Any, nodes: list[TextNode], **kwargs: Any) -> HippoRAGIndex:
    given = {"extractor": OpenIEExtractor(retry=ONCE), "embed_model": HashEmbedding(), "num_workers": 1, **kwargs}
    return HippoRAGIndex(nodes=nodes, llm=llm, **given)


def test_prompts_that_are_too_long_cost_their_nodes_and_end_a_write_where_all_are() -> None:
    def script(asked: Asked) -> Reply:
        fits = any(f"No {i}." in asked.prompt for i in fitting)
        return Reply(GOOD) if fits else Reply("maximum context length is 512 tokens", status=400)

    with LLMServer(script) as server:
        fitting = {0, 9}
        index = hippo(client(server), of_documents(10))
        assert [failure.node_id for failure in index.failures()] == [f"n{i}" for i in range(1, 9)]
        fitting = set()
        with pytest.raises(LanguageModelError, match=r"All 10 nodes failed.*maximum context length"):
            hippo(client(server), of_documents(10))


class ReadTimeout(Exception):  # noqa: N818 - as that of httpx is called
    pass


def timed_out() -> Any:
    raise ExtractionError("too slow") from ReadTimeout()
    yield


def answered() -> Any:
    return 1
    yield


@pytest.mark.parametrize("replied", [False, True])
def test_time_outs_in_a_row_end_a_run_only_while_nothing_was_read(replied: bool) -> None:
    watch = FailureWatch("nodes", "record")
    tried: list[int] = []

    def job(number: int) -> Any:
        tried.append(number)
        return (yield from (answered() if replied and number == 0 else timed_out()))

    for number in range(9):
        try:
            run_steps(watch.run(partial(job, number)))
        except Exception:
            continue
    assert len(tried) == (9 if replied else 5)


def test_a_time_out_names_the_parameter() -> None:
    with LLMServer(lambda asked: Reply(GOOD, delay=1)) as server:
        (failure,) = hippo(client(server, timeout=0.05), of_documents(1)).failures()
    assert failure.reason.endswith("If the server is only slow, pass a larger timeout= to the LLM.")


# -- half of what was asked for ---------------------------------------------------------------------------


def triples(llm: Any, **kwargs: Any) -> HippoRAGIndex:
    return hippo(llm, of_documents(1), **kwargs)


def graph(llm: Any, **kwargs: Any) -> GraphRAGIndex:
    extractor = EntityExtractor(retry=ONCE, gleanings=1, claims=True)
    return GraphRAGIndex(nodes=of_documents(1), llm=llm, extractor=extractor, embed_model=HashEmbedding(), **kwargs)


def sections(llm: Any, **kwargs: Any) -> SpRAGIndex:
    extractor = AutoContext(retry=ONCE, sections="llm")
    return SpRAGIndex(nodes=of_documents(1), llm=llm, extractor=extractor, embed_model=HashEmbedding(), **kwargs)


HALVES: Mapping[str, tuple[Callable[..., Any], str, str, str]] = {
    "triples": (triples, "triples", "states as triples", "Ada Byron"),
    "gleaning": (graph, "glean", "A first reading", "Ada Byron"),
    "claims": (graph, "claims", "List the claims", "Ada Byron"),
    "sections": (sections, "context", "consecutive parts", FACT),
}


def kept(index: Any) -> str:
    if isinstance(index, SpRAGIndex):
        return str([document.description for document in index.state.documents.values()])
    return str(run_steps(index.storage.manifest.entries()))


@pytest.mark.parametrize(("build", "step", "marker", "content"), HALVES.values(), ids=HALVES.keys())
def test_what_was_read_before_a_step_failed_stays_and_the_step_is_retried(
    build: Callable[..., Any], step: str, marker: str, content: str
) -> None:
    broken = [True]
    good = json.dumps({**json.loads(GOOD), "claims": [], "sections": [{"first": 0, "title": "Meeting"}]})
    llm = ScriptedLLM(lambda prompt: UNREADABLE if broken[0] and marker in prompt else good)
    index = build(llm)
    (failure,) = index.failures()
    assert failure.step == step
    assert content in kept(index)
    assert index.as_retriever(similarity_top_k=3).retrieve("Whom did Ada Byron meet?")
    broken[0] = False
    asked = len(llm.prompts)
    assert index.retry_failed() == 0
    assert 0 < sum(marker in prompt for prompt in llm.prompts[asked:]) == len(llm.prompts) - asked
    broken[0] = True
    with pytest.raises(ExtractionError):
        build(llm, on_error="raise")


def test_relations_that_cannot_be_read_cost_no_entities() -> None:
    reply = json.dumps({"entities": [{"name": "Ada Byron"}], "relations": [{"who": "Ada"}, 7]})
    extractor = EntityExtractor(retry=ONCE, llm=ScriptedLLM(reply))
    (found,) = run_steps(extractor.extract(of_documents(1)))
    assert [entity[0] for entity in found.record["entities"]] == ["Ada Byron"]


class Cell(ReplyModel):
    text: str
    number: int


class Table(ReplyModel):
    other_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    cells: Annotated[list[Cell], ITEMS]


def test_one_item_that_cannot_be_read_costs_that_item() -> None:
    cells: list[Any] = [{"text": str(i), "number": i} for i in range(8)]
    cells[3] = {"text": "3", "number": "three"}
    assert [cell.number for cell in read_reply(json.dumps({"cells": cells}), Table).cells] == [0, 1, 2, 4, 5, 6, 7]
    with pytest.raises(ExtractionError, match="valid integer"):
        read_reply(json.dumps({"cells": cells[3:4]}), Table)
