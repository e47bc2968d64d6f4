"""A model of every temperament at every step: right content, or a failure that is heard."""

from pathlib import Path

import pytest
from tests.together.temperaments import STEPS, TEMPERAMENTS, Step, table, verdict

each_step = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
UNUSABLE = ("empty", "echo")


@each_step
@pytest.mark.parametrize("temperament", TEMPERAMENTS)
def test_an_answer_is_right_content_or_a_failure_that_is_heard(step: Step, temperament: str) -> None:
    expected = {"content"} if temperament == "right" else {"failure"} if temperament in UNUSABLE else None
    assert verdict(step, temperament) in (expected or {"content", "failure"})


def test_the_table_of_the_documentation_is_what_happens() -> None:
    page = Path(__file__).parents[2] / "docs" / "language_models.md"
    assert table() in page.read_text(encoding="utf-8")
