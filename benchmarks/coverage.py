"""Evidence coverage at equal tokens, for spRAG: documents of many pages, questions with the text of their evidence.

    python -m benchmarks.coverage --data FOLDER/financebench --half 0     # the half that constants are chosen on
    python -m benchmarks.coverage --data FOLDER/financebench --half 1     # the half that is reported

Every system fills a context of the same number of tokens. Coverage is the share of the evidence's words that the
context holds from the evidence's own page; page recall the share of gold pages of which it has a part. `--lexical`
ranks by words alone, so that nothing is embedded; `--within` asks of the question's document alone.
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
from llama_index.retrievers.bm25 import BM25Retriever

from benchmarks.embedding import minilm
from llama_index.ragkit import MatrixVectorStore, count_tokens
from llama_index.ragkit.evaluation import bootstrap_interval, paired_bootstrap
from llama_index.sprag import RuleContext, SpRAGIndex
from llama_index.sprag.evaluation import evidence_coverage, page_recall, within_tokens

__all__ = ["Collection", "Question", "load", "main", "scores"]

BUDGETS = (2000, 4000, 8000)
CHUNK = 256  # tokens
BASELINE = "hybrid"
NO_CONTEXT: Mapping[str, Any] = {"title": False, "sections": False, "first_lines": 0}

Found = Sequence[NodeWithScore]


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
    def by_id(self) -> dict[str, BaseNode]:
        """The chunks by id."""
        return {node.node_id: node for node in self.nodes}


def load(folder: Path, half: int | None) -> Collection:
    """Pages as LlamaIndex documents, their chunks, and the questions of a half: every other one, from `half`."""
    pages = []
    for row in _lines(folder / "documents.jsonl.gz"):
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
    return Collection(pages, nodes, questions if half is None else questions[half::2])


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def systems(collection: Collection, lexical: bool, within: bool) -> dict[str, Callable[[Question, int], Found]]:
    """What is compared: question, budget -> results, best first."""
    model = MockEmbedding(embed_dim=8) if lexical else minilm()
    weight = {"lexical_weight": 1.0} if lexical else {}

    def index_of(**context: Any) -> SpRAGIndex:
        nodes = [node.model_copy(deep=True) for node in collection.nodes]
        return SpRAGIndex(nodes, extractor=RuleContext(**context), embed_model=model)

    plain, contextual = index_of(**NO_CONTEXT), index_of()
    pages_of: dict[str, list[str]] = {}
    for page in collection.pages:
        pages_of.setdefault(page.id_.split("#")[0], []).append(page.id_)

    def of(index: SpRAGIndex, mode: str) -> Callable[[Question, int], Found]:
        def retrieve(question: Question, budget: int) -> Found:
            only = {"doc_ids": pages_of[question.document]} if within else {}
            retriever = index.as_retriever(mode=mode, similarity_top_k=500, token_budget=budget, **weight, **only)
            return retriever.retrieve(question.text)

        return retrieve

    found: dict[str, Callable[[Question, int], Found]] = {
        BASELINE: of(plain, "chunks"),
        "context": of(contextual, "chunks"),
        "segments": of(plain, "segments"),
        "context + segments": of(contextual, "segments"),
    }
    if within:
        return found
    store = SimpleDocumentStore()
    store.add_documents(list(collection.nodes))
    before_and_after = PrevNextNodePostprocessor(docstore=store, num_nodes=1, mode="both")
    found["hybrid, PrevNext"] = lambda question, budget: before_and_after.postprocess_nodes(
        list(found[BASELINE](question, budget // 3))
    )
    bm25 = BM25Retriever.from_defaults(nodes=list(collection.nodes), similarity_top_k=200, verbose=False)
    found["BM25"] = lambda question, budget: bm25.retrieve(question.text)
    if not lexical:
        found["dense"] = _dense(plain)
        found["AutoMerging"] = _auto_merging(collection, model)
    return found


def _dense(index: SpRAGIndex) -> Callable[[Question, int], Found]:
    return lambda question, budget: index.as_retriever(
        mode="chunks", lexical_weight=0.0, similarity_top_k=500, token_budget=budget
    ).retrieve(question.text)


def _auto_merging(collection: Collection, model: Any) -> Callable[[Question, int], Found]:
    """Core's retriever of parents, over leaves of the same size as the chunks of the others."""
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[4 * CHUNK, CHUNK], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents(list(collection.pages))
    context = StorageContext.from_defaults(vector_store=MatrixVectorStore())
    context.docstore.add_documents(nodes)
    leaves = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=context, embed_model=model)
    merging = AutoMergingRetriever(leaves.as_retriever(similarity_top_k=50), context, verbose=False)
    return lambda question, budget: merging.retrieve(question.text)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, help="a folder with documents.jsonl.gz and queries.jsonl.gz"
    )
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other question, from this one; default all")
    parser.add_argument("--lexical", action="store_true", help="rank by words alone; nothing is embedded")
    parser.add_argument("--within", action="store_true", help="ask of the question's document alone")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    collection = load(options.data, options.half)
    table: dict[tuple[str, int], np.ndarray] = {}
    for name, system in systems(collection, options.lexical, options.within).items():
        for budget in BUDGETS:
            rows = [scores(collection, q, system(q, budget), budget) for q in collection.questions]
            table[name, budget] = np.array(rows)
    print(f"{len(collection.questions)} questions, {len(collection.nodes)} chunks\n")
    print("| system | tokens | coverage | coverage - hybrid | page recall |")
    print("|---|---|---|---|---|")
    for (name, budget), rows in table.items():
        base = table[BASELINE, budget]
        difference = paired_bootstrap(rows[:, 0], base[:, 0])
        print(
            f"| {name} | {budget} | {bootstrap_interval(rows[:, 0])} | {difference.mean:+.3f} "
            f"[{difference.low:+.3f}, {difference.high:+.3f}] | {rows[:, 1].mean():.3f} |"
        )


if __name__ == "__main__":
    main()
