"""Reads CRUD-RAG (Lyu et al. 2024) as it is published: `data/crud_split/split_merged.json` of its repository.

Its three tasks of questions and answers, over one, two and three articles of news, are those of PG-RAG's table 1. The
corpus is the articles of all questions, each once.
"""

import json
from pathlib import Path
from typing import Any

__all__ = ["CRUD_FILE", "crud"]

CRUD_FILE = "split_merged.json"
_TASKS = {"1-Document": "questanswer_1doc", "2-Document": "questanswer_2docs", "3-Document": "questanswer_3docs"}


def crud(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Documents and questions in the form of `documents.jsonl` and its `queries.jsonl`; the kind is the task.

    Questions without a text or an answer, of which the file has some, are left out.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, str] = {}
    queries = []
    for kind, task in _TASKS.items():
        for number, row in enumerate(data.get(task, ())):
            articles = [row[key] for key in ("news1", "news2", "news3") if row.get(key)]
            for text in articles:
                names.setdefault(text, f"news-{len(names)}")
            if not (row.get("questions") or "").strip() or not (row.get("answers") or "").strip():
                continue
            query = {"id": f"{task}-{number}", "question": row["questions"], "answer": row["answers"], "kind": kind}
            queries.append({**query, "gold": [f"{names[text]}#0" for text in dict.fromkeys(articles)]})
    return [{"id": name, "pages": [text]} for text, name in names.items()], queries
