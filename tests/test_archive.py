"""The sample archive keeps the promises of its README: sizes, labels that resolve, answers that stand in the text."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ARCHIVE = Path(__file__).parents[1] / "examples" / "archive"
ARTICLES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ARCHIVE / "articles").glob("*.md"))}
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (ARCHIVE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
FIELDS = {"id", "kind", "question", "answer", "gold", "why"}
MIN_QUESTIONS = {"fact": 25, "chain": 30, "aspects": 20, "theme": 20}
GOLD_SIZES = {"fact": (1, 1), "chain": (2, 4), "aspects": (3, 8), "theme": (4, 10)}

each_question = pytest.mark.parametrize("item", QUESTIONS, ids=[q["id"] for q in QUESTIONS])


def flat(text: str) -> str:
    return " ".join(text.casefold().split())


def test_the_archive_has_about_sixty_articles_of_the_stated_size():
    assert 55 <= len(ARTICLES) <= 70
    assert 15_000 <= sum(len(text.split()) for text in ARTICLES.values()) <= 25_000


@pytest.mark.parametrize("slug", ARTICLES)
def test_an_article_is_short_and_opens_with_its_title(slug):
    title, _, body = ARTICLES[slug].partition("\n")
    assert title.startswith("# ")
    assert len(title) > 3
    assert 200 <= len(body.split()) <= 500
    assert slug.isascii()
    assert slug == slug.lower()


def test_titles_are_unique():
    titles = Counter(text.partition("\n")[0] for text in ARTICLES.values())
    assert max(titles.values()) == 1


def test_ids_and_questions_are_unique():
    for field in ("id", "question"):
        counts = Counter(flat(q[field]) for q in QUESTIONS)
        assert [value for value, n in counts.items() if n > 1] == []


def test_every_kind_has_enough_questions_and_there_is_no_other_kind():
    counts = Counter(q["kind"] for q in QUESTIONS)
    assert set(counts) == set(MIN_QUESTIONS)
    assert {kind: n for kind, n in counts.items() if n < MIN_QUESTIONS[kind]} == {}


@each_question
def test_a_question_is_well_formed(item):
    assert set(item) == FIELDS
    assert item["id"].startswith(item["kind"] + "-")
    assert all(isinstance(item[field], str) and item[field].strip() for field in FIELDS - {"gold"})


@each_question
def test_gold_names_existing_articles_once_each_and_as_many_as_its_kind_allows(item):
    gold = item["gold"]
    fewest, most = GOLD_SIZES[item["kind"]]
    assert [slug for slug in gold if slug not in ARTICLES] == []
    assert len(set(gold)) == len(gold)
    assert fewest <= len(gold) <= most


@pytest.mark.parametrize("item", [q for q in QUESTIONS if q["kind"] in ("fact", "chain")], ids=lambda q: str(q["id"]))
def test_a_short_answer_stands_in_the_last_gold_article_and_not_in_the_question(item):
    assert flat(item["answer"]) in flat(ARTICLES[item["gold"][-1]])
    assert flat(item["answer"]) not in flat(item["question"])
    assert len(item["answer"].split()) <= 12


def test_every_article_is_gold_of_some_question():
    assert set(ARTICLES) - {slug for q in QUESTIONS for slug in q["gold"]} == set()


def test_one_article_holds_the_awkward_text_that_readers_of_text_must_survive():
    text = ARTICLES["vinteroy-families"]
    assert sum(not character.isascii() for character in text) > 40
    for awkward in ("e.g.", "3.14", "Dr. ", "St. ", "\n- ", "\n| "):
        assert awkward in text


# -- the register, which the demo adds -------------------------------------------------------------------

REGISTER = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ARCHIVE / "register").glob("*.md"))}
ASKED: list[dict[str, Any]] = [
    json.loads(line) for line in (ARCHIVE / "register.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_the_register_has_names_of_its_own_and_every_entry_is_titled():
    assert not set(REGISTER) & set(ARTICLES)
    assert all(text.startswith("# ") and text.count("\n# ") == 0 for text in REGISTER.values())
    assert Counter(q["kind"] for q in ASKED) == {"chain": 24, "network": 12, "aspects": 20, "report": 16}


@pytest.mark.parametrize("item", ASKED, ids=[q["id"] for q in ASKED])
def test_a_question_about_the_register_is_labelled(item):
    assert set(item) == FIELDS
    assert [slug for slug in item["gold"] if slug not in REGISTER] == []
    assert len(set(item["gold"])) == len(item["gold"]) <= 5  # of as many passages
    if item["kind"] in ("chain", "report"):
        assert flat(item["answer"]) in flat(REGISTER[item["gold"][-1]])
        assert flat(item["answer"]) not in flat(item["question"])


@pytest.mark.parametrize("item", [q for q in ASKED if q["kind"] == "chain"], ids=lambda q: str(q["id"]))
def test_a_chain_names_its_first_link_alone(item):
    first, *others = (REGISTER[slug].split("\n")[0].removeprefix("# ") for slug in item["gold"])
    assert flat(first) in flat(item["question"])
    assert [name for name in others if flat(name) in flat(item["question"])] == []
