"""Evidence coverage at equal tokens, for spRAG: documents of many pages, questions with the text of their evidence.

    python -m benchmarks.coverage --data FOLDER/financebench --half 0     # the half that constants are chosen on
    python -m benchmarks.coverage --data FOLDER/financebench --half 1     # the half that is reported

Every system fills a context of the same number of tokens. Coverage is the share of the evidence's words that the
context holds from the evidence's own page; page recall the share of gold pages of which it has a part. `--lexical`
ranks by words alone, so that nothing is embedded; `--within` asks of the question's document alone. The last table
takes rankings of chunks as rankings of pages, each at the place of its best chunk.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25 import BM25Retriever
from numpy.typing import NDArray

from benchmarks.embedding import minilm
from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.evaluation import bootstrap_interval, paired_bootstrap
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.sprag import RuleContext, SpRAGIndex
from llama_index.sprag.config import Mode
from llama_index.sprag.evaluation import evidence_coverage, page_recall, within_tokens

__all__ = ["Collection", "Question", "Systems", "load", "main", "scores"]

BUDGETS = (2000, 4000, 8000)
CHUNK = 256  # tokens
BASELINE = "hybrid"
RANKINGS = ("BM25", "dense", BASELINE, "context")  # those that rank chunks, so that pages have places
PAGES = (5, 10, 20)
_UNLIMITED = 10**9  # tokens
NO_CONTEXT: Mapping[str, Any] = {"title": False, "sections": False, "first_lines": 0}

Found = Sequence[NodeWithScore]
Numbers = NDArray[np.float64]
System = Callable[["Question", int], Found]


@dataclass(frozen=True)
class Question:
    """A question with its evidence."""

    text: str
    document: str
    gold: tuple[str, ...]
    evidence: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Collection:
    """Chunks of all documents; the id of a LlamaIndex document is that of its page."""

    pages: Sequence[Document]
    nodes: Sequence[BaseNode]
    questions: Sequence[Question]

    @cached_property
    def pages_of(self) -> dict[str, list[str]]:
        """The ids of the pages of each document."""
        found: dict[str, list[str]] = {}
        for page in self.pages:
            found.setdefault(page.id_.split("#")[0], []).append(page.id_)
        return found

    @cached_property
    def by_id(self) -> dict[str, BaseNode]:
        """The chunks by id."""
        return {node.node_id: node for node in self.nodes}


def load(folder: Path, half: int | None, documents: int | None = None) -> Collection:
    """Pages as LlamaIndex documents, their chunks, and the questions of a half: every other one, from `half`.

    Parameters
    ----------
    documents : only so many documents, the first of the file, with their questions; None for all
    """
    pages = []
    rows = _lines(folder / "documents.jsonl.gz")[:documents]
    for row in rows:
        for number, text in enumerate(row["pages"]):
            metadata = {"file_path": f"{row['id']}.pdf", "page_label": str(number)}
            hidden = list(metadata)
            pages.append(
                Document(
                    text=text,
                    id_=f"{row['id']}#{number}",
                    metadata=metadata,
                    excluded_embed_metadata_keys=hidden,
                    excluded_llm_metadata_keys=hidden,
                )
            )
    nodes = SentenceSplitter(chunk_size=CHUNK, chunk_overlap=0)(pages)
    questions = [
        Question(
            row["question"],
            row["doc"],
            tuple(row["gold"]),
            tuple((each["page"], each["text"]) for each in row["evidence"]),
        )
        for row in _lines(folder / "queries.jsonl.gz")
    ]
    known = {row["id"] for row in rows}
    chosen = questions if half is None else questions[half::2]
    return Collection(pages, nodes, [question for question in chosen if question.document in known])


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Systems:
    """What is compared: question, budget in tokens -> results, best first."""

    def __init__(self, collection: Collection, *, lexical: bool, within: bool, options: Mapping[str, Any]) -> None:
        self._collection = collection
        self._within = within
        self._weight = {"lexical_weight": 1.0} if lexical else {}
        self._options = options
        self._model: Any = MockEmbedding(embed_dim=8) if lexical else minilm()
        self.plain, self.contextual = self._index(**NO_CONTEXT), self._index()
        self._keyword_searches: dict[str, BM25Retriever] = {}

    def all(self) -> dict[str, System]:
        """Ours and their peers by name."""
        found = {
            BASELINE: self._ours(self.plain, "chunks"),
            "context": self._ours(self.contextual, "chunks"),
            "segments": self._ours(self.plain, "segments"),
            "context + segments": self._ours(self.contextual, "segments"),
            "hybrid, PrevNext": self._previous_and_next(),
            "BM25": self._bm25,
        }
        if not self._weight:
            found["dense"] = self._ours(self.plain, "chunks", lexical_weight=0.0)
            found["AutoMerging"] = self._auto_merging()
        return found

    def _index(self, **context: Any) -> SpRAGIndex:
        nodes = [node.model_copy(deep=True) for node in self._collection.nodes]
        return SpRAGIndex(nodes, extractor=RuleContext(**context), embed_model=self._model)

    def _ours(self, index: SpRAGIndex, mode: Mode, **own: Any) -> System:
        keywords = {**self._weight, **self._options, **own}

        def retrieve(question: Question, budget: int) -> Found:
            only = {"doc_ids": self._collection.pages_of[question.document]} if self._within else {}
            retriever = index.as_retriever(mode=mode, similarity_top_k=500, token_budget=budget, **keywords, **only)
            return retriever.retrieve(question.text)

        return retrieve

    def _previous_and_next(self) -> System:
        """Core's neighbours of a third as many of the same chunks."""
        store = SimpleDocumentStore()
        store.add_documents(list(self._collection.nodes))
        expand = PrevNextNodePostprocessor(docstore=store, num_nodes=1, mode="both")
        chunks = self._ours(self.plain, "chunks")
        return lambda question, budget: expand.postprocess_nodes(list(chunks(question, budget // 3)))

    def _bm25(self, question: Question, budget: int) -> Found:
        document = question.document if self._within else ""
        if document not in self._keyword_searches:
            nodes = [node for node in self._collection.nodes if (node.ref_doc_id or "").startswith(f"{document}#")]
            given = nodes if document else list(self._collection.nodes)
            self._keyword_searches[document] = BM25Retriever.from_defaults(
                nodes=given, similarity_top_k=min(200, len(given)), verbose=False
            )
        return self._keyword_searches[document].retrieve(question.text)

    def _auto_merging(self) -> System:
        """Core's retriever of parents, over leaves of the same size as the chunks of the others."""
        parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[4 * CHUNK, CHUNK], chunk_overlap=0)
        nodes = parser.get_nodes_from_documents(list(self._collection.pages))
        context = StorageContext.from_defaults(vector_store=MatrixVectorStore())
        context.docstore.add_documents(nodes)
        leaves = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=context, embed_model=self._model)

        def retrieve(question: Question, budget: int) -> Found:
            file = MetadataFilter(key="file_path", value=f"{question.document}.pdf")
            filters = MetadataFilters(filters=[file]) if self._within else None
            near = leaves.as_retriever(similarity_top_k=50, filters=filters)
            return AutoMergingRetriever(near, context, verbose=False).retrieve(question.text)

        return retrieve


def scores(collection: Collection, question: Question, found: Found, budget: int) -> tuple[float, float]:
    """Coverage of the evidence, and recall of its pages, by the first results that fit the budget."""
    chunk = collection.by_id
    lengths = [count_tokens(result.node.get_content(metadata_mode=MetadataMode.LLM)) for result in found]
    parts = []
    for place in within_tokens(lengths, budget):
        node = found[place].node
        ids = node.metadata.get("sprag_chunks", [node.node_id])
        nodes = [chunk[i] for i in ids] if all(i in chunk for i in ids) else [node]
        parts += [(each.ref_doc_id or "", each.get_content(metadata_mode=MetadataMode.NONE)) for each in nodes]
    return evidence_coverage(question.evidence, parts), page_recall([page for page, _ in parts], question.gold)


def pages_at(collection: Collection, question: Question, found: Found) -> list[float]:
    """Recall of the gold pages by the first 5, 10 and 20 pages of a ranking of chunks."""
    pages = list(dict.fromkeys(collection.by_id[result.node.node_id].ref_doc_id or "" for result in found))
    return [page_recall(pages[:k], question.gold) for k in PAGES]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    options = _options(sys.argv[1:] if arguments is None else arguments)
    collection = load(options.data, options.half, options.documents)
    systems = Systems(collection, lexical=options.lexical, within=options.within, options=dict(options.option)).all()
    where = "the question's document alone" if options.within else "all documents"
    counts = {"questions": collection.questions, "documents": collection.pages_of, "pages": collection.pages}
    print(", ".join(f"{len(items)} {name}" for name, items in counts.items()), end=", ")
    print(f"{len(collection.nodes)} chunks; asked of {where}\n")
    table = {
        (name, budget): np.array([scores(collection, q, system(q, budget), budget) for q in collection.questions])
        for name, system in systems.items()
        for budget in BUDGETS
    }
    print("| system | tokens | coverage | coverage - hybrid | page recall | page recall - hybrid |")
    print("|---|---|---|---|---|---|")
    for (name, budget), rows in table.items():
        base = table[BASELINE, budget]
        cells = [f"{bootstrap_interval(rows[:, k])} | {_difference(rows[:, k], base[:, k])}" for k in (0, 1)]
        print(f"| {name} | {budget} | {' | '.join(cells)} |")
    print("\n| ranking of chunks | " + " | ".join(f"pages R@{k}" for k in PAGES) + " |")
    print("|---|" + "---|" * len(PAGES))
    for name in (name for name in RANKINGS if name in systems):
        found = np.array([pages_at(collection, q, systems[name](q, _UNLIMITED)) for q in collection.questions])
        print(f"| {name} | " + " | ".join(f"{column.mean():.3f}" for column in found.T) + " |")


def _difference(scores: Numbers, base: Numbers) -> str:
    difference = paired_bootstrap(scores, base)
    return f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, help="a folder with documents.jsonl.gz and queries.jsonl.gz"
    )
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other question, from this one; default all")
    parser.add_argument("--documents", type=int, help="the first so many documents of the file and their questions")
    parser.add_argument("--lexical", action="store_true", help="rank by words alone; nothing is embedded")
    parser.add_argument("--within", action="store_true", help="ask of the question's document alone")
    parser.add_argument(
        "--option", type=_option, action="append", default=[], help="NAME=JSON, a keyword of our retriever; repeatable"
    )
    return parser.parse_args(arguments)


def _option(given: str) -> tuple[str, Any]:
    name, _, value = given.partition("=")
    return name, json.loads(value)


if __name__ == "__main__":
    main()
