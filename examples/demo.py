"""`make demo`: index a real text with every method, answer questions from it, and write pages to look at.

    python examples/demo.py                    the sample archive
    python examples/demo.py --docs FOLDER      your own files

It needs no key and no network: MiniLM embeds, and the rule-based steps take the place of an LLM.
"""

import argparse
import json
import logging
import os
import sys
import textwrap
import time
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from benchmarks.embedding import minilm  # noqa: E402
from examples.extracted_answer import ExtractedAnswer  # noqa: E402
from llama_index.core import (  # noqa: E402
    Document,
    Settings,
    SimpleDirectoryReader,
    StorageContext,
    load_index_from_storage,
)
from llama_index.core.llms import MockLLM  # noqa: E402
from llama_index.core.node_parser import SentenceSplitter  # noqa: E402

from llama_index.ragkit import ExtractiveSummarizer, persist  # noqa: E402
from llama_index.raptor import RaptorIndex  # noqa: E402

ARCHIVE = ROOT / "examples" / "archive"
KINDS = {"fact": "one fact", "chain": "a chain of facts", "aspects": "many aspects", "theme": "a theme"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder with files of yours, in place of the sample archive")
    parser.add_argument("--out", type=Path, default=ROOT / "demo", help="where the pages go")
    parser.add_argument("--question", action="append", help="a question to ask; may be given several times")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    options = parser.parse_args()
    if options.docs is not None and not options.docs.is_dir():
        parser.error(f"{options.docs} is no folder")
    logging.getLogger("transformers").setLevel(logging.ERROR)

    Settings.llm = MockLLM()  # never asked: the answers are sentences of the texts
    Settings.embed_model = minilm()
    Settings.transformations = [SentenceSplitter(chunk_size=128, chunk_overlap=0)]

    documents = SimpleDirectoryReader(options.docs, recursive=True).load_data() if options.docs else archive()
    words = sum(len(document.text.split()) for document in documents)
    heading(f"RAPTOR: {len(documents)} documents, {words:,} words")
    start = time.perf_counter()
    index = RaptorIndex.from_documents(documents, summarizer=ExtractiveSummarizer(), show_progress=True)
    counts = index.index_struct.counters
    print(
        f"{counts['chunks']} chunks, {counts['summaries']} summaries in {index.tree.height} layers, "
        f"{time.perf_counter() - start:.1f} s, no LLM"
    )
    persist(index.storage_context, options.out / "storage")
    context = StorageContext.from_defaults(persist_dir=str(options.out / "storage"))
    index = load_index_from_storage(context, summarizer=ExtractiveSummarizer())
    print("saved, and loaded again with load_index_from_storage; answers below come from the loaded index")

    engine = index.as_query_engine(similarity_top_k=5, response_synthesizer=ExtractedAnswer())
    asked = [("", question) for question in options.question or ()] or questions(options.docs)
    for kind, question in asked:
        heading(f"{question}" + (f"   ({kind})" if kind else ""))
        response = engine.query(question)
        print(textwrap.fill(str(response), 100))
        for result in response.source_nodes:
            level = result.node.metadata.get("raptor_level", 0)
            source = f"summary, layer {level}" if level else result.node.metadata.get("title", "chunk")
            print(f"   {result.score:.2f}  {source}: {textwrap.shorten(result.node.text, 70, placeholder='...')}")

    page = index.visualize(options.out / "raptor.html")
    heading("Look at it")
    print(f"The tree, with the way to the last answer lit: {page}")
    if options.open:
        webbrowser.open(page.as_uri())


def archive() -> list[Document]:
    """The articles of the sample archive."""
    documents = []
    for path in sorted((ARCHIVE / "articles").glob("*.md")):
        title, _, text = path.read_text(encoding="utf-8").removeprefix("# ").partition("\n")
        hidden = {"excluded_llm_metadata_keys": ["title"]}  # answers quote the texts; the title is shown beside them
        documents.append(Document(text=text.strip(), id_=path.stem, metadata={"title": title}, **hidden))
    return documents


def questions(folder: Path | None) -> list[tuple[str, str]]:
    """What to ask: one question of each kind of the archive, or what can be asked of any text."""
    if folder is not None:
        return [("", "What is this about?"), ("", "Who or what is mentioned most?")]
    rows = [json.loads(line) for line in (ARCHIVE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(said, next(row["question"] for row in rows if row["kind"] == kind)) for kind, said in KINDS.items()]


def heading(text: str) -> None:
    print(f"\n\033[1m{textwrap.fill(text, 100)}\033[0m" if sys.stdout.isatty() else f"\n{textwrap.fill(text, 100)}")


if __name__ == "__main__":
    main()
