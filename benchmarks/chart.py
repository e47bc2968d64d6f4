"""`python -m benchmarks.chart`: the chart of the README, each method on its kind of question, from the table.

The figures are those that `python -m benchmarks.table` has written into `benchmarks/README.md`.
"""

import re

from examples.interval_chart import Row, interval_chart

from benchmarks.table import BASELINES, BEGIN, END, README
from llama_index.ragkit.evaluation import Interval

__all__ = ["chart", "main"]

OUT = README.parents[1] / "docs" / "pictures" / "chart.svg"
NAMES = {"dense": "dense", "bm25": "BM25", "hybrid": "hybrid", "hybrid-z": "hybrid-z"}
SHOWN = (
    ("HippoRAG", "hipporag", "2wiki", "multi-hop, 2WikiMultiHopQA"),
    ("PG-RAG", "pgrag", "hotpotqa", "multi-hop, HotpotQA"),
    ("Graph RAG", "graphrag", "2wiki", "multi-hop, 2WikiMultiHopQA"),
    ("MRAG", "mrag", "mrag_wikipedia", "many aspects, Wikipedia"),
    ("spRAG", "sprag", "financebench", "pages of filings, financebench"),
    ("GEM-RAG", "gemrag", "recorded_questions", "with an LLM's questions, a 10-K report"),
    ("RAPTOR", "raptor", "archive", "four kinds, sample archive"),
)


def chart(readme: str) -> str:
    """The SVG of the figures in a table."""
    lines = readme.partition(BEGIN)[2].partition(END)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head = next(row for row in rows if row[0] == "corpus")
    table = [dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)]
    drawn = []
    for label, method, corpus, kind in SHOWN:
        found = next(row for row in table if (row["corpus"], row["method"]) == (corpus, method))
        plain = {NAMES[name]: _interval(found[NAMES[name]]) for name in BASELINES}
        best = max(plain, key=lambda name: plain[name].mean)
        drawn.append(Row(label, f"{kind} ({found['n']})", _interval(found["its score"]), plain[best], best))
    return interval_chart(drawn, "recall")


def _interval(cell: str) -> Interval:
    mean, low, high = map(float, re.findall(r"[\d.]+", cell))
    return Interval(mean, low, high)


def main() -> None:
    """Draw it."""
    OUT.write_text(chart(README.read_text(encoding="utf-8")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
