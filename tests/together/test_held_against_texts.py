"""Reports and descriptions of documents are held against their texts: of a reply stays what is about them."""

import json
from typing import Any

import pytest
from llama_index.core import Document
from tests.together.plugins import ONCE

from llama_index.graphrag import ReportWriter
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.sprag import AutoContext, FirstGenerationContext, SpRAGIndex

OIL = "The lamp of Tern Rock burned colza oil until 1880, when Tomas Berg had it changed to paraffin."
KEEPER = "Ada Hale kept the lighthouse from 1866 until 1893."
NUMBERED = [f"[1] {OIL}", f"[2] {KEEPER}"]
REFUSAL = "I'm sorry, but I can't help with that."
ELSEWHERE = "The Marlund ropeworks, which a widow founded in 1871, burned down in 1904."
OTHER = "Photosynthesis converts sunlight into chemical energy within plants."


def finding(text: str, *sources: int) -> dict[str, Any]:
    return {"text": text, "sources": sources}


def reported(title: str, summary: str, *findings: Any, **options: Any) -> dict[str, Any]:
    llm = ScriptedLLM(json.dumps({"title": title, "summary": summary, "findings": findings}))
    written, _ = run_steps(ReportWriter(llm, retry=ONCE, **options).summarize(NUMBERED, max_tokens=60))
    return dict(json.loads(written))


@pytest.mark.parametrize("said", [REFUSAL, ELSEWHERE, OTHER])
def test_a_report_on_something_else_is_a_failure(said: str) -> None:
    with pytest.raises(ExtractionError):
        reported(said, said, finding(said, 1))
    assert reported(said, said, finding(said, 1), min_in_text=0)["summary"] == said


@pytest.mark.parametrize("said", [REFUSAL, ELSEWHERE, OTHER])
def test_of_a_report_what_is_about_the_statements_stays(said: str) -> None:
    report = reported(said, f"{KEEPER} {REFUSAL}", finding(OIL, 1), finding(KEEPER, 2), finding(said, 1))
    assert [each["text"] for each in report["findings"]] == [OIL, KEEPER]
    assert (report["title"], report["summary"]) == ("", KEEPER)


def test_a_report_whose_findings_are_all_about_something_else_is_a_failure() -> None:
    with pytest.raises(ExtractionError):
        reported("Tern Rock", KEEPER, finding(OTHER, 1))


def header(extractor: Any, reply: Any) -> tuple[str, list[str]]:
    """What stands before a chunk, and who wrote it of what the model failed at."""
    nodes = [Document(text=f"{OIL} {KEEPER}", id_="d")]
    llm = ScriptedLLM(reply if isinstance(reply, str) else json.dumps(reply))
    index = SpRAGIndex(nodes, extractor=extractor, llm=llm, embed_model=HashEmbedding())
    return index.header_of("d"), [failure.by for failure in index.failures()]


@pytest.mark.parametrize("said", [REFUSAL, ELSEWHERE, OTHER])
def test_title_and_summary_of_something_else_are_written_by_rules(said: str) -> None:
    for extractor, reply in ((AutoContext, {"title": said, "summary": said}), (FirstGenerationContext, said)):
        shown, by = header(extractor(retry=ONCE), reply)
        assert by == ["RuleContext"]
        assert said not in shown
        shown, by = header(extractor(retry=ONCE, min_in_text=0), reply)
        assert (by, said in shown) == ([], True)


def test_of_a_title_and_a_summary_the_one_about_the_document_stays() -> None:
    shown, by = header(AutoContext(retry=ONCE), {"title": "Lamp of Tern Rock", "summary": f"{REFUSAL} {KEEPER}"})
    assert by == []
    assert "Lamp of Tern Rock" in shown
    assert KEEPER in shown
    assert REFUSAL not in shown
    shown, by = header(AutoContext(retry=ONCE), {"title": REFUSAL, "summary": KEEPER})
    assert by == []
    assert KEEPER in shown
    assert REFUSAL not in shown
