"""The recorded replies of a small model, each through the reader of its step."""

import os
from pathlib import Path

import pytest
from benchmarks.small_model import BEFORE, Outcome, outcomes, table

DATA = Path(os.environ.get("RAG_DATA", "")) / "small_llm"
pytestmark = pytest.mark.skipif(not (DATA / "replies.jsonl.gz").is_file(), reason="RAG_DATA has no small_llm")


@pytest.fixture(scope="module")
def found() -> list[Outcome]:
    return list(outcomes(DATA.parent))


def test_each_reply_is_content_or_a_failure_that_is_told(found: list[Outcome]) -> None:
    assert len(found) == 119
    assert all(bool(outcome.kept) != bool(outcome.failed) for outcome in found)


def test_what_is_kept_is_no_garbage(found: list[Outcome]) -> None:
    """Except for one question of a prompt that was tried, of whose words the text has one."""
    garbage = [(outcome.step, item) for outcome in found for item in outcome.garbage]
    assert [step for step, _ in garbage] == ["tried: lines of questions"]
    assert sum(count for _, _, count in BEFORE.values()) == 5


def test_the_table_of_the_documentation_is_what_happens(found: list[Outcome]) -> None:
    page = Path(__file__).parents[2] / "docs" / "local_models.md"
    assert table(found) in page.read_text(encoding="utf-8")
