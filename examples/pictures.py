"""The pictures of the pages that README shows: each method over the sample archive, in a window of a desktop.

    python -m examples.pictures [FOLDER]       FOLDER/METHOD.webp for each method; by default docs/pictures

Needs Chromium. Each index is asked the question of its kind that the demo asks, and its page shows the answer.
"""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from benchmarks.embedding import minilm
from examples.demo_methods import METHODS
from examples.sample import archive, labelled
from llama_index.core import Settings
from llama_index.core.node_parser import SentenceSplitter
from tests.chromium import Browser

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1200, 750


def main(folder: Path) -> None:
    """Draw all pictures."""
    Settings.embed_model, Settings.llm = minilm(), None
    Settings.transformations = [SentenceSplitter(chunk_size=256, chunk_overlap=0)]
    questions, documents = labelled(), archive()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as pages:
        for method in METHODS:
            components = {**method.offline(), **method.models()}
            index = method.cls.from_documents(documents, **components, **method.settings)
            index.as_retriever(similarity_top_k=5).retrieve(questions[method.kind][0].question)
            page = index.visualize(Path(pages) / f"{method.name}.html")
            with Browser(WIDTH, HEIGHT) as browser:
                browser.open(page)
                browser.wait(1)  # until the window fits
                browser.screenshot(folder / f"{method.name}.webp")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "pictures")
