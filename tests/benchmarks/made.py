"""Small made corpora in the form of the data folders."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

KEEPERS = ("Ada Hale", "Ben Orr", "Cora Finch", "Dan Lowe", "Eve Marsh", "Finn Gray", "Gwen Pike", "Hal Stone")
PORTS = ("Port Ellis", "Lowmouth", "Saint Brand", "Harrow Bay", "Tarn", "Quill Point", "Old Weir", "Dunmere")


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def two_hops(folder: Path, triples: bool = True) -> Path:
    """Eight lamps with their keepers, who come from ports; a question needs both passages. With recorded triples.

    REBEL has not read the lamps with an odd number, which have the longer passages.
    """
    corpus, queries = [], []
    for i, (keeper, port) in enumerate(zip(KEEPERS, PORTS, strict=True)):
        said = [(f"Lamp {i}", "was kept by", keeper), (keeper, "was born in", port)]
        for j, (head, relation, tail) in enumerate(said):
            row: dict[str, Any] = {"id": f"p{i}{j}", "title": head, "text": f"{head} {relation} {tail}."}
            if triples:
                row |= {"entities": [head, tail], "triples": [[head, relation, tail]]}
                row |= {"rebel": [] if i % 2 else [[head, relation, tail]]}
            corpus.append(row)
        question = f"Where was the keeper of Lamp {i} born?"
        queries.append({"id": f"q{i}", "question": question, "answer": port, "gold": [f"p{i}0", f"p{i}1"]})
    write(folder / "corpus.jsonl.gz", corpus)
    write(folder / "queries.jsonl.gz", queries)
    return folder


def stories(folder: Path, aspects: Iterable[int], recorded: int = 0) -> Path:
    """Articles of five categories, and stories; the recorded queries are about four articles, from `recorded` on."""
    places = [f"{keeper} of {port}" for keeper in KEEPERS for port in PORTS]
    corpus = [
        {"id": f"a{i}", "title": place, "text": f"{place} made lamps.", "category": f"c{i % 5}"}
        for i, place in enumerate(places)
    ]
    asked = [f"{i}. {place}" for i, place in enumerate(places[recorded : recorded + 4], start=1)]
    queries = []
    for n in aspects:
        told = [places[i] for i in range(n)]
        question = f"A story of {n}. " + " ".join(f"There was {place}." for place in told)
        queries.append(
            {"id": f"n{n}", "question": question, "aspects": n, "gold": [f"a{i}" for i in range(n)]}
            | {"recorded_subqueries": asked}
        )
    write(folder / "corpus.jsonl.gz", corpus)
    write(folder / "queries.jsonl.gz", queries)
    return folder


def articles(folder: Path) -> Path:
    """Eight articles, each with two questions of which one is hard; the keeper comes from another port in each."""
    documents = [
        {
            "id": f"d{i}",
            "pages": [f"The keeper of the lamp came from {port}. He trimmed the wick.", "The sea was calm."],
        }
        for i, port in enumerate(PORTS)
    ]
    queries = [
        {"id": f"d{i}{kind}", "question": "Where did the keeper come from?", "doc": f"d{i}", "kind": kind}
        | {"options": [PORTS[(i + 1) % 8], port, PORTS[(i + 2) % 8]], "answer": port}
        for i, port in enumerate(PORTS)
        for kind in ("easy", "HARD")
    ]
    write(folder / "documents.jsonl.gz", documents)
    write(folder / "queries.jsonl.gz", queries)
    return folder


def crud(folder: Path, count: int = 4) -> Path:
    """Articles in the form of CRUD-RAG: question n of each task is on the articles from n on."""

    def news(i: int) -> str:
        keeper, port = KEEPERS[i % 8], PORTS[i % 8]
        return f"{keeper} kept Lamp {i}. {keeper} came from {port}. The tower of Lamp {i} is {20 + i} metres tall."

    def item(n: int, articles: int) -> dict[str, Any]:
        said = " ".join(f"{KEEPERS[(n + k) % 8]} came from {PORTS[(n + k) % 8]}." for k in range(articles))
        asked = " and ".join(f"Lamp {n + k}" for k in range(articles))
        told = {f"news{k + 1}": news(n + k) for k in range(articles)}
        return {"ID": f"i{n}", "event": "e", **told, "questions": f"Where did the keeper of {asked} come from?"} | {
            "answers": said
        }

    tasks = {"questanswer_1doc": 1, "questanswer_2docs": 2, "questanswer_3docs": 3}
    data = {task: [item(n, articles) for n in range(count)] for task, articles in tasks.items()}
    data["questanswer_1doc"].append({"ID": "empty", "news1": news(0), "questions": "", "answers": ""})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "split_merged.json").write_text(json.dumps(data))
    return folder


def hipporag_files(folder: Path) -> Path:
    """The lamps of :func:`two_hops` in the form of HippoRAG's repository: three pairs of files."""
    rows = [(f"Lamp {i}", f"Lamp {i} was kept by {keeper}.", keeper) for i, keeper in enumerate(KEEPERS)]
    rows += [(keeper, f"{keeper} was born in {port}.", port) for keeper, port in zip(KEEPERS, PORTS, strict=True)]
    passages = [{"title": title, "text": text, "idx": number} for number, (title, text, _) in enumerate(rows)]
    questions = [
        {"question": f"Where was the keeper of Lamp {i} born?", "answer": PORTS[i]}
        | {"supporting": [passages[i], passages[i + len(KEEPERS)]]}
        for i in range(len(KEEPERS))
    ]
    musique = [
        {"id": f"q{i}", "question": row["question"], "answer": row["answer"]}
        | {"paragraphs": [{**each, "is_supporting": each in row["supporting"]} for each in passages]}
        for i, row in enumerate(questions)
    ]
    by_title = [
        {"_id": f"q{i}", "question": row["question"], "answer": row["answer"]}
        | {"supporting_facts": [[each["title"], 0] for each in (*row["supporting"], row["supporting"][0])]}
        for i, row in enumerate(questions)
    ]
    sentences = {each["title"]: [each["text"]] for each in passages}
    folder.mkdir(parents=True, exist_ok=True)
    for name, asked, corpus in (
        ("musique", musique, passages),
        ("2wikimultihopqa", by_title, passages),
        ("hotpotqa", by_title, sentences),
    ):
        (folder / f"{name}.json").write_text(json.dumps(asked))
        (folder / f"{name}_corpus.json").write_text(json.dumps(corpus))
    return folder
