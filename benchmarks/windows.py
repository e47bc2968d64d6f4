"""Every step with a language model, in small context windows: how long its longest prompt is, and what is refused.

    python -m benchmarks.windows                 # the table of docs/local_models.md
    python -m benchmarks.windows --window 2048   # of one window
    python -m benchmarks.windows --before FILE   # beside what another commit printed

The model is a script that reads made-up texts about people and places, and refuses a prompt as a server does. It counts
45 % more tokens than tiktoken, as SmolLM2 does at most. Builds use LlamaIndex's default chunks of 1,024 tokens.
"""

import argparse
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate
from llama_index.core.schema import Document, TextNode
from pydantic import BaseModel

import llama_index.gemrag.prompts as gemrag_prompts
import llama_index.graphrag.prompts as graphrag_prompts
import llama_index.hipporag.prompts as hipporag_prompts
import llama_index.mrag.prompts as mrag_prompts
import llama_index.pgrag.prompts as pgrag_prompts
import llama_index.sprag.prompts as sprag_prompts
from llama_index.gemrag import GEMRAGIndex, UtilityQuestionExtractor
from llama_index.graphrag import (
    EntityExtractor,
    GraphRAGIndex,
    GraphRAGQueryEngine,
    LLMResolver,
    PublishedOptions,
    ReportWriter,
)
from llama_index.hipporag import HippoRAGIndex, IRCoTRetriever, OpenIEExtractor
from llama_index.mrag import MRAGIndex, MultiAspectGenerator
from llama_index.pgrag import MindMapExtractor, PGRAGIndex
from llama_index.pgrag.evaluation import quest_eval
from llama_index.ragkit import LLMSummarizer, RetryPolicy, StructuredExtractor
from llama_index.ragkit.compare.questions import PROMPT as COMPARE_PROMPT
from llama_index.ragkit.compare.questions import written
from llama_index.ragkit.extraction.structured import STRUCTURED_PROMPT
from llama_index.ragkit.llm.prompts import SUMMARY_PROMPT
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.raptor import RaptorIndex
from llama_index.sprag import AutoContext, SpRAGIndex

__all__ = ["METHODS", "MORE_TOKENS", "QUESTION", "STEPS", "WINDOWS", "WindowLLM", "documents", "run", "table"]

MORE_TOKENS = 1.45
WINDOWS = (2048, 4096, 8192)
ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)
QUESTION = "What did Ada Lisbon do at Tern Rock, and with whom?"
_BLOCK = re.compile(r"<([a-z-]+)-[0-9a-f]{8} number=\"(\d+)\">\n(.*?)\n</\1-[0-9a-f]{8}>", re.DOTALL)
_NAME = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
_STATEMENT = re.compile(r"^\[(\d+)\] (.+)$", re.MULTILINE)
_PART = re.compile(r"^\[(\d+)\]$", re.MULTILINE)

_ARTICLE = " ".join(f"Lamp {i} burned for {i} nights." for i in range(9))

FIRST = ("Ada", "Carl", "Edith", "Frank", "Greta", "Hugo", "Irma", "Jonas", "Klara", "Ludwig")
LAST = ("Lisbon", "Hale", "Babbage", "Byron", "Lindqvist", "Somerville", "Faraday", "Herschel", "Tesla", "Noether")
PLACES = ("Tern Rock", "Royal Society", "Port Oban", "Lake Tovel", "Mill Street", "Castle Hill")
DEEDS = ("kept the lamp", "drew the engine", "wrote to the keeper", "paid for the tower", "repaired the bell")


def documents(count: int, sentences: int, seed: int = 0) -> list[Document]:
    """Made-up documents of some sentences each, about 25 tokens a sentence, with titles and categories."""
    random_ = random.Random(seed)

    def sentence(i: int) -> str:
        one, other = (f"{random_.choice(FIRST)} {random_.choice(LAST)}" for _ in range(2))
        return (
            f"{one} {random_.choice(DEEDS)} with {other} at {random_.choice(PLACES)} in {1700 + i % 300}, "
            f"and sold {random_.randrange(90)} barrels of oil."
        )

    return [
        Document(
            text=" ".join(sentence(i) for i in range(sentences)),
            id_=f"d{number}",
            metadata={"title": f"{FIRST[number % 10]} {LAST[number // 10 % 10]}", "category": f"c{number}"},
        )
        for number in range(count)
    ]


# -- the model ------------------------------------------------------------------------------------------------


class ContextOverflowError(Exception):
    """As a server answers a prompt that is too long, without saying how long it may be."""

    status_code = 400


class Call(NamedTuple):
    """A call of the model.

    Attributes
    ----------
    size : tokens of the prompt, as the model counts them
    bound : of the reply; 0 for none
    """

    step: str
    size: int
    bound: int
    prompt: str


class WindowLLM(ScriptedLLM):
    """A scripted model with a context window, which refuses what does not fit."""

    window: int = 2048
    max_tokens: int | None = None
    _asked: list[Call] = PrivateAttr(default_factory=list)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("", **kwargs)

    @property
    def metadata(self) -> LLMMetadata:
        """With the window."""
        return LLMMetadata(model_name="window", context_window=self.window, num_output=self.max_tokens or 256)

    @property
    def asked(self) -> list[Call]:
        """Every call so far; clear the list to count anew."""
        return self._asked

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The reply of the step that asks."""
        step, reply = next((name, reply) for name, (head, reply) in STEPS.items() if head in prompt)
        size = math.ceil(MORE_TOKENS * count_tokens(prompt))
        self._asked.append(Call(step, size, self.max_tokens or 0, prompt))
        if size > self.window > 0:
            raise ContextOverflowError("the request exceeds the available context size")
        blocks = [(tag, text) for tag, _, text in _BLOCK.findall(prompt)]
        return CompletionResponse(text=reply(blocks, prompt))


Blocks = Sequence[tuple[str, str]]
Script = Callable[[Blocks, str], str]


def _sentences(text: str) -> list[str]:
    return [
        sentence for line in text.splitlines() for sentence in re.split(r"(?<=[a-z]\.)\s+", line) if sentence.strip()
    ]


def _text(blocks: Blocks, tag: str = "text") -> str:
    return next((text for name, text in reversed(blocks) if name == tag), "")


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(_NAME.findall(text)))


def _pairs(text: str) -> list[tuple[str, str, str]]:
    return [(found[0], found[1], line) for line in _sentences(text) if len(found := _NAME.findall(line)) > 1]


def _plain(blocks: Blocks, prompt: str) -> str:
    return " ".join(_sentences(blocks[-1][1])[:3] if blocks else ["Ada Lisbon kept the lamp at Tern Rock."] * 1)


def _first_sentence(blocks: Blocks, prompt: str) -> str:
    return (_sentences(blocks[0][1]) or ["Ada Lisbon kept the lamp at Tern Rock."])[0]


def _as_json(make: Callable[[Blocks], Any], blocks: Blocks, prompt: str) -> str:
    return json.dumps(make(blocks))


def _graph(blocks: Blocks) -> Any:
    text = _text(blocks)
    return {
        "entities": [{"name": name, "type": "person", "description": f"{name} is named"} for name in _names(text)],
        "relations": [{"source": a, "target": b, "description": line, "strength": 5} for a, b, line in _pairs(text)],
    }


def _claims(blocks: Blocks) -> Any:
    return {
        "claims": [
            {"subject": a, "object": b, "type": "deed", "status": "true", "quotation": line, "description": line}
            for a, b, line in _pairs(_text(blocks))[:3]
        ]
    }


def _report(blocks: Blocks) -> Any:
    lines = _STATEMENT.findall(_text(blocks, "statements"))
    return {
        "title": "People",
        "summary": lines[0][1],
        "rating": 5,
        "findings": [{"text": text, "sources": [int(number)]} for number, text in lines[:8]],
    }


def _points(blocks: Blocks) -> Any:
    passages = [text for tag, text in blocks if tag == "passage"]
    return {"points": [{"text": text, "score": 90 - i % 50, "sources": [i]} for i, text in enumerate(passages, 1)]}


def _answer(blocks: Blocks) -> Any:
    passage = next(text for tag, text in blocks if tag == "passage")
    follow_ups = [f"What did {name} do?" for name in _names(passage)[:2]]
    return {"answer": _sentences(passage)[0], "sources": [1], "score": 50, "follow_ups": follow_ups}


def _mind_map(blocks: Blocks) -> Any:
    lines = _sentences(_text(blocks))
    return {"topic": "People", "statements": lines, "mind_map": {"People": lines}}


def _sections(blocks: Blocks, prompt: str) -> str:
    first = _PART.findall(prompt)[-sum(tag == "part" for tag, _ in blocks) :]
    numbers = [number for number in first if f"[{number}]\n<part" in prompt]
    named = {"title": "Ada Lisbon", "summary": ""}
    return json.dumps({"sections": [{"first": int(numbers[-1]), **named}]})


def _story(blocks: Blocks, prompt: str) -> str:
    titles = [text.split("\n")[0] for tag, text in blocks if tag == "article"]
    return " ".join(f"{title} kept the lamp at Tern Rock with the others for many years." for title in titles)


def _heads(module: Any, names: Mapping[str, tuple[str, Script]]) -> dict[str, tuple[str, Script]]:
    return {step: (_head(getattr(module, name)), reply) for name, (step, reply) in names.items()}


def _head(prompt: BasePromptTemplate) -> str:
    """Words of the first line of a prompt, without its variables."""
    text = prompt.message_templates[0].content if isinstance(prompt, ChatPromptTemplate) else prompt.get_template()
    heads: list[str] = re.split(r"{.*?}|\n", str(text))
    return next(head for head in heads if len(head) > 20)


def _json(make: Callable[[Blocks], Any]) -> Script:
    return partial(_as_json, make)


STEPS: dict[str, tuple[str, Script]] = {
    "RAPTOR, GEM-RAG: summary": (_head(SUMMARY_PROMPT), _plain),
    **_heads(
        gemrag_prompts,
        {
            "QUESTION_PROMPT": (
                "GEM-RAG: questions",
                _json(lambda b: {"questions": [f"Why did {line}?" for line in _sentences(_text(b))[:5]]}),
            )
        },
    ),
    **_heads(
        hipporag_prompts,
        {
            "ENTITIES_PROMPT": (
                "HippoRAG: entities",
                _json(lambda b: {"named_entities": _names(_text(b))}),
            ),
            "TRIPLES_PROMPT": (
                "HippoRAG: triples",
                _json(lambda b: {"triples": [[a, "met", c] for a, c, _ in _pairs(_text(b))]}),
            ),
            "QUESTION_PROMPT": (
                "HippoRAG: entities of a question",
                _json(lambda b: {"named_entities": ["Ada Lisbon", "Tern Rock"]}),
            ),
            "FACTS_PROMPT": ("HippoRAG: facts of a question", _json(lambda b: {"facts": [1]})),
            "THOUGHT_PROMPT": ("HippoRAG: thought (IRCoT)", _first_sentence),
        },
    ),
    **_heads(
        graphrag_prompts,
        {
            "EXTRACT_PROMPT": ("Graph RAG: entities and relations", _json(_graph)),
            "GLEAN_PROMPT": ("Graph RAG: gleaning", _json(_graph)),
            "CLAIMS_PROMPT": ("Graph RAG: claims", _json(_claims)),
            "RESOLVE_PROMPT": ("Graph RAG: two names", lambda b, p: "no"),
            "REPORT_PROMPT": ("Graph RAG: report", _json(_report)),
            "MAP_PROMPT": ("Graph RAG: points of a batch (map)", _json(_points)),
            "ANSWER_PROMPT": ("Graph RAG: answer (reduce)", _plain),
            "RATE_PROMPT": ("Graph RAG: ratings", _json(lambda b: {"ratings": [{"number": 1, "rating": 4}]})),
            "RELEVANCE_PROMPT": ("Graph RAG: relevance", lambda b, p: "yes"),
            "HYPOTHESIS_PROMPT": ("Graph RAG: hypothesis (DRIFT)", _plain),
            "PRIMER_PROMPT": ("Graph RAG: first answer (DRIFT)", _json(_answer)),
            "FOLLOW_UP_PROMPT": ("Graph RAG: follow-up (DRIFT)", _json(_answer)),
        },
    ),
    **_heads(
        pgrag_prompts,
        {
            "MIND_MAP_PROMPT": ("PG-RAG: mind map", _json(_mind_map)),
            "KEY_POINTS_PROMPT": ("PG-RAG: key points", _json(lambda b: {"key_points": ["Ada Lisbon at Tern Rock"]})),
            "QUESTIONS_PROMPT": (
                "PG-RAG: questions of an evaluation",
                _json(lambda b: [{"question": f"Who is {name}?", "answer": name} for name in _names(_text(b))[:10]]),
            ),
            "QUIZ_PROMPT": ("PG-RAG: answers of an evaluation", _json(lambda b: _names(_text(b))[:10])),
        },
    ),
    **_heads(
        mrag_prompts,
        {
            "ASPECTS_PROMPT": ("MRAG: aspects", _json(lambda b: {"queries": ["Ada Lisbon at Tern Rock"]})),
            "STORY_PROMPT": ("MRAG: story of an evaluation", _story),
            "TOPICS_PROMPT": ("MRAG: topics of an evaluation", _json(lambda b: {"topics": ["Lamps", "Oil"]})),
            "ARTICLE_PROMPT": ("MRAG: article of an evaluation", lambda b, p: _ARTICLE),
        },
    ),
    **_heads(
        sprag_prompts,
        {
            "DOCUMENT_PROMPT": (
                "spRAG: title and summary",
                _json(lambda b: {"title": "Ada Lisbon", "summary": _sentences(_text(b, "document"))[0]}),
            ),
            "SECTIONS_PROMPT": ("spRAG: sections", _sections),
            "QUERIES_PROMPT": ("spRAG: queries", _json(lambda b: {"queries": ["Ada Lisbon at Tern Rock"]})),
        },
    ),
    "compare: question": (_head(COMPARE_PROMPT), lambda b, p: "Who kept the lamp at Tern Rock?"),
    "StructuredExtractor": (
        _head(STRUCTURED_PROMPT),
        _json(lambda b: {"names": _names(_text(b)), "about": "people"}),
    ),
}


# -- the methods ----------------------------------------------------------------------------------------------


class _People(BaseModel):
    """Who is named."""

    names: list[str]
    about: str


def _raptor(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> Any:
    return RaptorIndex.from_documents(texts, summarizer=LLMSummarizer(retry=ONCE), **given)


def _gemrag(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> Any:
    summarizer, extractor = LLMSummarizer(retry=ONCE), UtilityQuestionExtractor(retry=ONCE)
    return GEMRAGIndex.from_documents(texts, extractor=extractor, summarizer=summarizer, **given)


def _hipporag(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> Any:
    index = HippoRAGIndex.from_documents(texts, extractor=OpenIEExtractor(retry=ONCE), fact_vectors=True, **given)
    index.as_retriever(question_entities="llm", linking="entities").retrieve(QUESTION)
    index.as_retriever(filter_facts=True, linking="facts").retrieve(QUESTION)
    IRCoTRetriever(index.as_retriever(similarity_top_k=10), llm=llm, retry=ONCE).retrieve(QUESTION)
    return index


def _graphrag(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> Any:
    extractor = EntityExtractor(retry=ONCE, gleanings=1, claims=True)
    index = GraphRAGIndex.from_documents(
        texts,
        extractor=extractor,
        summarizer=ReportWriter(retry=ONCE),
        reports="eager",
        resolver=LLMResolver(0.999, retry=ONCE),
        entity_vectors=True,
        **given,
    )
    GraphRAGQueryEngine.over(index).query(QUESTION)
    GraphRAGQueryEngine.over(index, mode="drift").query(QUESTION)
    index.as_retriever(mode="global", rating_threshold=3).retrieve(QUESTION)
    index.as_retriever(mode="global", published=PublishedOptions(relevance_budget=3)).retrieve(QUESTION)
    return index


def _pgrag(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> Any:
    extractor = MindMapExtractor(retry=ONCE, verify=False)
    index = PGRAGIndex.from_documents(texts, extractor=extractor, **given)
    index.as_retriever(key_points="llm").retrieve(QUESTION)
    quest_eval(texts[0].text, texts[0].text, llm, retry=ONCE)
    return index


def _mrag(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> Any:
    index = MRAGIndex.from_documents(texts[:1], **given)
    index.as_retriever(aspects="llm").retrieve(QUESTION)
    generator = MultiAspectGenerator(llm, retry=ONCE)
    generator.generate_queries(texts, aspects=[len(texts)], per_count=1)
    generator.generate_documents(["Light"], per_category=1)
    return index


def _sprag(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> Any:
    index = SpRAGIndex.from_documents(texts, extractor=AutoContext(retry=ONCE, sections="llm"), **given)
    index.as_retriever(auto_query=True).retrieve(QUESTION)
    return index


def _shared(llm: WindowLLM, texts: Sequence[Document], given: Mapping[str, Any]) -> None:
    nodes = [TextNode(text=text.text[:4000]) for text in texts]
    run_steps(StructuredExtractor(output_cls=_People, llm=llm, retry=ONCE).extract(nodes))
    written(texts, llm, None, 2, 0)


METHODS: dict[str, Callable[[WindowLLM, Sequence[Document], Mapping[str, Any]], Any]] = {
    "raptor": _raptor,
    "gemrag": _gemrag,
    "hipporag": _hipporag,
    "graphrag": _graphrag,
    "pgrag": _pgrag,
    "mrag": _mrag,
    "sprag": _sprag,
    "ragkit": _shared,
}


def run(method: str, window: int, texts: Sequence[Document]) -> tuple[WindowLLM, Any, str]:
    """A build with a model of a context window, and a question for each step that questions have.

    Returns
    -------
    The model, the index, and what was raised; None and "" for none.
    """
    llm = WindowLLM(window=window)
    given = {"llm": llm, "embed_model": HashEmbedding(), "transformations": [SentenceSplitter()]}
    if method == "mrag":
        given["embed_model"] = _heads_model()
    try:
        return llm, METHODS[method](llm, texts, given), ""
    except Exception as error:
        return llm, None, f"{type(error).__name__}: {error}"


def _heads_model() -> Any:
    from tests.cases import HashHeads

    return HashHeads()


def table(windows: Sequence[int] = WINDOWS, before: Mapping[str, Sequence[str]] | None = None) -> str:
    """For each step and window the tokens of the longest prompt, and how many prompts were refused, as Markdown.

    Parameters
    ----------
    before : the cells of another table of these windows by step, to stand before these
    """
    cells: dict[str, dict[int, str]] = {step: {} for step in STEPS}
    notes = []
    texts = documents(6, 180)
    for window in windows:
        for method in METHODS:
            llm, index, raised = run(method, window, texts)
            if raised:
                notes.append(f"{window:,}: {method} raises {raised[:150]}")
            elif index is not None and index.failures():
                notes.append(f"{window:,}: {method} has {len(index.failures())} failures")
            for step in {call.step for call in llm.asked}:
                sizes = {call.prompt: call.size for call in llm.asked if call.step == step}.values()
                cells[step][window] = f"{max(sizes):,} ({sum(size > window for size in sizes)}/{len(sizes)})"
    heads, rows = (
        [f"{window:,}" for window in windows],
        {step: [of.get(w, "-") for w in windows] for step, of in cells.items()},
    )
    if before is not None:
        heads = [each for head in heads for each in (f"{head}, before", head)]
        rows = {
            step: [each for pair in zip(before[step], row, strict=True) for each in pair] for step, row in rows.items()
        }
    lines = [["step", *heads], ["---"] * (1 + len(heads)), *([step, *row] for step, row in rows.items())]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), *notes])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--window", type=int, action="append", help="a context window, repeatable")
    parser.add_argument("--before", type=Path, metavar="FILE", help="what another commit printed for these windows")
    options = parser.parse_args()
    before = None
    if options.before is not None:
        rows = [line.strip("| ").split(" | ") for line in options.before.read_text(encoding="utf-8").splitlines()]
        before = {step: row for step, *row in rows if row}
    print(table(options.window or WINDOWS, before))


if __name__ == "__main__":
    main()
