"""How often a summary is refused that is one, and kept that is none.

    python -m benchmarks.held_summaries --data FOLDER

Summaries that are some: those that GPT-3.5 wrote for RAPTOR of Cinderella, and the summaries of 122 recorded Graph RAG
reports of A Christmas Carol, of which the one on a "Cedar Grove Clinic" is made up. None are the same about other
texts, refusals, chatter, and a reply of SmolLM2-135M-Instruct that repeats the worked example.
"""

import argparse
import gzip
import json
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.live_model import ARCHIVE
from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.announcements import plain_answer, whole_sentences
from llama_index.ragkit.llm.prompts import SUMMARY_PROMPT
from llama_index.ragkit.text.held import LEAST_IN_TEXT, TextWords, held_prose

__all__ = ["TALK", "is_refused", "recorded_summaries"]

TALK = (
    "I would rather not summarise these passages.",
    "I would rather not say anything about this.",
    "As an AI language model, I cannot summarise this content.",
    "As an AI, I don't have personal opinions.",
    "I'm sorry, but I can't help with that.",
    "I am sorry, I cannot assist with that request.",
    "I cannot provide a summary of this text.",
    "Sure, here is a summary of the passages below.",
    "Sure! I'd be happy to help you with that. Please provide the passages.",
    "Please provide the text you would like me to summarize.",
    "Here is the summary.",
    "There is nothing to summarise.",
    "Unfortunately I am unable to fulfil this request because it violates the guidelines.",
    "I don't know.",
    "The passages describe who, what, where and when.",
    "The passages do not contain any information.",
    "This document is a short summary of the document.",
    "The Bergslund Glassworks, which was founded by Otto Lindqvist in 1871, burned down in 1904 and was never rebuilt.",
    "Lo siento, no puedo ayudar con eso.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Je suis désolé, mais je ne peux pas résumer ce texte.",
    "抱歉，我无法总结这些内容。",
    "作为一个人工智能，我不能回答这个问题。",
)

Pairs = Sequence[tuple[str, str]]  # a summary and its texts
_TASK = TextWords(SUMMARY_PROMPT.get_template())


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def recorded_summaries(data: str | Path) -> tuple[Pairs, Pairs]:
    """Summaries of RAPTOR with their passages, and of Graph RAG with the statements of their communities."""
    tree = json.loads((Path(data) / "raptor_cinderella" / "tree.json").read_text(encoding="utf-8"))
    nodes = {node["index"]: node for node in tree["nodes"]}
    raptor = [(n["text"], "\n".join(nodes[c]["text"] for c in n["children"])) for n in tree["nodes"] if n["children"]]
    folder = Path(data) / "graphrag_christmas_carol"
    entities = {row["id"]: row for row in _rows(folder, "entities")}
    relations = _rows(folder, "relationships")
    communities = {row["community"]: row for row in _rows(folder, "communities")}
    reports = []
    for report in _rows(folder, "community_reports"):
        own = [entities[i] for i in communities[report["community"]]["entity_ids"]]
        names = {entity["title"] for entity in own}
        stated = [f"{entity['title']}: {entity['description']}" for entity in own]
        stated += [
            f"{relation['source']}, {relation['target']}: {relation['description']}"
            for relation in relations
            if {relation["source"], relation["target"]} <= names
        ]
        reports.append((report["summary"], "\n".join(stated)))
    return raptor, reports


@cache
def _words(text: str) -> TextWords:
    return TextWords(text)


def is_refused(summary: str, texts: str) -> bool:
    """Whether a summary is refused for its texts."""
    try:
        held_prose(whole_sentences(plain_answer(summary)), _words(texts), _TASK, LEAST_IN_TEXT)
    except ParseError:
        return True
    return False


def _share(pairs: Iterable[tuple[str, str]]) -> str:
    refused = [is_refused(*pair) for pair in pairs]
    return f"{sum(refused):,} of {len(refused):,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RAG_DATA"), help="default: RAG_DATA")
    options = parser.parse_args()
    if not options.data:
        raise SystemExit("Name the folder of the corpora: --data DIR, or RAG_DATA.")
    raptor, reports = recorded_summaries(options.data)
    archive = [file.read_text(encoding="utf-8") for file in sorted(ARCHIVE.iterdir())]
    texts = [*archive, *(about for _, about in [*raptor, *reports])]
    foreign = [*((said, about) for said, _ in raptor for about in [*archive, *(each for _, each in reports)])]
    foreign += [(said, about) for said, _ in reports for about in [*archive, *(each for _, each in raptor)]]
    print("| what | refused |\n|---|---|")
    print(f"| RAPTOR's summaries, of their passages | {_share(raptor)} |")
    print(f"| Graph RAG's summaries, of their statements | {_share(reports)} |")
    print(f"| the same, of other texts | {_share(foreign)} |")
    print(f"| refusals and chatter, of every text | {_share((said, about) for said in TALK for about in texts)} |")


if __name__ == "__main__":
    main()
