"""`python -m benchmarks.chart`: the chart of the README, each method on its kind of question, from the table.

The figures are those that `python -m benchmarks.table` has written into `benchmarks/README.md`.
"""

import re

from examples.interval_chart import Row, interval_chart

from benchmarks.table import BEGIN, END, README
from llama_index.ragkit.evaluation import Interval

__all__ = ["chart", "main"]

OUT = README.parents[1] / "docs" / "pictures" / "chart.svg"
SHOWN = {
    "hipporag": ("HippoRAG", "multi-hop, 2WikiMultiHopQA"),
    "pgrag": ("PG-RAG", "multi-hop, HotpotQA"),
    "graphrag": ("Graph RAG", "multi-hop, 2WikiMultiHopQA"),
    "mrag": ("MRAG", "many aspects, Wikipedia"),
    "sprag": ("spRAG", "whole contracts, ContractNLI"),
    "gemrag": ("GEM-RAG", "with an LLM's questions, a 10-K report"),
    "raptor": ("RAPTOR", "four kinds, sample archive"),
}


def chart(readme: str) -> str:
    """The SVG of the first table, each method on its kind of question."""
    lines = readme.partition(BEGIN)[2].partition(END)[0].strip().partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    drawn = [
        Row(SHOWN[method][0], f"{SHOWN[method][1]} ({count})", _interval(own), _interval(plain), best)
        for method, _, count, own, best, plain in rows
    ]
    return interval_chart(drawn, "recall")


def _interval(cell: str) -> Interval:
    mean, low, high = map(float, re.findall(r"[\d.]+", cell))
    return Interval(mean, low, high)


def main() -> None:
    """Draw it."""
    OUT.write_text(chart(README.read_text(encoding="utf-8")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
