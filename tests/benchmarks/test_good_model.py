"""What a good model wrote, as recorded from GPT-3.5, is kept and asked for once; checks cost a good model nothing."""

import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import TextNode

from llama_index.gemrag import UtilityQuestionExtractor
from llama_index.hipporag import HippoRAGIndex, OpenIEExtractor
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

DATA = Path(os.environ.get("RAG_DATA", ""))
PASSAGES = 200


def recorded(name: str) -> list[dict[str, Any]]:
    file = DATA / name / "corpus.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"RAG_DATA has no {name}")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][:PASSAGES]


def model(rows: Sequence[Mapping[str, Any]], reply: Callable[[Mapping[str, Any], str], Any]) -> ScriptedLLM:
    """Replies to a prompt with what was recorded for the last passage in it; the examples in prompts come before."""

    def say(prompt: str) -> str:
        return json.dumps(reply(max(rows, key=lambda row: prompt.rfind(row["text"])), prompt))

    return ScriptedLLM(say)


def nodes_of(rows: Sequence[Mapping[str, Any]]) -> list[TextNode]:
    return [TextNode(id_=row["id"], text=row["text"], metadata={"title": row.get("title", "")}) for row in rows]


def is_triple(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(isinstance(part, str) and part.strip() for part in value)


def test_entities_and_triples_of_a_good_model_are_kept():
    rows = recorded("musique")
    llm = model(
        rows,
        lambda row, prompt: (
            {"triples": row["triples"]} if "triple" in prompt.casefold() else {"named_entities": row["entities"]}
        ),
    )
    index = HippoRAGIndex(nodes_of(rows), llm=llm, embed_model=HashEmbedding(), extractor=OpenIEExtractor())
    entries = run_steps(index.storage.manifest.entries())
    given = [(row["id"], name) for row in rows for name in row["entities"]]
    kept = [name in entries[node].record["entities"] for node, name in given]
    assert sum(kept) >= 0.995 * len(given)
    triples = [(row["id"], triple) for row in rows for triple in row["triples"] if is_triple(triple)]
    found = [triple in [list(each) for each in entries[node].record["triples"]] for node, triple in triples]
    assert sum(found) >= 0.99 * len(triples)
    assert len(llm.prompts) == 2 * len(rows)
    assert index.failures() == []


def test_questions_of_a_good_model_are_kept():
    rows = recorded("recorded_questions")
    llm = model(rows, lambda row, _: {"questions": row["questions"]})
    extracted = run_steps(UtilityQuestionExtractor(llm=llm).extract(nodes_of(rows)))
    given = [(number, question) for number, row in enumerate(rows) for question in row["questions"]]
    kept = [question in extracted[number].record["questions"] for number, question in given]
    assert sum(kept) >= 0.99 * len(given)
    assert len(llm.prompts) == len(rows)
