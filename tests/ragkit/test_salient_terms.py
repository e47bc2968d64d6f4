"""Names of groups of texts by their salient terms."""

from llama_index.ragkit.text.salient_terms import group_names

TEXTS = {
    "a": "The lighthouse burned whale oil. The lighthouse lamp, the lighthouse keeper and the lamp oil.",
    "b": "A lamp for the lighthouse.",
    "c": "Bread rises with yeast. Yeast and flour make bread; bread needs yeast and flour.",
    "d": "Flour for the bread.",
}


def test_a_group_is_named_by_what_it_has_more_often_than_the_rest():
    names = group_names({"light": ["a", "b"], "bakery": ["c", "d"]}, TEXTS, terms=2)
    assert names == {"light": "lighthouse, lamp", "bakery": "bread, flour"}


def test_a_group_of_everything_of_nothing_or_of_unknown_texts_has_no_name():
    assert group_names({"all": list(TEXTS), "none": [], "gone": ["z"]}, TEXTS) == {}


def test_a_name_has_the_capitals_of_its_group_and_no_pronouns():
    kept = "Hale lit a lamp for them. Hale had a lamp, and them. The Lamp of Hale, a lamp for them."
    assert group_names({"keeper": ["k"]}, {"k": kept, **TEXTS}) == {"keeper": "Hale, lamp"}


def test_a_term_is_named_with_the_word_that_mostly_stands_beside_it_and_units_name_nothing():
    built = (
        "Ellis Grigg built a quay: 9 oz. Ellis Grigg, 8 oz of bread. Ellis Grigg drew a plan. 7 oz, a plan, the plan."
    )
    assert group_names({"mason": ["m"]}, {"m": built, **TEXTS}) == {"mason": "Ellis Grigg, plan"}
