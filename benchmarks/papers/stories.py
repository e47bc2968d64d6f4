"""`python -m benchmarks.papers.stories --articles FILE --out FOLDER --llm MODEL`: MRAG's multi-aspect data set, built.

As MRAG's paper builds it (section 3 and table 2): 50 articles of each of 25 categories, of which the overview is the
text, with at least 800 characters; then for each number of aspects 25 stories, each about that many articles of
different categories. No article is in two stories of one number, as in the authors' data.

`--articles` names JSON lines, gzipped or not, with `title`, `category` and `text`, as Wikipedia's plain extracts have
it: the overview ends at the first line that begins with "==". Every story is kept in the folder as it is written, so
that a run that was cut off goes on. `python -m benchmarks.papers mrag` asks the stories.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import _lines
from benchmarks.papers.kept_llm import KeptLLM
from llama_index.ragkit.compare.command import openai_like
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["chosen", "drawn", "main", "prompt"]

Article = Mapping[str, Any]

BEFORE = (
    "Please create a story about the attached {count} articles on the topics {titles}.\n"
    "It is very important that each of the attached articles is relevant to the story, in a way that references the "
    "content of the article, not just its title. But please also mention each title at least once. Please make sure "
    "that all of the attached articles are relevant to your story, and that each article is referenced in at least two "
    "sentences! They do not necessarily have to be referenced in the same order, but make sure no article is forgotten."
    "\nImportant: Output only the story, no additional text. And do not use bullet points, or paragraphs.\nArticles:\n"
)
AFTER = "Again, make sure that you reference all the following topics in your story: {titles}"
_RULE = "---\n"
_STORY = 60  # tokens of a story for each article: for estimates


def main(arguments: Sequence[str] | None = None) -> None:
    """Choose the articles, have the stories written, and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.stories", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--articles", type=Path, required=True, help="JSON lines: title, category, text")
    parser.add_argument("--out", type=Path, required=True, help="the data folder, such as DIR/mrag_wikipedia")
    parser.add_argument("--llm", required=True, help="a model of OpenAI, or of OPENAI_BASE_URL")
    parser.add_argument("--estimate", action="store_true", help="print what it would cost, and stop")
    parser.add_argument("--categories", type=int, default=25, help="[25]")
    parser.add_argument("--documents", type=int, default=50, help="of a category [50]")
    parser.add_argument("--overview", type=int, default=800, help="characters of an overview at least [800]")
    parser.add_argument("--stories", type=int, default=25, help="of each number of aspects [25]")
    parser.add_argument("--aspects", type=int, nargs="+", default=[1, 5, 10, 15, 20], help="[1 5 10 15 20]")
    parser.add_argument("--seed", type=int, default=0, help="of the choice [0]")
    options = parser.parse_args(arguments)
    if options.stories > options.documents or max(options.aspects) > options.categories:
        parser.error(
            f"a story takes a document of its own from each of its categories: --stories is {options.stories} and may "
            f"be at most --documents, {options.documents}; --aspects is up to {max(options.aspects)} and may be at "
            f"most --categories, {options.categories}"
        )
    rng = random.Random(options.seed)
    articles = chosen(_lines(options.articles), options.categories, options.documents, options.overview, rng)
    plans = [(n, story) for n in options.aspects for story in drawn(articles, n, options.stories, rng)]
    read = sum(count_tokens(prompt(story)) for _, story in plans)
    print(f"{len(plans)} LLM calls, {read:,} tokens read, about {_STORY * sum(n for n, _ in plans):,} written")
    if options.estimate:
        return
    options.out.mkdir(parents=True, exist_ok=True)
    llm = KeptLLM(model=openai_like(options.llm, "--llm", 32_000), path=str(options.out / "stories.db"))
    queries = []
    for number, (n, story) in enumerate(plans):
        text = llm.complete(prompt(story)).text.strip()
        if left_out := [each["title"] for each in story if each["title"].casefold() not in text.casefold()]:
            print(f"Story {number} does not mention {', '.join(left_out)}.", flush=True)
        gold = [each["id"] for each in story]
        queries.append({"id": f"n{n}-{number % options.stories}", "question": text, "aspects": n, "gold": gold})
    _write(options.out / "corpus.jsonl.gz", articles)
    _write(options.out / "queries.jsonl.gz", queries)


def chosen(
    articles: Iterable[Article], categories: int, documents: int, overview: int, rng: random.Random
) -> list[dict[str, Any]]:
    """So many articles of so many categories, with an id, and with their overview as their text.

    Raises
    ------
    SystemExit
        If there are too few.
    """
    of: dict[str, dict[str, str]] = {}
    for article in articles:
        text = f"\n{article['text']}".partition("\n==")[0].strip()
        if len(text) >= overview:
            of.setdefault(article["category"], {}).setdefault(article["title"], text)
    enough = sorted(category for category, found in of.items() if len(found) >= documents)
    if len(enough) < categories:
        few = f"{len(enough)} categories have {documents} articles with an overview of {overview} characters"
        raise SystemExit(f"{few}, and {categories} are wanted: give more articles, or less for --categories.")
    picked = [
        {"title": title, "category": category, "text": of[category][title]}
        for category in sorted(rng.sample(enough, categories))
        for title in rng.sample(sorted(of[category]), documents)
    ]
    return [{"id": f"a{number:04}", **article} for number, article in enumerate(picked)]


def drawn(articles: Sequence[Article], aspects: int, stories: int, rng: random.Random) -> list[list[Article]]:
    """The articles of each story: of different categories, and none in two stories."""
    left: dict[str, list[Article]] = {}
    for article in rng.sample(articles, len(articles)):
        left.setdefault(article["category"], []).append(article)
    return [[left[category].pop() for category in rng.sample(sorted(left), aspects)] for _ in range(stories)]


def prompt(story: Sequence[Article]) -> str:
    """The paper's prompt for a story (table 2)."""
    titles = ", ".join(article["title"] for article in story)
    told = "".join(f"{_RULE}Article {article['title']}:\n{article['text']}\n" for article in story)
    return BEFORE.format(count=len(story), titles=titles) + told + _RULE + AFTER.format(titles=titles)


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    main()
