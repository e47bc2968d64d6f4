"""`python -m benchmarks.question_calls`: calls of a language model and tokens for each question to Graph RAG.

The theme questions of the sample archive, asked in each mode of an index of its own, whose reports are written when a
question first reads them. The model is scripted: it answers each prompt in the form asked for, with a report of the
first statements, so that calls and tokens read are those of the searches, and tokens written are not measured. Beside
what a global question took stands what `index.estimate_question` said just before; a model rates and follows up as the
script does, so that a search with follow-up questions ends sooner with one that has fewer of them.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.query_engine import RetrieverQueryEngine

from benchmarks import quality_graphrag
from benchmarks.data import Task, load
from benchmarks.embedding import minilm
from benchmarks.whole_corpus import ARCHIVE, BUDGETS
from llama_index.graphrag import GraphRAGIndex, GraphRAGQueryEngine, ReportWriter
from llama_index.ragkit.testing import ScriptedLLM
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["main", "rows"]

_STATEMENTS = 20  # that a scripted report repeats
_REPORT = "Write a report about a group"
_NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_PASSAGE = re.compile(r'number="(\d+)"')


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.question_calls", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, default=ARCHIVE, help="the folder of the sample archive")
    parser.add_argument("--limit", type=int, default=0, help="ask only the first so many questions")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    (task,) = load(options.data)
    asked = [query.question for query in task.queries if "theme" in task.groups_of.get(query.id, ())]
    asked = asked[: options.limit or None]
    print(f"means of {len(asked)} questions, each mode with an index of its own\n")
    print("| mode | calls, estimated | calls | reports, estimated | written | tokens, estimated | tokens read |")
    print("|---|---|---|---|---|---|---|")
    for row in rows(task, asked):
        print("| " + " | ".join(row) + " |", flush=True)


def rows(task: Task, asked: Sequence[str]) -> Iterator[list[str]]:
    """A row for each mode, and for each budget of the global one."""
    for budget in BUDGETS:
        yield _row(f"global, {budget:,} tokens", task, asked, budget)
    for mode in ("local", "drift", "basic"):
        yield _row(mode, task, asked, None, mode=mode)


def _row(name: str, task: Task, asked: Sequence[str], budget: int | None, **options: Any) -> list[str]:
    llm = ScriptedLLM(obliging)
    index = quality_graphrag.make_index(
        task.corpus, minilm(), argparse.Namespace(rules=False), summarizer=ReportWriter(), llm=llm
    )
    sums: Counter[str] = Counter()
    for question in asked:
        engine: Any = _engine(index, llm, budget, options)
        if budget is not None:
            cost = index.estimate_question(question, token_budget=budget)
            sums.update({"calls?": cost.calls, "reports?": cost.report_calls, "tokens?": cost.tokens})
        llm.prompts.clear()
        engine.query(question)
        reports = sum(prompt.startswith(_REPORT) or _REPORT in prompt[:200] for prompt in llm.prompts)
        sums.update(calls=len(llm.prompts) - reports, reports=reports, tokens=sum(map(count_tokens, llm.prompts)))

    def mean(key: str, digits: int) -> str:
        return f"{sums[key] / len(asked):,.{digits}f}" if key in sums else ""

    pairs = [("calls?", 1), ("calls", 1), ("reports?", 1), ("reports", 1), ("tokens?", 0), ("tokens", 0)]
    return [name, *(mean(key, digits) for key, digits in pairs)]


def _engine(index: GraphRAGIndex, llm: ScriptedLLM, budget: int | None, options: dict[str, Any]) -> Any:
    if budget is not None:
        return GraphRAGQueryEngine.over(index, token_budget=budget)
    return RetrieverQueryEngine.from_args(index.as_retriever(**options), llm=llm)


def obliging(prompt: str) -> str:
    """What a model that does as it is told says to each prompt of a question."""
    numbers = [int(number) for number in dict.fromkeys(_PASSAGE.findall(prompt))]
    if _REPORT in prompt:
        stated = _NUMBERED.findall(prompt)[:_STATEMENTS]
        findings = [{"text": text, "sources": [int(number)]} for number, text in stated]
        return json.dumps({"title": "A group", "summary": "What it is.", "rating": 5, "findings": findings})
    if "List what the numbered passages" in prompt:
        points = [{"text": f"What passage {number} says.", "score": 50, "sources": [number]} for number in numbers]
        return json.dumps({"points": points})
    if "the questions that would lead further" in prompt:
        more = [f"And what about passage {number} of {len(prompt)}?" for number in numbers[:3]]
        return json.dumps({"answer": "So it is.", "sources": numbers[:3], "score": 50, "follow_ups": more})
    return "So it is."


if __name__ == "__main__":
    main()
