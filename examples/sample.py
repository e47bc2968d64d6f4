"""The texts of `examples/archive`, and the questions about them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core import Document

from llama_index.ragkit.evaluation import LabelledQuery
from llama_index.ragkit.reading import read_folder

__all__ = ["ARCHIVE", "KINDS", "Asked", "archive", "labelled", "sample_questions", "sample_texts"]

ARCHIVE = Path(__file__).parent / "archive"

KINDS: Mapping[str, str] = {
    "fact": "a single fact",
    "chain": "a chain of facts",
    "riddle": "a chain, described in other words",
    "network": "everything that one person made",
    "subjects": "several subjects, by name",
    "aspects": "several subjects, described",
    "theme": "a theme",
    "report": "one of many similar reports",
}
"""The kinds of question that the demo asks, in words."""


@dataclass(frozen=True)
class Asked:
    """A question of the demo: its kind, the expected answer, and the names of the texts that it takes."""

    kind: str
    question: str
    answer: str
    texts: tuple[str, ...]


def sample_texts() -> list[Document]:
    """The articles and the register, read as any folder is."""
    return [*read_folder(ARCHIVE / "articles").documents, *read_folder(ARCHIVE / "register").documents]


def sample_questions() -> list[Asked]:
    """The questions that the demo reports: of the register, and of the articles those no constant was chosen on."""
    articles = _rows("questions.jsonl")
    reported = [row for kind in ("fact", "chain", "aspects", "theme") for row in _of(articles, kind)[1::2]]
    other_names = {"chain": "riddle"}, {"aspects": "subjects"}
    return [
        Asked(names.get(row["kind"], row["kind"]), row["question"], row["answer"], tuple(row["gold"]))
        for rows, names in zip((reported, _rows("register.jsonl")), other_names, strict=True)
        for row in rows
    ]


def archive() -> list[Document]:
    """The articles alone, with their titles in the metadata."""
    documents = []
    for path in sorted((ARCHIVE / "articles").glob("*.md")):
        title, _, text = path.read_text(encoding="utf-8").removeprefix("# ").partition("\n")
        title = title.replace("*", "")  # emphasis
        hidden = {"excluded_llm_metadata_keys": ["title"]}  # answers quote the texts; the title is shown separately
        documents.append(Document(text=text.strip(), id_=path.stem, metadata={"title": title}, **hidden))
    return documents


def labelled() -> dict[str, list[LabelledQuery]]:
    """The questions about the articles by kind."""
    rows = _rows("questions.jsonl")
    return {
        kind: [LabelledQuery(row["id"], row["question"], tuple(row["gold"])) for row in _of(rows, kind)]
        for kind in dict.fromkeys(row["kind"] for row in rows)
    }


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ARCHIVE / name).read_text(encoding="utf-8").splitlines()]


def _of(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]
