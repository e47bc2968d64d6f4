"""Any text at all through the readers that need no LLM, through an index, and as a question to it."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from tests.cases import CASES, Case, ask, chunks
from tests.together.plugins import rule_extractor

from llama_index.ragkit.steps import run_steps

READERS = [case for case in CASES if rule_extractor(case)]
PIECES = [
    *(
        "# Title\n",
        "## Part\n",
        "- item\n",
        "  * deeper\n",
        "1. first\n",
        "| a | b |\n|---|---|\n",
        "> said\n",
        "```\n",
    ),
    *("Ada Byron", "Babbage", "the Analytical Engine", " of ", " and ", ", ", ". ", "? ", "U.S. ", "3.14", "e.g. "),
    *("'", '"', "“", "”", "’s", "(", ")", "[", "]", "{", "}", "<b>", "</b>", "&amp;", "\\", "/", "--", "—", "…"),
    *("\x00", "\x1b[0m", "\r\n", "\n\n", "\t", "\u200b", "\u202e", "\ufeff", "\u0301", "ﬁ", "İ", "ß", "ſ", "Ǆ"),
    *("漢字。", "カタカナ", "한국어", "ไทย", "العربية ", "हिन्दी ", "👩‍👩‍👧", "🏳️‍🌈", "a" * 300, "I" * 50, "9" * 60),
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=80
)
quick = settings(max_examples=60, derandomize=True)


@pytest.mark.parametrize("case", READERS, ids=lambda case: case.name)
def test_a_reader_gives_the_same_record_of_json_types_for_any_text(case: Case):
    extractor = rule_extractor(case)

    @quick
    @given(st.lists(texts, min_size=1, max_size=3))
    @example(["İstanbul’DA ǅungla ſtraße"])
    def read(many: list[str]) -> None:
        nodes = [TextNode(id_=f"n{i}", text=text) for i, text in enumerate(many)]
        found = run_steps(extractor.extract(nodes, num_workers=1))
        assert [extraction.error for extraction in found] == [None] * len(nodes)
        records = [extraction.record for extraction in found]
        assert json.loads(json.dumps(records)) == records
        again = run_steps(extractor.extract(nodes[::-1], num_workers=1))
        assert [extraction.record for extraction in again] == records[::-1]

    read()


def test_any_text_can_be_stored_asked_and_forgotten(case: Case):
    good = chunks("d", 4)
    index = case.build(good)
    before = ask(index, top_k=50)

    @quick
    @given(texts)
    def live(text: str) -> None:
        index.insert_nodes([TextNode(id_="bad", text=text)])
        for question in (text, text[::-1]):
            found = ask(index, question, top_k=50)
            assert {text for text, _ in found} >= {node.text for node in good}
        index.delete_nodes(["bad"], delete_from_docstore=True)

    live()
    # What the method makes of the others may be made anew, but tells of nothing else.
    assert {text for text, _ in ask(index, top_k=50)} >= {node.text for node in good}
    assert {text for text, _ in before} >= {node.text for node in good}
    assert set(index.docstore.docs) == {node.node_id for node in good}
