"""`make demo`: index a text corpus with every method, answer questions from it, and write HTML pages.

    python examples/demo.py                    the sample archive
    python examples/demo.py --docs FOLDER      your own files

It needs no API key and no network: embeddings come from MiniLM, and rule-based steps replace the LLM. If
`OPENAI_API_KEY` is set (`OPENAI_BASE_URL` selects another server, `OPENAI_MODEL` another model), an LLM extracts,
summarises and answers.
"""

import argparse
import json
import logging
import os
import sys
import textwrap
import time
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from benchmarks.embedding import minilm  # noqa: E402
from examples.demo_methods import METHODS, Method  # noqa: E402
from examples.demo_page import Card, write_front_page  # noqa: E402
from examples.extracted_answer import ExtractedAnswer  # noqa: E402
from llama_index.core import (  # noqa: E402
    Document,
    Settings,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.base.base_retriever import BaseRetriever  # noqa: E402
from llama_index.core.llms import LLM, MockLLM  # noqa: E402
from llama_index.core.node_parser import SentenceSplitter  # noqa: E402
from llama_index.core.schema import NodeWithScore  # noqa: E402
from llama_index.retrievers.bm25 import BM25Retriever  # noqa: E402

from llama_index.ragkit import persist  # noqa: E402
from llama_index.ragkit.evaluation import LabelledQuery, evaluate_retriever, recall_at_k  # noqa: E402
from llama_index.ragkit.reading import read_folder  # noqa: E402

ARCHIVE = ROOT / "examples" / "archive"
KINDS = {"fact": "single fact", "chain": "multi-hop", "aspects": "many aspects", "theme": "theme"}
TOP_K = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder with your own files, instead of the sample archive")
    parser.add_argument("--out", type=Path, default=ROOT / "demo", help="the folder for the pages")
    parser.add_argument("--question", help="a question for every method, instead of the questions of the archive")
    parser.add_argument("--open", action="store_true", help="open the front page in a browser")
    options = parser.parse_args()
    if options.docs is not None and not options.docs.is_dir():
        parser.error(f"{options.docs} is not a folder")
    logging.getLogger("transformers").setLevel(logging.ERROR)

    llm = language_model()
    Settings.llm = llm or MockLLM()  # the mock is never called: the answers are sentences of the texts
    Settings.embed_model = minilm()
    Settings.transformations = [SentenceSplitter(chunk_size=128, chunk_overlap=0)]

    documents, skipped = read_folder(options.docs) if options.docs else (archive(), {})
    for file, reason in skipped.items():
        print(f"Skipped {file}: {reason}")
    words = sum(len(document.text.split()) for document in documents)
    using = f"LLM: {llm.metadata.model_name}" if llm else "No LLM"
    about = f"{len(documents)} documents, {words:,} words. Embeddings: all-MiniLM-L6-v2. {using}."
    heading(about)
    queries = labelled() if options.docs is None else {}

    indexes: dict[str, Any] = {}
    cards = []
    for method in METHODS:
        heading(method.title)
        index, seconds = build(method, documents, llm, options.out / "storage" / method.name)
        indexes[method.name] = index
        question = options.question or (queries[method.kind][0].question if queries else "What is this about?")
        cards.append(ask(method, index, question, seconds, llm, options.out))

    table = compare(indexes, documents, queries) if queries else {}
    front = write_front_page(options.out / "index.html", about, cards, table, CAPTION, ADVICE)
    heading("Results")
    if table:
        print(textwrap.fill(ADVICE, 100))
    print(f"Overview page: {front}")
    if options.open:
        webbrowser.open(front.as_uri())


def language_model() -> LLM | None:
    """The LLM configured in the environment; None without a key."""
    if not os.environ.get("OPENAI_API_KEY"):
        return None
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
        api_base=os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or "https://api.openai.com/v1",
        api_key=os.environ["OPENAI_API_KEY"],
        is_chat_model=True,
    )


def build(method: Method, documents: Sequence[Document], llm: LLM | None, folder: Path) -> tuple[Any, float]:
    """Build an index, save it, and load it with the standard function."""
    components = {"llm": llm, **method.models()} if llm else {**method.offline(), **method.models()}
    start = time.perf_counter()
    index = method.cls.from_documents(documents, show_progress=True, **components, **method.settings)
    seconds = time.perf_counter() - start
    persist(index.storage_context, folder)
    loaded = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(folder)), **components)
    print(f"built in {seconds:.1f} s, saved, and loaded with load_index_from_storage")
    return loaded, seconds


def ask(method: Method, index: Any, question: str, seconds: float, llm: LLM | None, out: Path) -> Card:
    """Run a query, print the answer with its sources, and write the method's page."""
    synthesizer = {} if llm else {"response_synthesizer": ExtractedAnswer()}
    response = index.as_query_engine(similarity_top_k=TOP_K, **synthesizer).query(question)
    print(textwrap.fill(f"Q: {question}", 100, subsequent_indent="   "))
    print(textwrap.fill(f"A: {response}", 100, subsequent_indent="   "))
    for result in response.source_nodes:
        print(f"   {result.score:.2f}  {source(result)}: {textwrap.shorten(result.node.text, 70, placeholder='...')}")
    page = index.visualize(out / f"{method.name}.html")
    facts = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in method.counts(index).items())
    return Card(
        title=method.title,
        what=method.what,
        question=question,
        answer=str(response),
        sources=list(dict.fromkeys(source(result) for result in response.source_nodes)),
        page=page.name,
        facts=f"{facts}; built in {seconds:.0f} s",
    )


def source(result: NodeWithScore) -> str:
    """The name of a result's source, printed next to an answer."""
    metadata = result.node.metadata
    topic = metadata.get("pgrag_path", ["summary"])[0]
    return str(metadata.get("title") or metadata.get("file_name") or topic)


CAPTION = (
    "Recall at 5: share of a question's gold articles among the first five articles retrieved, averaged over the "
    "labelled questions of the archive, by kind. No LLM was used for retrieval."
)
ADVICE = (
    "A method is worth its cost for the kind of question in which it is above dense search and BM25: several facts in "
    "a row, many aspects. Where it is not, plain search is enough. These are few questions about one archive: "
    "python -m llama_index.ragkit.compare --docs FOLDER measures on your own texts, with intervals, and recommends."
)


def compare(
    indexes: Mapping[str, Any], documents: Sequence[Document], queries: Mapping[str, Sequence[LabelledQuery]]
) -> dict[str, dict[str, float]]:
    """Recall at 5 of every retriever, by kind of question."""
    heading("Comparison: recall at 5 by kind of question")
    depth = 6 * TOP_K  # enough chunks for at least five articles
    core = VectorStoreIndex.from_documents(documents)
    retrievers: dict[str, BaseRetriever] = {
        "dense": core.as_retriever(similarity_top_k=depth),
        "BM25": BM25Retriever.from_defaults(docstore=core.docstore, similarity_top_k=depth, verbose=False),
        **{m.name: indexes[m.name].as_retriever(similarity_top_k=depth, **m.passages) for m in METHODS},
    }
    known = {document.id_ for document in documents}  # nodes derived from several articles are ignored
    table: dict[str, dict[str, float]] = {}
    for name, retriever in retrievers.items():
        row = {}
        for kind, label in KINDS.items():
            scores = evaluate_retriever(
                retriever,
                queries[kind],
                metrics={"R@5": lambda ranking, gold: recall_at_k(list(dict.fromkeys(ranking)), gold, k=5)},
                id_of=lambda found: found.node.ref_doc_id if found.node.ref_doc_id in known else None,
            )
            row[label] = scores.interval("R@5", n_resamples=1).mean
        table[name] = row
    width = max(map(len, table))
    print(" " * width + "".join(f"{label:>20}" for label in KINDS.values()))
    for name, row in table.items():
        print(f"{name:<{width}}" + "".join(f"{value:>20.2f}" for value in row.values()))
    return table


def archive() -> list[Document]:
    """The articles of the sample archive."""
    documents = []
    for path in sorted((ARCHIVE / "articles").glob("*.md")):
        title, _, text = path.read_text(encoding="utf-8").removeprefix("# ").partition("\n")
        title = title.replace("*", "")  # emphasis
        hidden = {"excluded_llm_metadata_keys": ["title"]}  # answers quote the texts; the title is shown separately
        documents.append(Document(text=text.strip(), id_=path.stem, metadata={"title": title}, **hidden))
    return documents


def labelled() -> dict[str, list[LabelledQuery]]:
    """The questions of the archive by kind."""
    rows = [json.loads(line) for line in (ARCHIVE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    return {
        kind: [LabelledQuery(row["id"], row["question"], tuple(row["gold"])) for row in rows if row["kind"] == kind]
        for kind in KINDS
    }


def heading(text: str) -> None:
    print(f"\n\033[1m{textwrap.fill(text, 100)}\033[0m" if sys.stdout.isatty() else f"\n{textwrap.fill(text, 100)}")


if __name__ == "__main__":
    main()
