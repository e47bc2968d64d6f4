"""MRAG's data set is built as the paper builds it, and its stories are asked."""

import gzip
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.papers import stories
from tests.benchmarks.made import write
from tests.benchmarks.test_papers import rows, run
from tests.llm_server import Asked, LLMServer

__all__ = ["run"]  # the fixture

WORDS = ("tower", "harbour", "forest", "river", "market", "library")


def article(kind: int, number: int, overview: int = 800) -> dict[str, str]:
    title = f"Kind{kind}Name{number}"
    said = f"{title} is a {WORDS[kind]} in the county of {title}land. "
    return {"title": title, "category": WORDS[kind], "text": (said * 40)[: overview - 1] + ".\n\n== History ==\nSold."}


def articles(folder: Path, kinds: int = 5, of_each: int = 4) -> Path:
    long = [article(kind, number) for kind in range(kinds) for number in range(of_each)]
    write(folder / "articles.jsonl.gz", [article(0, 99, overview=790), *long])
    return folder / "articles.jsonl.gz"


def tell(asked: Asked) -> str:
    """A story that names every article, and one that forgets the first of five."""
    titles = asked.prompt.rpartition("in your story: ")[2].split(", ")
    return " ".join(f"There was {title}." for title in titles[len(titles) == 5 :])


SMALL = ("--categories", "5", "--documents", "4", "--stories", "3", "--aspects", "1", "5")


def lines(path: Path) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_stories_are_written_once_and_asked_by_the_command(run, tmp_path: Path, monkeypatch, capsys):
    folder = tmp_path / "data" / "mrag_wikipedia"
    given = ["--articles", str(articles(tmp_path)), "--out", str(folder), "--llm", "scripted", *SMALL]
    with LLMServer(tell) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        stories.main([*given, "--estimate"])
        assert "6 LLM calls" in capsys.readouterr().out
        assert not server.asked
        stories.main(given)
        said = capsys.readouterr().out
        first = lines(folder / "queries.jsonl.gz")
        stories.main(given)
        assert len(server.asked) == 6
    assert lines(folder / "queries.jsonl.gz") == first
    corpus = {row["id"]: row for row in lines(folder / "corpus.jsonl.gz")}
    assert Counter(row["category"] for row in corpus.values()) == dict.fromkeys(WORDS[:5], 4)
    assert {len(row["text"]) for row in corpus.values()} == {800}
    for n in (1, 5):
        gold = [row["gold"] for row in first if row["aspects"] == n]
        assert [len({corpus[name]["category"] for name in each}) for each in gold] == [n] * 3
        assert len({name for each in gold for name in each}) == 3 * n
    left_out = [corpus[row["gold"][0]]["title"] for row in first if row["aspects"] == 5]
    assert re.findall(r"does not mention (\w+)\.", said) == left_out
    assert rows(run("mrag", "--table", "1"), "MRAG, paper()")[0][1:]


def test_the_prompt_is_the_papers():
    said = stories.prompt([article(0, 1), article(1, 2)])
    assert said.startswith(
        "Please create a story about the attached 2 articles on the topics Kind0Name1, Kind1Name2.\n"
    )
    assert "\nArticles:\n---\nArticle Kind0Name1:\nKind0Name1 is a tower" in said
    assert said.endswith(
        "---\nAgain, make sure that you reference all the following topics in your story: Kind0Name1, Kind1Name2"
    )


def test_too_few_articles_are_refused_with_what_is_there():
    with pytest.raises(SystemExit, match="5 categories have 4 articles with an overview of 801 characters, and 6"):
        stories.chosen([article(k, n, 801) for k in range(5) for n in range(4)], 6, 4, 801, random.Random(0))


@pytest.mark.parametrize("more", [("--stories", "5"), ("--aspects", "6")])
def test_more_stories_than_documents_are_refused(tmp_path: Path, capsys, more: tuple[str, str]):
    given = ["--articles", str(articles(tmp_path)), "--out", str(tmp_path), "--llm", "scripted", *SMALL, *more]
    with pytest.raises(SystemExit):
        stories.main(given)
    assert "may be at most" in capsys.readouterr().err
