"""`make demo`: index texts with every method, ask all of them the same questions, and write pages to look at.

    python examples/demo.py                                      the sample archive
    python examples/demo.py --docs FOLDER                        your own files, and questions made from them
    python examples/demo.py --docs FOLDER --question "..."       your own question
    python examples/demo.py --docs FOLDER --llm                  with the LLM of OPENAI_API_KEY, after an estimate

It needs no API key and no network: embeddings come from MiniLM, and rules replace the LLM. Without `--llm` nothing is
sent anywhere, whatever is exported. `OPENAI_BASE_URL` selects another server, `OPENAI_MODEL` another model.
"""

import argparse
import logging
import os
import re
import sys
import tempfile
import textwrap
import webbrowser
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT))

from examples.demo_methods import METHODS, Method  # noqa: E402
from examples.demo_page import Answer, Card, Passage, front_page  # noqa: E402
from examples.interval_chart import Row, interval_chart  # noqa: E402
from examples.minilm import MiniLM, MiniLMEmbedding, MiniLMHeads  # noqa: E402
from examples.sample import KINDS, Asked, sample_questions, sample_texts  # noqa: E402
from llama_index.core import Document, Settings  # noqa: E402
from llama_index.core.llms import LLM, MockLLM  # noqa: E402
from llama_index.core.node_parser import SentenceSplitter  # noqa: E402

from llama_index.ragkit.compare import Comparison, Hit, Question, Run, compare  # noqa: E402
from llama_index.ragkit.compare.questions import held_out  # noqa: E402
from llama_index.ragkit.errors import RagKitError  # noqa: E402
from llama_index.ragkit.evaluation import Evaluation  # noqa: E402
from llama_index.ragkit.reading import read_folder  # noqa: E402
from llama_index.ragkit.text.lexical_index import lexical_terms  # noqa: E402
from llama_index.ragkit.text.sentences import split_sentences  # noqa: E402

TOP_K = 5
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
TERMINAL = 100  # columns
MADE = 40  # questions about one's own files
IN_ONE_PASSAGE = ("fact", "report")  # kinds of question whose answer is a string in one passage
PLAIN = "hybrid"  # what a method is held against where no answer is known
MEASURE = f"recall@{TOP_K}"
SAMPLE = (
    "The texts are invented. The questions of a chain, of everything that one person made, of several subjects by name "
    "and of similar reports were written to show what a method is for, so read them as illustrations. The measurement "
    "is on public texts: see benchmarks/README.md."
)
CHOICE = (
    "Three questions of its kind for each method: the one on which it gains most over the best of plain search, the "
    "middle one, and the one on which it gains least. Passages of texts that the question needs are green."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder with your own files, instead of the sample archive")
    parser.add_argument("--out", type=Path, default=ROOT / "demo", help="the folder for the pages")
    parser.add_argument("--question", help="a question of your own about --docs")
    parser.add_argument("--llm", action="store_true", help="let the LLM of OPENAI_API_KEY read the texts")
    parser.add_argument("--open", action="store_true", help="open the front page in a browser")
    options = parser.parse_args()
    if options.question and not options.docs:
        parser.error("--question asks about your own files: name their folder with --docs")
    if options.llm and not os.environ.get("OPENAI_API_KEY"):
        parser.error(
            "--llm needs OPENAI_API_KEY; OPENAI_BASE_URL selects another server, and OPENAI_MODEL another model"
        )
    try:
        front = demo(options.docs, options.out, options.question, language_model() if options.llm else None)
    except (RagKitError, ImportError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"\nOverview page: {front}")
    if options.open:
        webbrowser.open(front.as_uri())
    return 0


def demo(folder: Path | None, out: Path, question: str | None, llm: LLM | None) -> Path:
    """Build, ask, and write the pages of a folder, or of the sample archive; returns the front page."""
    read = sample_texts() if folder is None else _read(folder)
    words = sum(len(text.text.split()) for text in read)
    texts, asked = (read, sample_questions()) if folder is None else _asked(read, question)
    target = out if folder is None else out / folder.resolve().name
    questions = "1 question" if len(asked) == 1 else f"{len(asked)} questions"
    using = "no LLM" if llm is None else f"the LLM {llm.metadata.model_name}"
    about = f"{len(texts)} texts, {words:,} words, {questions}; all-MiniLM-L6-v2, {using}."
    print(about)
    if folder is None:
        print(textwrap.fill(SAMPLE, TERMINAL))
        print("It takes about two minutes of one core, and 0.6 GB of memory.")
    elif (target / "index.html").exists():
        print(f"The pages in {target} are replaced.")
    Settings.llm = llm or MockLLM()  # the mock is never called
    model = MiniLM()
    indexes: dict[str, tuple[Any, Any]] = {}

    def built(name: str, index: Any, retriever: Any) -> None:
        indexes[name] = index, retriever
        print(f"{name}: built and asked ({len(indexes)} of {len(METHODS)})", flush=True)

    comparison = compare(
        texts,
        [Question(each.question, each.texts) for each in asked],
        embed_model=MiniLMEmbedding(model),
        head_model=MiniLMHeads(model),
        llm=llm,
        transformations=[SentenceSplitter(chunk_size=128, chunk_overlap=0)],
        top_k=TOP_K,
        show_progress=sys.stderr.isatty(),
        before=_tell_calls if llm is not None else None,
        timed=_tell_minutes if llm is None and folder is not None else None,
        built=built,
    )
    comparison = replace(comparison, source=_source(asked))
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pages-", dir=out) as staged:
        methods = METHODS if llm is None else [replace(method, without="") for method in METHODS]
        _write_pages(Path(staged), comparison, asked, indexes, about, methods)
        return _publish(Path(staged), target)


def _read(folder: Path) -> list[Document]:
    texts, skipped = read_folder(os.path.normpath(folder))
    for file, reason in skipped.items():
        print(f"Skipped {file}: {reason}")
    return texts


def _asked(texts: Sequence[Document], question: str | None) -> tuple[Sequence[Document], list[Asked]]:
    """The questions about one's own texts, and the texts, without what the questions are made of."""
    if question:
        return texts, [Asked("own", question, "", ())]
    texts, made = held_out(texts, MADE, seed=0)
    if not made:
        raise RagKitError("The texts are too short to make questions from: pass a question of your own.")
    return texts, [Asked("made", each.text, "", each.documents) for each in made]


def _source(asked: Sequence[Asked]) -> str:
    kinds = {each.kind for each in asked}
    if kinds <= {"made", "own"}:
        return "sentences and headings left out of the texts" if "made" in kinds else "yours"
    return f"of the sample, of {len(kinds)} kinds, some of them written for a method. See the front page kind by kind."


def language_model() -> LLM:
    """The LLM of the environment."""
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
        api_base=os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or "https://api.openai.com/v1",
        api_key=os.environ["OPENAI_API_KEY"],
        is_chat_model=True,
    )


def _tell_calls(estimates: dict[str, Any]) -> None:
    for name, work in estimates.items():
        if work.calls:
            print(f"{name}: {work.calls:,} LLM calls, {work.prompt_tokens + work.completion_tokens:,} tokens")
    calls = sum(work.calls for work in estimates.values())
    tokens = sum(work.prompt_tokens + work.completion_tokens for work in estimates.values())
    print(f"Together about {calls:,} LLM calls, {tokens:,} tokens. Ctrl-C stops it.", flush=True)


def _tell_minutes(seconds: dict[str, float]) -> None:
    minutes = sum(seconds.values()) / 60
    about = "less than a minute" if minutes < 1 else f"about {minutes:.0f} minutes"
    print(f"It takes {about}, more where texts are many.")


# -- pages ----------------------------------------------------------------------------------------------


def _write_pages(
    folder: Path,
    comparison: Comparison,
    asked: Sequence[Asked],
    indexes: dict[str, tuple[Any, Any]],
    about: str,
    methods: Sequence[Method],
) -> None:
    runs = {run.name: run for run in comparison.runs if not run.error}
    kinds = {each.kind: _Measured(comparison, asked, each.kind) for each in asked}
    cards, chart = [], []
    for method in methods:
        if method.title not in indexes:
            continue
        measured = kinds.get(method.kind) or next(iter(kinds.values()))
        run = runs[method.title]
        plain = runs[measured.best_plain.name if comparison.evaluations else PLAIN]
        shown = _shown(measured.numbers, measured.gains(run, plain))
        picture = PICTURES / f"{method.name}.webp"  # of the sample
        seen = picture.read_bytes() if measured.kind in KINDS and picture.exists() else None
        cards.append(_card(method, measured, run, plain, shown, seen))
        if comparison.evaluations:
            chart.append(_row(run, measured))
        index, retriever = indexes[method.title]
        retriever.retrieve(asked[shown[0]].question)
        index.visualize(folder / f"{method.name}.html")
    comparison.write(folder / "comparison.html")
    head, rows = _table(list(runs.values()), list(kinds.values())) if comparison.evaluations else comparison.rows()
    svg = interval_chart(chart, MEASURE) if chart else ""
    caption, choice = _about_figures(kinds), "" if "own" in kinds else CHOICE
    is_sample = kinds.keys() <= KINDS.keys()
    note, heading = (SAMPLE, "Each method on its kind of question") if is_sample else ("", "Each method on your texts")
    page = front_page(about, note, cards, heading, svg, head, rows, caption, choice)
    (folder / "index.html").write_text(page, encoding="utf-8")
    print()
    print(as_text(head, rows))
    for card in cards:
        print(textwrap.fill(f"{card.title}: {card.verdict}", TERMINAL))


def _about_figures(kinds: Container[str]) -> str:
    if "own" in kinds:
        return "One question shows how systems differ, and not which is better: for that, measure with many."
    measure = f"{MEASURE}: the share of the texts that a question needs among the first {TOP_K} passages."
    if "made" in kinds:
        return (
            f"{measure} The questions are sentences and headings left out of the texts, which favours search by words."
        )
    return (
        f"{measure} Of a single fact and of a report, whether the passage with the answer is among them. "
        "No constant was chosen on these questions."
    )


@dataclass(frozen=True)
class _Measured:
    """The systems on the questions of one kind."""

    comparison: Comparison
    asked: Sequence[Asked]
    kind: str

    @cached_property
    def numbers(self) -> list[int]:
        """Of the questions."""
        return [i for i, each in enumerate(self.asked) if each.kind == self.kind]

    def scores(self, run: Run) -> Evaluation:
        """Of a system: the share of the texts that a question needs, or whether it found the answering passage."""
        values = tuple(self._score(run, i) for i in self.numbers)
        return Evaluation(run.name, tuple(map(str, self.numbers)), {MEASURE: values})

    def _score(self, run: Run, i: int) -> float:
        needed = self.comparison.questions[i].documents
        found = {self.comparison.named(hit, self.comparison.questions[i]) for hit in run.hits[i] if self.is_hit(hit, i)}
        return len(found) / len(needed)

    def is_hit(self, hit: Hit, i: int) -> bool:
        """Whether a passage is of a text that the question needs, and has the answer if its kind asks for that."""
        is_needed = self.comparison.named(hit, self.comparison.questions[i]) in self.comparison.questions[i].documents
        return is_needed and (self.kind not in IN_ONE_PASSAGE or flat(self.asked[i].answer) in flat(hit.text))

    @cached_property
    def best_plain(self) -> Evaluation:
        """The best of plain search."""
        plain = [self.scores(run) for run in self.comparison.runs if run.is_baseline]
        return max(plain, key=lambda evaluation: evaluation.interval(MEASURE, n_resamples=1).mean)

    def gains(self, run: Run, plain: Run) -> list[float]:
        """What a method finds more than plain search, question by question; nothing without labels."""
        if not self.comparison.evaluations:
            return []
        one, other = (self.scores(each).scores[MEASURE] for each in (run, plain))
        return [mine - theirs for mine, theirs in zip(one, other, strict=True)]


def _shown(numbers: Sequence[int], gains: Sequence[float]) -> list[int]:
    """The questions with the largest, the middle and the smallest gain."""
    order = sorted(range(len(numbers)), key=lambda place: -gains[place] if gains else 0)
    places = dict.fromkeys((order[0], order[len(order) // 2], order[-1]))
    return [numbers[place] for place in places]


def _row(run: Run, measured: _Measured) -> Row:
    own, best = measured.scores(run).interval(MEASURE), measured.best_plain
    return Row(run.name, _counted(measured), own, best.interval(MEASURE), best.name)


def _counted(measured: _Measured) -> str:
    return f"{_kind(measured.kind)} ({len(measured.numbers)})"


def _kind(kind: str) -> str:
    return KINDS.get(kind, "sentences and headings left out" if kind == "made" else "your question")


def _card(
    method: Method, measured: _Measured, run: Run, plain: Run, shown: Sequence[int], picture: bytes | None
) -> Card:
    gains = measured.gains(run, plain)
    answers = [_answer(measured, i, plain, run) for i in shown]
    return Card(
        title=method.title,
        what=method.what,
        kind=_kind(measured.kind),
        page=f"{method.name}.html",
        picture=picture,
        plain=plain.name,
        verdict=_verdict(method, measured, run, gains) if gains else _first(answers[0]),
        won=sum(gain > 0 for gain in gains),
        lost=sum(gain < 0 for gain in gains),
        asked=len(gains),
        answers=answers,
    )


def _first(answer: Answer) -> str:
    """What a method found and plain search did not, for a question whose answer is not known."""
    if not answer.found:
        return "It found nothing."
    plain = {(passage.name, passage.text) for passage in answer.plain}
    new = [passage for passage in answer.found if (passage.name, passage.text) not in plain]
    if not new:
        order = "in the same order" if answer.found == answer.plain else "in another order"
        return f"It found the same {len(answer.found)} passages as plain search, {order}."
    asked = lexical_terms(answer.question).keys()
    sentences = split_sentences(new[0].text)
    most = max(sentences, key=lambda sentence: len(asked & lexical_terms(sentence).keys()), default="")
    text = textwrap.shorten(most, 160, placeholder=" ...")
    return f"It found {len(new)} of {len(answer.found)} that plain search did not, first in {new[0].name}: {text}"


def _verdict(method: Method, measured: _Measured, run: Run, gains: Sequence[float]) -> str:
    best = measured.best_plain
    gap = measured.scores(run).difference(best, MEASURE)
    won, lost = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    counted = (
        f"It finds more than {best.name}, the best of plain search here, for {won} of {len(gains)} questions, and less "
        f"for {lost}."
    )
    if gap.low > 0:
        return f"{counted} {MEASURE.capitalize()} is higher by {gap}."
    if gap.high < 0:
        return f"{counted} {MEASURE.capitalize()} is lower by {-gap.mean:.3f}. {method.without}".strip()
    return f"{counted} The difference in {MEASURE} may be chance. {method.without}".strip()


def _answer(measured: _Measured, i: int, plain: Run, run: Run) -> Answer:
    titles, asked = measured.comparison.titles, measured.asked[i]

    def passages(of: Run) -> list[Passage]:
        names = [[_name(titles.get(name, name)) for name in hit.documents] for hit in of.hits[i]]
        return [
            Passage(name[0] if len(name) == 1 else "a summary", _plain(hit.text), measured.is_hit(hit, i))
            for name, hit in zip(names, of.hits[i], strict=True)
        ]

    needed = [_name(titles.get(document, document)) for document in measured.comparison.questions[i].documents]
    return Answer(asked.question, asked.answer, needed, passages(plain), passages(run))


def flat(text: str) -> str:
    """A text without differences of case and space."""
    return " ".join(text.casefold().split())


def _plain(text: str) -> str:
    """A text without the marks of its headings."""
    return _HEADING.sub("", text)


def _name(file: str) -> str:
    return file.removesuffix(".md")


def _table(runs: Sequence[Run], kinds: Sequence[_Measured]) -> tuple[list[str], list[list[str]]]:
    """The measure of every system on each kind of question."""
    rows = []
    for run in runs:
        intervals = [measured.scores(run).interval(MEASURE) for measured in kinds]
        rows.append([run.name, *(str(i) if len(kinds) == 1 else f"{i.mean:.2f}" for i in intervals)])
    return [MEASURE, *map(_counted, kinds)], rows


def as_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal. Heads that would be too wide are letters, which the lines above the table explain."""
    above: list[str] = []
    if len("  ".join(head)) > TERMINAL:
        above = [f"{letter}: {name}" for letter, name in zip(ascii_lowercase, head[1:], strict=False)]
        head = [head[0], *ascii_lowercase[: len(above)]]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join([f"{line[0]:<{widths[0]}}", *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in (head, *rows)
    ]
    return "\n".join([*above, *lines])


def _publish(staged: Path, target: Path) -> Path:
    """Move the finished pages to their folder, the front page last; pages of an earlier run that are not renewed go."""
    target.mkdir(parents=True, exist_ok=True)
    pages = sorted(staged.glob("*.html"), key=lambda page: (page.name == "index.html", page.name))
    for old in target.glob("*.html"):
        if not (staged / old.name).exists():
            old.unlink()
    for page in pages:
        os.replace(page, target / page.name)
    return target / "index.html"


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")  # before a reader of files sets another level
    logging.getLogger("llama_index").setLevel(logging.ERROR)
    sys.exit(main())
