"""Mind maps as models write them, and outlines of plain text."""

import pytest

from llama_index.pgrag.maps.mind_map import nested, path_text, read_mind_map, root_of
from llama_index.pgrag.maps.outline import key_phrases
from llama_index.pgrag.maps.outline import outline as outline_of
from llama_index.pgrag.path_nodes import ContextPath, context_text
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.llm.json.output import parse_pairs
from llama_index.ragkit.text.passages import read_passage


def outline(text, title=""):
    return outline_of(read_passage(text, title))


def read(text, topic="T", **kwargs):
    return [" > ".join(path) for path in read_mind_map(parse_pairs(text), topic, **kwargs)]


def test_duplicate_keys_are_all_read():
    assert read('{"T": {"a": {"x": "1"}, "a": {"x": "2"}, "a": "3"}}') == [
        "T > a > x > 1",
        "T > a > x > 2",
        "T > a > 3",
    ]


def test_several_roots_and_a_root_that_is_not_the_topic_become_routes():
    assert read('{"t ": {"a": "1"}, "other": {"b": "2"}}') == ["T > a > 1", "T > other > b > 2"]
    assert read('{"other": {"b": "2"}}') == ["T > other > b > 2"]


def test_facts_directly_under_the_topic_are_kept():
    assert read('{"T": "one"}') == ["T > one"]
    assert read('{"T": ["one", "two", 3, true]}') == ["T > one", "T > two", "T > 3", "T > yes"]
    assert read('["one", {"a": "two"}]') == ["T > one", "T > a > two"]


def test_lists_are_one_fact_an_item_or_joined_and_may_hold_objects():
    text = '{"T": {"a": ["1", "2", {"b": ["3", ["4"]]}, []]}}'
    assert read(text) == ["T > a > 1", "T > a > 2", "T > a > b > 3", "T > a > b > 4"]
    assert read('{"T": {"a": ["1", "2"]}}', join_lists=True) == ["T > a > 1 2"]


@pytest.mark.parametrize("junk", ['""', "null", '"None"', '"unknown"', "[]", "{}", '"--"', '"无"'])
def test_leaves_that_say_nothing_go_with_their_path(junk):
    assert read(f'{{"T": {{"a": {junk}, "b": "1"}}}}') == ["T > b > 1"]


def test_a_map_of_labels_alone_keeps_the_labels():
    assert read('{"T": {"a": {"The lamp burned oil": "", "Ada lit it": {}}}}') == [
        "T > a > The lamp burned oil",
        "T > a > Ada lit it",
    ]
    assert read('{"T": ""}') == []


def test_white_space_is_one_space_and_equal_paths_are_one():
    assert read('{"T": {" a\\n b ": ["x  y", "x y"]}}') == ["T > a b > x y"]


def test_the_text_of_a_path_says_a_repeated_cell_once():
    assert path_text(("Lamp", "Lamp", "oil")) == "Lamp oil"
    assert root_of({"a": 1, "b": 2}) is None


def test_nested_and_context():
    found = [ContextPath(("A", "r", "1"), ("d",), 0.5), ContextPath(("B", "2")), ContextPath(("A", "r", "3"))]
    assert nested(entry.path for entry in found) == {"A": {"r": {"1": {}, "3": {}}}, "B": {"2": {}}}
    assert context_text(found) == "- A\n  - r\n    - 1\n    - 3\n- B\n  - 2"
    assert "1 [d, 0.50]" in context_text(found, documents=True)
    assert context_text(found, "json").startswith('{"A": {"r"')
    assert context_text([]) == ""
    with pytest.raises(ConfigurationError, match="xml"):
        context_text(found, "xml")


def test_headings_are_topic_and_routes():
    text = "# Lamp\nIt burned oil.\n## Keepers\nAda lit it.\n### Later\nNobody did.\n## Tower\nIt is tall."
    topic, paths = outline(text)
    assert topic == "Lamp"
    assert [path[1:] for path in paths] == [
        ("It burned oil.",),
        ("Keepers", "Ada lit it."),
        ("Keepers", "Later", "Nobody did."),
        ("Tower", "It is tall."),
    ]


def test_without_a_heading_key_phrases_are_the_topic_and_shared_ones_routes():
    text = (
        "The Analytical Engine was designed by Babbage. Ada Byron wrote about the Analytical Engine. Silk is dear. "
        "Ada Byron died young."
    )
    topic, paths = outline(text)
    assert "Ada Byron" in topic
    assert [path[-1] for path in paths] == [s + "." for s in text.rstrip(".").split(". ")]
    assert outline(text, title="Given")[0] == "Given"


@pytest.mark.parametrize("text", ["", "   ", "...", "***\n---"])
def test_a_text_that_says_nothing_has_no_paths(text):
    assert outline(text)[1] == []


def test_chinese_sentences_and_phrases():
    text = "机器人产业发展迅速。中国是机器人产业的推动力。汽车行业使用机器人产业的产品。"
    _topic, paths = outline(text)
    assert len(paths) == 3
    assert "机器人产业" in key_phrases(text, 1)[0]


def test_turns_of_a_chat_that_say_nothing_are_no_facts_and_interjections_and_titles_name_nothing():
    text = (
        "Mrs. Hale: Where does Frank live ?\nTom Orr: Yeah .\nMrs. Hale: Yeah . Frank .\nLiv Orr Jr.: Hey , yeah !\n"
        "Tom Orr: Hey , Frank left four years ago .\nMrs. Hale: Hey , he went out for Oil ."
    )
    _topic, paths = outline(text)
    facts = [path[-1] for path in paths]
    assert "Mrs. Hale: Where does Frank live ?" in facts
    assert "Tom Orr: Hey , Frank left four years ago ." in facts
    assert not [fact for fact in facts if fact.endswith(("Yeah .", "yeah !"))]
    named = {phrase.casefold() for phrase in key_phrases(text, 20)}
    assert {"tom orr", "frank"} <= named
    assert not named & {"mrs", "jr", "hey", "yeah"}
    assert not {cell.casefold() for path in paths for cell in path[1:-1]} & {"mrs", "hey", "yeah"}


def test_vowel_signs_belong_to_the_words_of_a_phrase():
    text = "पैंथर्स की रक्षा ने केवल 308 अंक दिए। पैंथर्स की रक्षा में चार चयन थे। पैंथर्स ने 24 इंटरसेप्शन किए।"
    assert key_phrases(text, 1) == ["पैंथर्स"]
    assert [path[:-1] for path in outline(text)[1]] == [("पैंथर्स",)] * 3


def test_the_fields_of_a_record_are_one_fact():
    rows = "boat: Petrel\nyard: Marsh\nnote: She burned in 1971.\n\n\nboat: Heron\nbuilt: 1961\nboat: Gannet\nbuilt:"
    facts = ["boat: Petrel; yard: Marsh", "note: She burned in 1971.", "boat: Heron; built: 1961"]
    assert [path[-1] for path in outline(rows, title="Boats")[1]] == facts
    talk = "Ada: It is dark tonight.\nBen: Who lit the lamp?\nAda: The keeper lit the lamp."
    assert [path[-1] for path in outline(talk, title="Talk")[1]] == talk.split("\n")


def test_facts_keep_their_code_and_lose_their_bullets():
    text = (
        "## Lamps\n\n- Call `lamp.light(oil=1)` first.\n- The lamp_set_oil() function [follows][f].\n\n[f]: guide.md#f"
    )
    assert outline(text)[1] == [
        ("Lamps", "Call lamp.light(oil=1) first."),
        ("Lamps", "The lamp_set_oil() function follows."),
    ]


def test_long_and_odd_texts_end_soon():
    for text in ("a" * 50_000, "漢" * 50_000, "Word Word " * 9_000, "\x00\ud800 x"):
        outline(text)
