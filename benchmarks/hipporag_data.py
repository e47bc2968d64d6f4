"""Reads the questions of HippoRAG (2024) as they are published, in the folder `data` of its repository.

Two files stand for a data folder: `musique.json` and `musique_corpus.json` for `musique`, and `2wikimultihopqa.json`
with its corpus for `2wiki`. MuSiQue marks supporting paragraphs; the others name the titles of supporting facts.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["hipporag_data"]

_STEMS = {"2wiki": "2wikimultihopqa"}


def hipporag_data(folder: Path) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]] | None:
    """Passages by id, and questions in the form of `queries.jsonl`; None if there is no such pair of files."""
    stem = _STEMS.get(folder.name, folder.name)
    asked, corpus = folder.with_name(f"{stem}.json"), folder.with_name(f"{stem}_corpus.json")
    if not asked.exists() or not corpus.exists():
        return None
    records = {f"p{number}": passage for number, passage in enumerate(_passages(_read(corpus)))}
    by_text = {(record["title"], record["text"]): name for name, record in records.items()}
    by_title = {record["title"]: name for name, record in reversed(records.items())}
    queries = []
    for row in _read(asked):
        if "supporting_facts" in row:
            gold = [by_title.get(title, title) for title, _ in row["supporting_facts"]]
        else:
            held = [(each["title"], each["text"]) for each in row["paragraphs"] if each["is_supporting"]]
            gold = [by_text.get(each, each[0]) for each in held]
        query = {"id": row.get("id", row.get("_id")), "question": row["question"], "answer": row["answer"]}
        queries.append({**query, "gold": list(dict.fromkeys(gold))})
    return records, queries


def _passages(corpus: Any) -> list[dict[str, Any]]:
    """HotpotQA's corpus has the sentences of each title, the others a list of passages."""
    if isinstance(corpus, Mapping):
        return [{"title": title, "text": "".join(sentences)} for title, sentences in corpus.items()]
    return [{"title": passage["title"], "text": passage["text"]} for passage in corpus]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
