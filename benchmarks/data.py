"""Read a corpus with its labelled questions: a data folder, recorded questions, or the sample archive.

A *passage* is what rankings are made of. A node is a passage, or a chunk of one: then a passage ranks at
the place of its best chunk.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, TextNode

from benchmarks.crud import CRUD_FILE, crud
from benchmarks.hipporag_data import hipporag_data
from llama_index.ragkit.evaluation import LabelledQuery

__all__ = ["Corpus", "Task", "load"]

ARCHIVE_CHUNK = 128  # tokens


@dataclass(frozen=True)
class Corpus:
    """What is indexed.

    Attributes
    ----------
    nodes : what every system indexes, with stable ids
    passage_of : node id -> passage id
    records : passage id -> the line it was read from, with recorded entities, triples and questions if any
    label_of : passage id -> topic, where any passage of a topic is a hit; empty elsewhere
    category_of : passage id -> category, where categories are known
    pages_of : node id -> the pages that a chunk of a whole document lies on, that with most of it first; empty where no
        node lies on two passages
    """

    nodes: tuple[TextNode, ...]
    passage_of: Mapping[str, str]
    records: Mapping[str, Mapping[str, Any]]
    label_of: Mapping[str, str] = field(default_factory=dict)
    category_of: Mapping[str, str] = field(default_factory=dict)
    pages_of: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def fresh_nodes(self) -> list[TextNode]:
        """Copies of the nodes: an index may write into those that it is given."""
        return [node.model_copy(deep=True) for node in self.nodes]

    def passages(self, node_ids: Sequence[str]) -> list[str]:
        """Nodes as passages, each at its first place."""
        return list(dict.fromkeys(page for i in node_ids for page in self.pages_of.get(i, (self.passage_of[i],))))


@dataclass(frozen=True)
class Task:
    """Questions to ask one corpus.

    Attributes
    ----------
    groups_of : question id -> its kinds, for tables by kind; empty where there are no kinds
    multi_aspect : whether the questions ask for several documents each, so that success ratios are of interest
    dropped : ids of questions that have no gold left once missing topics are dropped
    subqueries_of : question -> the queries that an LLM derived from it, where they are recorded
    """

    corpus: Corpus
    queries: tuple[LabelledQuery, ...]
    groups_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    multi_aspect: bool = False
    dropped: tuple[str, ...] = ()
    subqueries_of: Mapping[str, Sequence[str]] = field(default_factory=dict)


def load(
    folder: Path,
    queries: Path | None = None,
    *,
    titled: bool = True,
    documents: bool = False,
    within: bool = False,
    repeated: str = "",
    chunk_tokens: int | None = None,
    needs_questions: bool = True,
) -> list[Task]:
    """The tasks of a folder: one, or one for every side of recorded questions, or one for each document.

    A folder with `articles/` is the sample archive; one with `corpus.jsonl[.gz]` and no questions of its
    own, but with questions in the corpus, is asked those: question k of passage c has the id `c#k` and is
    asked of a corpus that knows only the other questions. `queries` names a file to ask instead; where its ids are
    of that form, it picks among the recorded questions.

    A folder with `documents.jsonl[.gz]` holds whole documents of many pages, of which a passage is one. One with
    `split_merged.json` is CRUD-RAG as it is published: each article is a document of one page. A folder that is not
    there may be two files in the form of HippoRAG's (:mod:`benchmarks.hipporag_data`).

    Parameters
    ----------
    titled : whether the title of a passage stands before its text
    documents : whether passages are read as documents with a file name and cut by the stock splitter, as a directory
        of files would be; whole documents of many pages always are
    within : whether each question is asked of its document alone; for documents of many pages
    repeated : a line that stands before every passage, such as the header of a page
    chunk_tokens : of chunks of whole documents, without overlap; None for the stock splitter as it comes
    needs_questions : False where the corpus alone is wanted, whether it has questions or not
    """
    if not folder.exists() and (published := hipporag_data(folder)):
        return [_task(_corpus(published[0]), published[1])]
    if (folder / CRUD_FILE).exists():
        return list(_filings(*crud(folder / CRUD_FILE), within, chunk_tokens))
    if whole := _found(folder, "documents", needed=False):
        path = queries or _found(folder, "queries", needed=needs_questions)
        asked = [] if path is None else list(_lines(path))
        return list(_filings(list(_lines(whole)), asked, within, chunk_tokens))
    if (folder / "articles").is_dir():
        corpus = _archive(folder / "articles")
        return [_task(_split(corpus) if documents else corpus, list(_lines(queries or folder / "questions.jsonl")))]
    records = {str(row.get("id", row.get("doc_id"))): row for row in _lines(_found(folder, "corpus"))}
    if not titled:
        records = {key: {**row, "title": None} for key, row in records.items()}
    if repeated:
        records = {key: {**row, "title": _lines_of(repeated, row.get("title"))} for key, row in records.items()}
    if not needs_questions:
        return [_task(_corpus(records), [])]
    own = _found(folder, "queries", needed=False)
    rows = list(_lines(queries or own)) if queries or own else None
    if own is None and (rows is None or all("#" in str(row["id"]) for row in rows)):
        return _recorded(records, None if rows is None else {str(row["id"]) for row in rows})
    corpus = _corpus(records)
    return [_task(_split(corpus) if documents else corpus, rows or [])]


def _recorded(records: Mapping[str, Mapping[str, Any]], wanted: Set[str] | None) -> list[Task]:
    questions = {passage: list(row.get("questions", ())) for passage, row in records.items()}
    sides = max((len(asked) for asked in questions.values()), default=0)
    if sides < 2:
        raise SystemExit("There is no queries.jsonl[.gz], and the corpus has no two recorded questions a passage.")
    tasks = []
    for side in range(sides):
        known = {
            passage: {**row, "questions": questions[passage][:side] + questions[passage][side + 1 :]}
            for passage, row in records.items()
        }
        asked = [
            LabelledQuery(f"{passage}#{side}", mine[side], gold=(passage,))
            for passage, mine in questions.items()
            if side < len(mine) and (wanted is None or f"{passage}#{side}" in wanted)
        ]
        tasks.append(Task(_corpus(known), tuple(asked)))
    unknown = sorted((wanted or set()) - {query.id for task in tasks for query in task.queries})
    if unknown:
        raise SystemExit(f"The corpus has no recorded questions {unknown[:3]}.")
    return tasks


def _corpus(records: Mapping[str, Mapping[str, Any]]) -> Corpus:
    nodes = []
    for passage, row in records.items():
        title = row.get("title")
        nodes.append(TextNode(id_=passage, text=f"{title}\n{row['text']}" if title else row["text"]))
    return Corpus(
        nodes=tuple(nodes),
        passage_of={passage: passage for passage in records},
        records=records,
        label_of={passage: row["topic"] for passage, row in records.items() if "topic" in row},
        category_of={passage: row["category"] for passage, row in records.items() if "category" in row},
    )


def _lines_of(*lines: str | None) -> str:
    return "\n".join(line for line in lines if line)


def _split(corpus: Corpus) -> Corpus:
    """The passages as files with a name, cut by the stock splitter."""
    passage_of = {}
    files = []
    for passage, row in corpus.records.items():
        files.append(_document(passage, _lines_of(row.get("title"), row["text"])))
    nodes = SentenceSplitter(id_func=_chunk_id).get_nodes_from_documents(files)
    for node in nodes:
        passage_of[node.node_id] = str(node.ref_doc_id)
    return replace(corpus, nodes=tuple(nodes), passage_of=passage_of)  # type: ignore[arg-type]


def _document(name: str, text: str) -> Document:
    """A file as `SimpleDirectoryReader` reads it: its name is metadata, which no model reads."""
    hidden = ["file_name"]
    return Document(
        text=text,
        id_=name,
        metadata={"file_name": f"{name}.txt"},
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
    )


def _chunk_id(place: int, document: BaseNode) -> str:
    return f"{document.node_id}/{place}"


def _filings(
    documents: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], within: bool, chunk_tokens: int | None
) -> Iterator[Task]:
    """Whole documents, their pages joined, cut by the stock splitter; a passage is a page.

    One task for all documents, or one for each that a question is about.
    """
    if not within:
        yield _task(_pages(documents, chunk_tokens), rows)
        return
    for document in documents:
        asked = [row for row in rows if row["doc"] == document["id"]]
        if asked:
            yield _task(_pages([document], chunk_tokens), asked)


def _pages(documents: Sequence[Mapping[str, Any]], chunk_tokens: int | None) -> Corpus:
    splitter = SentenceSplitter(id_func=_chunk_id)
    if chunk_tokens is not None:
        splitter = SentenceSplitter(chunk_size=chunk_tokens, chunk_overlap=0, id_func=_chunk_id)
    nodes: list[BaseNode] = []
    pages_of: dict[str, Sequence[str]] = {}
    records: dict[str, Mapping[str, Any]] = {}
    for document in documents:
        names = [f"{document['id']}#{number}" for number in range(len(document["pages"]))]
        records |= {name: {"id": name, "text": text} for name, text in zip(names, document["pages"], strict=True)}
        ends = np.cumsum([len(page) + 1 for page in document["pages"]])
        for node in splitter.get_nodes_from_documents([_document(document["id"], "\n".join(document["pages"]))]):
            start, end = node.start_char_idx or 0, node.end_char_idx or 0  # type: ignore[attr-defined]
            first, last = np.searchsorted(ends, [start, max(start, end - 1)], side="right").tolist()
            held = {
                page: min(end, int(ends[page])) - max(start, int(ends[page]) - len(document["pages"][page]) - 1)
                for page in range(first, min(last, len(names) - 1) + 1)
            }
            pages_of[node.node_id] = [names[page] for page in sorted(held, key=lambda page: -held[page])]
            nodes.append(node)
    return Corpus(
        nodes=tuple(nodes),  # type: ignore[arg-type]
        passage_of={node_id: pages[0] for node_id, pages in pages_of.items()},
        records=records,
        pages_of=pages_of,
    )


def _archive(folder: Path) -> Corpus:
    splitter = SentenceSplitter(chunk_size=ARCHIVE_CHUNK, chunk_overlap=0)
    nodes: list[TextNode] = []
    passage_of, records = {}, {}
    for path in sorted(folder.glob("*.md")):
        heading, text = re.match(r"(?:# *(.*)\n)?([\s\S]*)", path.read_text(encoding="utf-8")).groups()  # type: ignore[union-attr]
        title = heading or path.stem
        records[path.stem] = {"id": path.stem, "title": title, "text": text}
        for i, chunk in enumerate(splitter.split_text(text.strip())):
            node = TextNode(id_=f"{path.stem}#{i}", text=f"{title}\n{chunk}")
            nodes.append(node)
            passage_of[node.node_id] = path.stem
    return Corpus(nodes=tuple(nodes), passage_of=passage_of, records=records)


def _task(corpus: Corpus, rows: Sequence[Mapping[str, Any]]) -> Task:
    queries, dropped = [], []
    groups_of: dict[str, Sequence[str]] = {}
    for row in rows:
        query_id = str(row["id"])
        gold = _gold(row)
        answer = row.get("answers", row.get("answer", ()))
        answers = (answer,) if isinstance(answer, str) else tuple(answer)
        known = corpus.label_of.values() if "gold_topics" in row else corpus.records
        unknown = sorted(set(gold or ()) - set(known))
        if unknown:
            raise SystemExit(f"The gold of question {query_id} is not in the corpus: {unknown[:3]}")
        if gold == ():
            dropped.append(query_id)
            continue
        queries.append(LabelledQuery(query_id, row["question"], gold or (), answers, tuple(row.get("options", ()))))
        if "kind" in row:
            groups_of[query_id] = [str(row["kind"])]
        elif "aspects" in row:
            pooled = ["n >= 5"] if row["aspects"] >= 5 else []
            groups_of[query_id] = [f"n = {row['aspects']}", *pooled]
    recorded = {row["question"]: row["recorded_subqueries"] for row in rows if row.get("recorded_subqueries")}
    return Task(corpus, tuple(queries), groups_of, any("aspects" in row for row in rows), tuple(dropped), recorded)


def _gold(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Gold ids; () if all its topics are missing from the corpus; None where the file has no labels."""
    if "gold_topics" in row:
        missing = set(row.get("missing_topics", ()))
        return tuple(topic for topic in row["gold_topics"] if topic not in missing)
    return tuple(row["gold"]) if row.get("gold") else None


def _found(folder: Path, name: str, needed: bool = True) -> Path | None:
    for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl"):
        if path.exists():
            return path
    if needed:
        raise SystemExit(f"{folder} has no {name}.jsonl, gzipped or not; docs/reproducing.md describes data folders.")
    return None


def _lines(path: Path | None) -> Iterator[dict[str, Any]]:
    if path is None or not path.exists():
        raise SystemExit(f"There is no file {path}.")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())
