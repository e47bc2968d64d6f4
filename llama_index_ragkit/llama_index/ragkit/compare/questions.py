"""The questions of a comparison: the user's, or made from the texts.

Made without an LLM, a question is a sentence or a heading of a document, which is then left out of the texts that are
searched: the document should be found by the rest of it. Such questions use the words of the text, which favours BM25.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import Document

from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError, ParseError
from llama_index.ragkit.extraction.context import ExtractionContext
from llama_index.ragkit.llm.announcements import plain_lines
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.text.headings import split_heading
from llama_index.ragkit.text.sentences import sentence_spans

__all__ = ["Question", "held_out", "pages_of_files", "read_questions", "with_documents", "written"]

_SHORTEST, _LONGEST = 6, 40  # words of a held-out sentence
_FIELDS = 2  # a row of a table has as many values with their names
_PASSAGE = 1500  # characters that the LLM reads for a question
_MARKS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
_JSON = re.compile(r'\{|\[\s*(?:[{"]|$)')  # how a line of JSON begins
PROMPT = PromptTemplate(
    "Write one question that the passage below answers and that somebody would ask who has not read it. Name what it "
    "is about, use your own words, and reply with the question alone.\n\n{passage}"
)


@dataclass(frozen=True)
class Question:
    """A question, and the documents that answer it and the correct answers, if they are known.

    Attributes
    ----------
    documents : ids of documents; names of files, with or without ending, are understood too. A file whose reader gives
        a document a page counts once, and any page of it answers; `name#3` is its third page alone
    answers : correct answers, any of which will do
    """

    text: str
    documents: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("documents", "answers"):  # one may be given as a text
            object.__setattr__(self, name, _texts(getattr(self, name)))


def read_questions(path: str | Path) -> list[Question]:
    """Questions of a file in UTF-8: one a line, or one JSON object a line.

    An object has `question`, and may have `documents` (or `gold`), the documents that answer it, and `answers` (or
    `answer`), the correct answers.

    Raises
    ------
    ConfigurationError
        If the file is not in UTF-8, a line cannot be read, or there are none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error}.") from error
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            found.append(_read(line.strip(), f"{path}, line {number}"))
    if not found:
        raise ConfigurationError(f"{path} has no questions: write one per line.")
    return found


def _read(line: str, place: str) -> Question:
    if not _JSON.match(line):
        return Question(line)
    try:
        given = json.loads(line)
        documents = given.get("documents", given.get("gold"))
        answers = given.get("answers", given.get("answer"))
        return Question(_text(given["question"]), _texts(documents), _texts(answers))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{place} is not a question: {line[:80]!r}. Write one per line, as plain text or as "
            '{"question": "...", "documents": ["..."], "answers": ["..."]}.'
        ) from error


def _texts(given: Any) -> tuple[str, ...]:
    """Texts; one may stand alone, and None is for none."""
    if given is None:
        return ()
    return tuple(map(_text, [given] if isinstance(given, str | int | float | Mapping) else given))


def _text(given: Any) -> str:
    if not isinstance(given, str | int | float) or not str(given).strip():
        raise ConfigurationError(f"A question, its documents and its answers are texts, not {given!r}.")
    return str(given)


def with_documents(
    questions: Iterable[Question], documents: Sequence[Document], skipped: Mapping[str, str] = MappingProxyType({})
) -> list[Question]:
    """The questions with ids of documents in place of names of files; a file of several pages is one document.

    A `ConfigurationError` is raised if a document is unknown, with the reason if its file was `skipped`.
    """
    file_of = pages_of_files(documents)
    ids: dict[str, dict[str, None]] = {}
    for document in documents:
        for name in _file_names(document):
            ids.setdefault(name, {})[file_of.get(document.id_, document.id_)] = None
    for document in documents:  # an id means that document, also where it looks like a file
        page = document.metadata.get("page_label")
        for name in (document.id_, *(f"{name}#{page}" for name in _file_names(document) if page)):
            ids[name] = {document.id_: None}
    found = []
    for question in questions:
        unknown = [name for name in question.documents if name not in ids]
        if unknown:
            file = unknown[0].partition("#")[0]
            reasons = [why for path, why in skipped.items() if file in (path, Path(path).name, Path(path).stem)]
            why = f"was skipped: {reasons[0]}" if reasons else "is not a document."
            raise ConfigurationError(f"The question {question.text!r} names {unknown[0]!r}, which {why}")
        found.append(replace(question, documents=tuple(dict.fromkeys(i for n in question.documents for i in ids[n]))))
    return found


def pages_of_files(documents: Sequence[Document]) -> dict[str, str]:
    """Id of a document -> the file that it is a page of; documents that are a whole file are not among them."""
    files = {document.id_: _file(document) for document in documents}
    counted = Counter(files.values())
    return {name: file for name, file in files.items() if file and counted[file] > 1}


def _file(document: Document) -> str:
    return str(document.metadata.get("file_path") or document.metadata.get("file_name") or "")


def _file_names(document: Document) -> set[str]:
    metadata: Mapping[str, Any] = document.metadata
    files = [Path(str(metadata[key])) for key in ("file_name", "file_path") if metadata.get(key)]
    return {name for file in files for name in (str(file), file.name, file.stem)}


def held_out(documents: Sequence[Document], count: int, seed: int) -> tuple[list[Document], list[Question]]:
    """Up to `count` sentences and headings as questions, of documents in random order, and the documents without them.

    One question a document, a heading of every second one that has any; documents of fewer than three sentences are
    left whole. A row of a table ("name: ... date: ...") is no question.
    """
    order = list(range(len(documents)))
    random.Random(seed).shuffle(order)
    changed: dict[int, Document] = {}
    questions: list[Question] = []
    for i in order:
        if len(questions) == count:
            break
        text = documents[i].text
        chosen = _choose(text, random.Random(f"{seed} {i}"), heading=len(questions) % 2 == 0)
        if chosen is None:
            continue
        start, end, question = chosen
        changed[i] = documents[i].model_copy(deep=True)
        changed[i].set_content(text[:start] + text[end:])
        questions.append(Question(question, (documents[i].id_,)))
    return [changed.get(i, document) for i, document in enumerate(documents)], questions


def _choose(text: str, rng: random.Random, heading: bool) -> tuple[int, int, str] | None:
    spans = [(a, b) for a, b in sentence_spans(text) if text[a:b].strip()]
    if len(spans) < 3:
        return None
    title, rest = split_heading(text)
    if heading and title and len(title.split()) > 1:
        return 0, len(text) - len(rest), title
    body = [(a, b) for a, b in spans[1:] if _is_asked(text[a:b])]
    if not body:
        return None
    start, end = rng.choice(body)
    return start, end, " ".join(text[start:end].split())


def _is_asked(sentence: str) -> bool:
    return _SHORTEST <= len(sentence.split()) <= _LONGEST and sentence.count(": ") < _FIELDS


def written(
    documents: Sequence[Document], llm: LLM, cache: ExtractionCache | None, count: int, seed: int
) -> list[Question]:
    """Up to `count` questions that an LLM writes, each about a passage of a document; those that fail are left out,
    unless all do, or every further call would fail too.
    """
    order = [document for document in documents if document.text.strip()]
    random.Random(seed).shuffle(order)
    questions, failure = [], None
    for document in order[:count]:
        start = random.Random(f"{seed} {document.id_}").randrange(max(1, len(document.text) - _PASSAGE + 1))
        passage = document.text[start : start + _PASSAGE]
        context = ExtractionContext(llm, cache, "compare", RetryPolicy())
        try:
            text = run_steps(
                context.complete(PROMPT, parse=_question, reply_tokens=128, passage=PromptTexts([passage]))
            )
        except LanguageModelError:
            raise
        except ExtractionError as error:
            failure = error
        else:
            questions.append(Question(text, (document.id_,)))
    if failure is not None and not questions:
        raise failure
    return questions


def _question(reply: str) -> str:
    lines = [line.strip(" \"'*-") for line in plain_lines(reply)]
    asked = [line for line in lines if line.endswith(_MARKS)] or lines
    if not asked:
        raise ParseError("The reply contains no question.")
    return asked[-1]
