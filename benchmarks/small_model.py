"""What becomes of the replies of a small model: 119 recorded ones, each through the reader of its step.

    python -m benchmarks.small_model --data FOLDER        # FOLDER/small_llm/replies.jsonl.gz
    python -m benchmarks.small_model --data FOLDER --show # with each reply and what was kept of it

The replies are those of SmolLM2-135M-Instruct to the prompts of these packages, and to two that were tried. Each is
given to the step that had asked, by a model that says it again, and once. Counted are the replies of which something
was kept, those that were failures, and kept items that are garbage: an item of which its text has less than half of the
words, or that has words of the task or of its worked example which the text does not have; a name that is a clause; a
triple of one thing; what stands in a reply more than twice.
"""

import argparse
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.schema import NodeWithScore, TextNode

from llama_index.gemrag import UtilityQuestionExtractor
from llama_index.graphrag import EntityExtractor, ReportMapReduce
from llama_index.graphrag.drift_search import _Answer
from llama_index.graphrag.prompts import HYPOTHESIS_PROMPT, PRIMER_PROMPT
from llama_index.hipporag import OpenIEExtractor
from llama_index.mrag.prompts import ASPECTS_PROMPT
from llama_index.mrag.vote_search import AspectQueries
from llama_index.pgrag import MindMapExtractor
from llama_index.ragkit import LLMSummarizer, NodeExtractor, RetryPolicy
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.llm.announcements import plain_answer
from llama_index.ragkit.llm.completion import complete
from llama_index.ragkit.llm.json.shapes import read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.ragkit.text.held import TextWords, is_name
from llama_index.ragkit.text.sentences import split_sentences
from llama_index.sprag import AutoContext
from llama_index.sprag.prompts import QUERIES_PROMPT
from llama_index.sprag.retriever import QueriesReply

__all__ = ["BEFORE", "Outcome", "outcomes", "recorded", "table"]

ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)
_BLOCK = re.compile(r"<([a-z]+)-[0-9a-f]{8} number=\"\d+\">\n(.*?)\n</\1-[0-9a-f]{8}>", re.DOTALL)
_EXAMPLE = "Otto Lindqvist Bergslund Glassworks Lake Tovel"
_LEAST = 0.5  # share of the words of an item that its text must have
_MOST_TIMES = 2

Kept = list[list[str]]  # the parts of each item that was kept: one, or the three of a triple
Blocks = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Outcome:
    """What became of a reply.

    Attributes
    ----------
    step : that had asked
    about : the text that it is about
    kept : items that were kept
    failed : why nothing was; "" if something was, or if the model said that there is nothing
    """

    step: str
    about: str
    reply: str
    kept: Kept
    failed: str

    @property
    def garbage(self) -> Kept:
        """Kept items that should not have been."""
        return [
            item
            for item in self.kept
            if is_garbage(item, self.about, self.step.startswith(("HippoRAG", "Graph RAG: entities")))
        ]


def is_garbage(item: Sequence[str], about: str, of_names: bool) -> bool:
    """Whether an item says nothing of a text."""
    words = TextWords(about)
    ends = [item[0], item[-1]]
    if len(item) > 1 and item[0].casefold() == item[-1].casefold():
        return True
    if of_names and not is_name(item[0]):
        return True
    times = Counter(sentence.casefold() for sentence in split_sentences(item[0]))
    if any(count > _MOST_TIMES for count in times.values()):
        return True
    lacking = TextWords(_EXAMPLE)
    return any(words.share(end) < _LEAST or any(lacking.has_all(w) for w in words.lacking(end)) for end in ends)


# -- the steps ------------------------------------------------------------------------------------------------


def _extracted(extractor: Any, text: str, key: str) -> tuple[Kept, str]:
    (found,) = run_steps(extractor.extract([TextNode(id_="n", text=text)]))
    if found.record is None:
        return [], found.error or ""
    items = found.record.get(key, ())
    kept = [[item] if isinstance(item, str) else [str(part) for part in item] for item in items if item]
    return kept, "" if kept else found.error or ""


def _entities(reply: str, given: Blocks) -> tuple[Kept, str]:
    llm = ScriptedLLM(lambda prompt: reply if "named entities of the text" in prompt else '{"triples": []}')
    return _extracted(OpenIEExtractor(llm=llm, retry=ONCE), given["text"][0], "entities")


def _triples(reply: str, given: Blocks) -> tuple[Kept, str]:
    names = given.get("entities", ['{"named_entities": []}'])[0]
    llm = ScriptedLLM(lambda prompt: names if "named entities of the text" in prompt else reply)
    return _extracted(OpenIEExtractor(llm=llm, retry=ONCE), given["text"][0], "triples")


def _graph(reply: str, given: Blocks) -> tuple[Kept, str]:
    extractor = EntityExtractor(llm=ScriptedLLM(reply), retry=ONCE)
    entities, failed = _extracted(extractor, given["text"][0], "entities")
    relations, _ = _extracted(extractor, given["text"][0], "relations")
    return [*([entity[0]] for entity in entities), *([source, target] for source, target, *_ in relations)], failed


def _questions(reply: str, given: Blocks) -> tuple[Kept, str]:
    return _extracted(UtilityQuestionExtractor(llm=ScriptedLLM(reply), retry=ONCE), given["text"][0], "questions")


def _summary(reply: str, given: Blocks) -> tuple[Kept, str]:
    steps = LLMSummarizer(ScriptedLLM(reply), retry=ONCE).summarize(given["passage"], max_tokens=256)
    text, _ = run_steps(steps)
    return [[text]], ""


def _mind_map(reply: str, given: Blocks) -> tuple[Kept, str]:
    extractor = MindMapExtractor(llm=ScriptedLLM(reply), retry=ONCE, embed_model=HashEmbedding(), max_regenerations=0)
    kept, failed = _extracted(extractor, given["text"][0], "paths")
    return [[path[-1]] for path in kept], failed


def _document(reply: str, given: Blocks) -> tuple[Kept, str]:
    extractor = AutoContext(llm=ScriptedLLM(reply), retry=ONCE)
    # Not its own method, which describes chunks and asks no model.
    (found,) = run_steps(NodeExtractor.extract(extractor, [TextNode(id_="n", text=given["document"][0])]))
    record = found.record
    if record is None:
        return [], found.error or ""
    return [[record[name]] for name in ("title", "summary") if record[name]], ""


def _asked(prompt: Any, parse: Callable[[str], Kept], reply: str, given: Blocks, **variables: Any) -> tuple[Kept, str]:
    steps = complete(ScriptedLLM(reply), prompt, parse=parse, retry=ONCE, like=given["question"][0], **variables)
    return run_steps(steps), ""


def _aspects(reply: str, given: Blocks) -> tuple[Kept, str]:
    question = fence(given["question"], "question")
    return _asked(ASPECTS_PROMPT, _queries_of(AspectQueries), reply, given, question=question, num_queries=4)


def _queries(reply: str, given: Blocks) -> tuple[Kept, str]:
    question = fence(given["question"], "question")
    return _asked(QUERIES_PROMPT, _queries_of(QueriesReply), reply, given, question=question, max_queries=5)


def _queries_of(model: Any) -> Callable[[str], Kept]:
    return lambda reply: [[query] for query in read_reply(reply, model).queries]


def _hypothesis(reply: str, given: Blocks) -> tuple[Kept, str]:
    variables = {name: fence(given[name], name) for name in ("report", "question")}
    return _asked(HYPOTHESIS_PROMPT, lambda text: [[plain_answer(text)]], reply, given, **variables)


def _primer(reply: str, given: Blocks) -> tuple[Kept, str]:
    variables = {"passages": fence(given["passage"]), "question": fence(given["question"], "question")}
    return _asked(PRIMER_PROMPT, lambda text: [[read_reply(text, _Answer).answer]], reply, given, **variables)


def _map(reply: str, given: Blocks) -> tuple[Kept, str]:
    llm = ScriptedLLM(lambda prompt: reply if "List what the numbered passages" in prompt else "Nothing is said.")
    nodes = [NodeWithScore(node=TextNode(text=text), score=1.0) for text in given["passage"]]
    response = ReportMapReduce(llm, retry=ONCE).synthesize(given["question"][0], nodes)
    answer = (response.metadata or {})["graphrag"]
    return [[point.text] for point in answer.points], "; ".join((answer.failed or {}).values())


def _reduce(reply: str, given: Blocks) -> tuple[Kept, str]:
    return [[plain_answer(reply)]], ""


STEPS: Mapping[str, tuple[str, Callable[[str, Blocks], tuple[Kept, str]]]] = {
    "List the named entities of the text": ("HippoRAG: entities", _entities),
    "Say what the text between the first tags": ("HippoRAG: triples", _triples),
    "Text: ": ("tried: lines of triples", _triples),
    "Read the text between the tags and write": ("GEM-RAG: questions", _questions),
    "Otto Lindqvist founded": ("tried: lines of questions", _questions),
    "Summarise the passages": ("RAPTOR: summary", _summary),
    "Take apart the text": ("PG-RAG: mind map", _mind_map),
    "List the entities of the text": ("Graph RAG: entities and relations", _graph),
    "List what the numbered passages": ("Graph RAG: points of a batch (map)", _map),
    "Answer the question from the points": ("Graph RAG: answer (reduce)", _reduce),
    "Write what a report": ("Graph RAG: hypothesis (DRIFT)", _hypothesis),
    "Answer the question from the numbered passages": ("Graph RAG: first answer (DRIFT)", _primer),
    "What is the document": ("spRAG: document", _document),
    "Which searches would": ("spRAG: queries of a question", _queries),
    "A search engine finds": ("MRAG: queries of a question", _aspects),
}


def recorded(folder: str | Path) -> Iterator[Mapping[str, Any]]:
    """The recorded requests and replies that were sent to the end, without those to LlamaIndex's own prompts."""
    with gzip.open(Path(folder) / "small_llm" / "replies.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if _step_of(row) is not None and row["finish"] != "client gone":
                yield row


def _step_of(row: Mapping[str, Any]) -> tuple[str, Callable[[str, Blocks], tuple[Kept, str]]] | None:
    first = row["messages"][0]["content"]
    return next((step for beginning, step in STEPS.items() if first.startswith(beginning)), None)


def _blocks(row: Mapping[str, Any]) -> Blocks:
    """The texts between the tags of a request; in the prompts that were tried, what stands before the task."""
    found: dict[str, list[str]] = {}
    asked = [message["content"] for message in row["messages"] if message["role"] == "user"]
    for tag, text in dict.fromkeys(_BLOCK.findall("\n".join(asked))):
        found.setdefault(tag, []).append(text)
    return found or {"text": [asked[-1].removeprefix("Text: ").rsplit("\n\nWrite ", 1)[0]]}


def outcomes(folder: str | Path) -> Iterator[Outcome]:
    """What becomes of each recorded reply."""
    for row in recorded(folder):
        name, run = _step_of(row) or ("", _reduce)
        given = _blocks(row)
        about = "\n".join(text for tag, texts in given.items() if tag != "entities" for text in texts)
        try:
            kept, failed = run(row["reply"], given)
        except ExtractionError as error:
            kept, failed = [], str(error)
        yield Outcome(name, about, row["reply"], kept, failed)


# replies of which something was kept, kept items and garbage among them, as they were before readers were bounded
BEFORE: Mapping[str, tuple[int, int, int]] = {
    "HippoRAG: entities": (16, 29, 2),
    "HippoRAG: triples": (0, 0, 0),
    "tried: lines of triples": (0, 0, 0),
    "GEM-RAG: questions": (0, 0, 0),
    "tried: lines of questions": (6, 18, 1),
    "RAPTOR: summary": (1, 1, 1),
    "PG-RAG: mind map": (0, 0, 0),
    "Graph RAG: entities and relations": (3, 3, 1),
    "Graph RAG: points of a batch (map)": (1, 1, 0),
    "Graph RAG: answer (reduce)": (1, 1, 0),
    "Graph RAG: hypothesis (DRIFT)": (2, 2, 0),
    "Graph RAG: first answer (DRIFT)": (0, 0, 0),
    "spRAG: document": (1, 2, 0),
    "spRAG: queries of a question": (3, 3, 0),
    "MRAG: queries of a question": (0, 0, 0),
}


def table(found: Sequence[Outcome]) -> str:
    """The table of the documentation."""
    rows = ["| step | replies | read, before | read | garbage, before | garbage |", "|---|---|---|---|---|---|"]
    names = [name for name, _ in STEPS.values()]
    for name in names:
        own = [outcome for outcome in found if outcome.step == name]
        read, items, garbage = counts(own)
        before_read, before_items, before_garbage = BEFORE.get(name, (0, 0, 0))
        shown = f"{before_garbage} of {before_items} | {garbage} of {items}"
        rows.append(f"| {name} | {len(own)} | {before_read} | {read} | {shown} |")
    return "\n".join(rows)


def counts(own: Sequence[Outcome]) -> tuple[int, int, int]:
    """Replies of which something was kept, items that were kept, and garbage among these."""
    kept = [outcome for outcome in own if outcome.kept]
    return len(kept), sum(len(outcome.kept) for outcome in kept), sum(len(outcome.garbage) for outcome in kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RAG_DATA"), help="default: RAG_DATA")
    parser.add_argument("--show", action="store_true", help="print each reply and what was kept of it")
    options = parser.parse_args()
    if not options.data:
        raise SystemExit("Name the folder of the corpora: --data DIR, or RAG_DATA.")
    found = list(outcomes(options.data))
    for outcome in found if options.show else ():
        print(f"\n{outcome.step}: {outcome.reply[:300]!r}\n  {outcome.failed[:200] or outcome.kept}")
        if outcome.garbage:
            print(f"  garbage: {outcome.garbage}")
    print(table(found))


if __name__ == "__main__":
    main()
