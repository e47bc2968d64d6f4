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


def test_a_term_that_other_groups_have_too_weighs_less():
    texts = {name: "Dues. " * 6 + f"{name}. " * 3 for name in ("Pell", "Holt")} | {"c": TEXTS["c"] * 20}
    names = group_names({"a": ["Pell"], "b": ["Holt"]}, texts, terms=2)
    assert names == {"a": "Pell, Dues", "b": "Holt, Dues"}


def test_groups_of_one_form_are_told_apart_by_a_word_or_number_that_only_one_has():
    form = "Dues are paid at the office. The office was open. Dues paid at the office are dues."
    texts = {
        "1876": f"Report 1876. {form} For the year 1876: 12 boats.",
        "1877": f"Report 1877. {form} For the year 1877: 14 boats.",
        "fog": f"{form} A bell for the fog.",
        "same": form,
        **TEXTS,
    }
    names = group_names({name: [name] for name in ("1876", "1877", "fog", "same")}, texts)
    assert names == {
        "1876": "1876, Dues, office",
        "1877": "1877, Dues, office",
        "fog": "bell, Dues, office",
        "same": "Dues, office",
    }


def test_groups_of_one_form_in_a_script_without_spaces_are_told_apart_too():
    form = "港口收费。港口收费。港口收费。"
    texts = {"x": f"{form}雾钟", "y": f"{form}灯塔", **TEXTS}
    names = group_names({"x": ["x"], "y": ["y"]}, texts, terms=2)
    assert [name.split(", ")[0] for name in names.values()] == ["雾钟", "灯塔"]
