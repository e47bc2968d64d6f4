"""A model of twelve temperaments, and every step at which a language model is asked.

A step is run through public classes with a model that answers this step in one temperament and every other one well.
What became of it is either content that the good answer has too, or a failure that is heard.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from pydantic import Field
from tests.cases import HashHeads

from llama_index.gemrag import GEMRAGIndex, UtilityQuestionExtractor
from llama_index.graphrag import EntityExtractor, GraphRAGIndex, PublishedOptions, ReportMapReduce, ReportWriter
from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, IRCoTRetriever, NounPhraseExtractor, OpenIEExtractor
from llama_index.mrag import MRAGIndex, MRAGRetriever, MultiAspectGenerator
from llama_index.pgrag import MindMapExtractor, OutlineExtractor, PGRAGIndex
from llama_index.ragkit import ExtractiveSummarizer, FallbackEvent, LLMSummarizer, RetryPolicy
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.raptor import RaptorIndex
from llama_index.sprag import AutoContext, RuleContext, SpRAGIndex

ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)
TEXTS = [
    "Ada Byron met Charles Babbage in London in the summer.",
    "Charles Babbage designed the Analytical Engine in London.",
    "The Analytical Engine used punched cards, as Ada Byron wrote.",
]
QUESTION = "What did Charles Babbage design, and whom did Ada Byron meet in London?"

Failed = str
Outcome = tuple[list[str], Failed]  # what was taken for content, and the failure that was heard


@dataclass(frozen=True)
class Step:
    """One step at which a model is asked.

    Attributes
    ----------
    name : package and what is asked for
    marker : a part of the prompt that no other step has
    right : the good answer
    run : asks a model, and tells what became of its answer
    objects, other_keys, numbered, foreign : the same in another shape, under other names, as a list of lines, and
        something in another language
    words : further words that content may have
    """

    name: str
    marker: str
    right: str
    run: Callable[[ScriptedLLM], Outcome]
    objects: str
    other_keys: str
    numbered: str
    foreign: str
    words: str = ""


def nodes() -> list[TextNode]:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="D")}
    return [
        TextNode(id_=f"n{i}", text=text, start_char_idx=100 * i, relationships=source) for i, text in enumerate(TEXTS)
    ]


# -- temperaments ---------------------------------------------------------------------------------------

EXAMPLE = re.compile(r"assistant: (\{.*\})")


def _with_example(step: Step, prompt: str) -> str:
    shown = EXAMPLE.search(prompt)
    if not shown:  # a prompt without a worked example: its beginning
        return f"{prompt[:300]}\n\n{step.right}"
    example = shown[1]
    return f"For the example the answer is\n{example}\nand for your text it is\n{step.right}"


def _endless(step: Step, prompt: str) -> str:
    begun = step.right[: len(step.right) // 2]
    return begun + " and again and again" * 5_000


TEMPERAMENTS: Mapping[str, Callable[[Step, str], str]] = {
    "right": lambda step, prompt: step.right,
    "objects": lambda step, prompt: step.objects,
    "fenced": lambda step, prompt: f"```json\n{step.right}\n```",
    "chatty": lambda step, prompt: (
        f"Sure! Here is the answer:\n\n{step.right}\n\nLet me know if you need anything else!"
    ),
    "echo": lambda step, prompt: prompt,
    "example first": _with_example,
    "truncated": lambda step, prompt: step.right[: len(step.right) * 7 // 10],
    "other keys": lambda step, prompt: step.other_keys,
    "numbered list": lambda step, prompt: step.numbered,
    "wrong language": lambda step, prompt: step.foreign,
    "empty": lambda step, prompt: "",
    "endless": _endless,
}


def model(step: Step, temperament: str) -> ScriptedLLM:
    """Answers one step in a temperament, and the others well."""

    def script(prompt: str) -> str:
        asked = next((other for other in STEPS if other.marker in prompt), None)
        if asked is None:
            raise ValueError(f"No step has this prompt: {prompt[:200]}")
        return TEMPERAMENTS[temperament](step, prompt) if asked.marker == step.marker else asked.right

    return ScriptedLLM(script)


@cache
def verdict(step: Step, temperament: str) -> str:
    """ "content", "failure", or what is neither."""
    try:
        content, failed = step.run(model(step, temperament))
    except ExtractionError as error:
        return "failure" if str(error) else "an error without a word"
    wrong = [text for text in content if not _words(text) <= _allowed(step)]
    if wrong:
        return f"wrong content: {wrong[0][:200]!r}"
    if content:
        return "content"
    return "failure" if failed else "neither content nor failure"


def _allowed(step: Step) -> Collection[str]:
    return _words(f"{step.right} {step.words}")


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if not word.isdigit()}


# -- what became of an answer -----------------------------------------------------------------------------


class _Fallbacks(BaseEventHandler):
    reasons: list[str] = Field(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Fallbacks"

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, FallbackEvent):
            self.reasons.append(event.reason)


@contextmanager
def fallbacks() -> Iterator[list[str]]:
    """Reasons of the fallback events inside the block."""
    handler = _Fallbacks(reasons=[])
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        yield handler.reasons
    finally:
        dispatcher.event_handlers.remove(handler)


def records(index: Any) -> dict[str, Any]:
    entries = run_steps(index.storage.manifest.entries())
    return {node_id: entry.record for node_id, entry in entries.items() if entry.record}


def heard(index: Any) -> Failed:
    return "; ".join(failure.reason for failure in index.failures())


def one(**kwargs: Any) -> dict[str, Any]:
    return {"nodes": nodes()[:1], "embed_model": HashEmbedding(), "fallback": None, **kwargs}


def extracted(index: Any, key: str) -> Outcome:
    found = [item for record in records(index).values() for item in record.get(key, ())]
    return [item if isinstance(item, str) else " ".join(map(str, item)) for item in found], heard(index)


def hippo_extraction(key: str) -> Callable[[ScriptedLLM], Outcome]:
    return lambda llm: extracted(HippoRAGIndex(llm=llm, extractor=OpenIEExtractor(retry=ONCE), **one()), key)


def hippo_question(preset: Callable[..., HippoRAGRetriever]) -> Callable[[ScriptedLLM], Outcome]:
    def run(llm: ScriptedLLM) -> Outcome:
        index = HippoRAGIndex(nodes=nodes(), embed_model=HashEmbedding(), extractor=NounPhraseExtractor())
        with fallbacks() as reasons:
            explained = preset(index, llm=llm, retry=ONCE, similarity_top_k=3).explain(QUESTION)
        linked = {link.phrase for why in explained for link in why.linked}
        return sorted(linked) if not reasons else [], "; ".join(reasons)

    return run


def ircot(llm: ScriptedLLM) -> Outcome:
    asked: list[str] = []

    class Inner(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            asked.append(query_bundle.query_str)
            return [NodeWithScore(node=nodes()[0], score=1.0)]

    with fallbacks() as reasons:
        IRCoTRetriever(Inner(), llm=llm, retry=ONCE, max_steps=2).retrieve(QUESTION)
    return asked[1:], "; ".join(reasons)


def gem_questions(llm: ScriptedLLM) -> Outcome:
    extractor = UtilityQuestionExtractor(retry=ONCE, num_questions=2)
    return extracted(GEMRAGIndex(llm=llm, extractor=extractor, summarizer=ExtractiveSummarizer(), **one()), "questions")


def raptor(llm: ScriptedLLM) -> Outcome:
    index = RaptorIndex(
        nodes=nodes(),
        embed_model=HashEmbedding(),
        llm=llm,
        summarizer=LLMSummarizer(retry=ONCE),
        summary_tokens=60,
        fallback=None,  # what the model did is looked at
    )
    results = index.as_retriever(similarity_top_k=20, summary_margin=None).retrieve(QUESTION)
    return [r.node.get_content() for r in results if r.node.get_content() not in TEXTS], heard(index)


def mind_map(llm: ScriptedLLM) -> Outcome:
    extractor = MindMapExtractor(retry=ONCE, max_regenerations=0, min_semantic=-1.0, min_rouge_l=0.0)
    index = PGRAGIndex(llm=llm, extractor=extractor, **one())
    paths, failed = extracted(index, "paths")
    return [*paths, *(record["topic"] for record in records(index).values())], failed


def embedded(index: Any, model: HashEmbedding, ask: Callable[[], Any], own: Collection[str]) -> Outcome:
    """The questions that were embedded beside the user's own."""
    model.texts.clear()
    with fallbacks() as reasons:
        ask()
    return [text for text in dict.fromkeys(model.texts) if text not in own], "; ".join(reasons)


def key_points(llm: ScriptedLLM) -> Outcome:
    index = PGRAGIndex(nodes=nodes(), embed_model=HashEmbedding(), extractor=OutlineExtractor())
    explained = index.as_retriever(key_points="llm", llm=llm, retry=ONCE).explain(QUESTION)
    return sorted({why.key_point for why in explained} - {QUESTION}), explained[0].fallback


def aspects(llm: ScriptedLLM) -> Outcome:
    model = HashHeads()
    index = MRAGIndex(nodes=nodes(), embed_model=model)
    plain = MRAGRetriever(index)
    model.texts.clear()
    plain.retrieve(QUESTION)
    own = set(model.texts)
    retriever = MRAGRetriever(index, aspects="llm", llm=llm, retry=ONCE)
    return embedded(index, model, lambda: retriever.retrieve(QUESTION), own)


def generated(llm: ScriptedLLM) -> Outcome:
    documents = MultiAspectGenerator(llm, retry=ONCE).generate_documents(["engines"], per_category=2)
    # What fails is logged and left out: fewer documents than were asked for.
    return [f"{document.metadata['title']} {document.text}" for document in documents], (
        "" if len(documents) == 2 else "fewer documents than were asked for"
    )


def graph(llm: ScriptedLLM, **kwargs: Any) -> GraphRAGIndex:
    extractor = EntityExtractor(retry=ONCE, gleanings=kwargs.pop("gleanings", 0))
    given = {"nodes": nodes(), "embed_model": HashEmbedding(), "summarizer": ReportWriter(retry=ONCE), "fallback": None}
    return GraphRAGIndex(llm=llm, extractor=extractor, **{**given, **kwargs})


def graph_extraction(**kwargs: Any) -> Callable[[ScriptedLLM], Outcome]:
    def run(llm: ScriptedLLM) -> Outcome:
        index = graph(llm, nodes=nodes()[:1], **kwargs)
        entities, failed = extracted(index, "entities")
        relations, _ = extracted(index, "relations") if entities else ([], "")
        return [] if failed else [*entities, *relations], failed  # what a first reading found stays after a failure

    return run


def report(llm: ScriptedLLM) -> Outcome:
    index = graph(llm, reports="deferred", report_tokens=5)
    index.write_reports()
    return [written.report.text for written in index.state.reports.values()], heard(index)


def graph_question(**options: Any) -> Callable[[ScriptedLLM], Outcome]:
    def run(llm: ScriptedLLM) -> Outcome:
        index = graph(llm)
        with fallbacks() as reasons:
            found = index.as_retriever(mode=options.get("mode", "global"), retry=ONCE, **_without(options)).retrieve(
                QUESTION
            )
        return [] if reasons or not found else [""], "; ".join(reasons)

    return run


def _without(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "mode"}


def map_points(llm: ScriptedLLM) -> Outcome:
    response = ReportMapReduce(llm, retry=ONCE).synthesize(
        QUESTION, [NodeWithScore(node=node, score=1.0) for node in nodes()]
    )
    answer = response.metadata["graphrag"]
    return [point.text for point in answer.points], "; ".join((answer.failed or {}).values())


def reduced(llm: ScriptedLLM) -> Outcome:
    response = ReportMapReduce(llm, retry=ONCE).synthesize(
        QUESTION, [NodeWithScore(node=node, score=1.0) for node in nodes()]
    )
    answer = response.metadata["graphrag"]
    return [] if answer.unwritten else [str(response)], answer.unwritten


def context(sections: str) -> Callable[[ScriptedLLM], Outcome]:
    def run(llm: ScriptedLLM) -> Outcome:
        extractor = AutoContext(retry=ONCE, sections=sections)
        index = SpRAGIndex(nodes=nodes(), embed_model=HashEmbedding(), llm=llm, extractor=extractor)
        documents = [document for document in index.state.documents.values() if not document.error]
        if sections == "llm":
            return [" ".join(path) for d in documents for path in d.description["sections"]], heard(index)
        return [f"{d.title} {d.description['summary']}" for d in documents], heard(index)

    return run


def queries(llm: ScriptedLLM) -> Outcome:
    model = HashEmbedding()
    index = SpRAGIndex(nodes=nodes(), embed_model=model, extractor=RuleContext())
    retriever = index.as_retriever(auto_query=True, llm=llm, retry=ONCE)
    return embedded(index, model, lambda: retriever.retrieve(QUESTION), {QUESTION})


# -- the steps ----------------------------------------------------------------------------------------------


def listed(*lines: str) -> str:
    return "Here they are:\n" + "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))


def texts(key: str, other: str, item: str, *values: str) -> dict[str, str]:
    """The shapes of a list of texts."""
    return {
        "right": json.dumps({key: values}),
        "objects": json.dumps({key: [{item: value} for value in values]}),
        "other_keys": json.dumps({other: values}),
        "numbered": listed(*values),
        "foreign": json.dumps(
            {key: ["玛丽·居里出生于华沙的一个教师家庭", "她在巴黎大学学习物理和数学"]}, ensure_ascii=False
        ),
    }


def prose(*sentences: str) -> dict[str, str]:
    """The shapes of a text."""
    whole = " ".join(sentences)
    return {
        "right": whole,
        "objects": json.dumps({"text": whole}),
        "other_keys": json.dumps({"output": whole}),
        "numbered": listed(*sentences),
        "foreign": "玛丽·居里出生于华沙的一个教师家庭，她在巴黎大学学习物理和数学。",
    }


ENTITIES = [
    {"name": "Ada Byron", "type": "person", "description": "Ada Byron met Charles Babbage."},
    {"name": "Charles Babbage", "type": "person", "description": "Charles Babbage is in London."},
]
RELATION = {"source": "Ada Byron", "target": "Charles Babbage", "description": "Ada Byron met him.", "strength": 5}
FINDINGS = [{"text": "Ada Byron met Charles Babbage.", "sources": [1]}]
POINTS = [{"text": "Ada Byron met Charles Babbage.", "score": 80, "sources": [1]}]
FOREIGN = "玛丽·居里出生于华沙的一个教师家庭，她在巴黎大学学习物理和数学。"
ARTICLE = (
    "The Analytical Engine of Charles Babbage is what Ada Byron wrote about in London in the summer.\n"
    "The engine used punched cards, and they were made there by him, from steel."
)
STATEMENTS = ["Ada Byron met Charles Babbage.", "They met in London in the summer."]
GLEANED = [{"name": "London", "type": "geo", "description": "London is where they met."}]


def objects(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)


STEPS: list[Step] = [
    Step(
        "HippoRAG: entities",
        "List the named entities of the text",
        run=hippo_extraction("entities"),
        **texts("named_entities", "Entities", "name", "Ada Byron", "Charles Babbage", "London"),
    ),
    Step(
        "HippoRAG: triples",
        "Say what the text between the first tags states",
        objects(triples=[["Ada Byron", "met", "Charles Babbage"], ["Ada Byron", "was in", "London"]]),
        hippo_extraction("triples"),
        objects(triples=[{"subject": "Ada Byron", "predicate": "met", "object": "Charles Babbage"}]),
        objects(facts=[["Ada Byron", "met", "Charles Babbage"]]),
        listed("Ada Byron | met | Charles Babbage"),
        objects(triples=[["玛丽", "出生于", "华沙"]]),
    ),
    Step(
        "HippoRAG: entities of a question",
        "List the named entities of the question",
        run=hippo_question(partial(HippoRAGRetriever, linking="entities", question_entities="llm")),
        **texts("named_entities", "Entities", "name", "Charles Babbage", "Ada Byron"),
    ),
    Step(
        "HippoRAG: helpful facts",
        "Which of the numbered facts help",
        objects(facts=[1, 2]),
        hippo_question(HippoRAGRetriever.v2),
        objects(facts=[{"number": 1}, {"number": 2}]),
        objects(numbers=[1, 2]),
        listed("Ada Byron met Charles Babbage"),
        "前两个事实有帮助。",
        words=" ".join(TEXTS),
    ),
    Step(
        "HippoRAG: IRCoT",
        "You answer a question step by step",
        run=ircot,
        **prose("Charles Babbage designed the Analytical Engine.", "It is to be found whom Ada Byron met."),
    ),
    Step(
        "GEM-RAG: questions",
        "write the 2 most useful questions",
        run=gem_questions,
        **texts(
            "questions", "queries", "question", "Whom did Ada Byron meet?", "Where was Charles Babbage in the summer?"
        ),
    ),
    Step(
        "RAPTOR, GEM-RAG: summary",
        "Summarise the passages below",
        run=raptor,
        **prose("Ada Byron met Charles Babbage in London.", "Charles Babbage designed the Analytical Engine."),
    ),
    Step(
        "PG-RAG: mind map",
        "draw up a mind map of them",
        objects(
            topic="Ada Byron in London", statements=STATEMENTS, mind_map={"met": STATEMENTS[0], "in": STATEMENTS[1]}
        ),
        mind_map,
        objects(
            topic={"title": "Ada Byron in London"},
            statements=[{"text": text} for text in STATEMENTS],
            mind_map=[{"met": STATEMENTS[0]}, {"in": STATEMENTS[1]}],
        ),
        objects(title="Ada Byron in London", facts=STATEMENTS, map={"met": STATEMENTS[0]}),
        listed(*STATEMENTS),
        objects(topic="玛丽·居里", statements=["玛丽·居里出生于华沙。"], mind_map={"出生": "玛丽·居里出生于华沙。"}),
    ),
    Step(
        "PG-RAG: key points",
        "Which pieces of information would a full answer",
        run=key_points,
        **texts("key_points", "points", "point", "Charles Babbage designed it.", "Ada Byron did meet him in London."),
    ),
    Step(
        "MRAG: queries of a question",
        "A search engine finds documents that are near",
        run=aspects,
        **texts("queries", "searches", "query", "design of Charles Babbage", "whom Ada Byron met"),
    ),
    Step(
        "MRAG: topics",
        'topics of the category "engines"',
        run=generated,
        words=ARTICLE,
        **texts("topics", "titles", "title", "The Analytical Engine", "Punched cards"),
    ),
    Step(
        "MRAG: article",
        "Write a reference article",
        run=generated,
        words="The Analytical Engine Punched cards",
        **prose(*ARTICLE.splitlines()),
    ),
    Step(
        "Graph RAG: entities and relations",
        "List the entities of the text",
        objects(entities=ENTITIES, relations=[RELATION]),
        graph_extraction(),
        objects(entities=[["Ada Byron", "person"], ["Charles Babbage", "person"]], relations=[]),
        objects(nodes=ENTITIES, relationships=[RELATION]),
        listed("Ada Byron", "Charles Babbage"),
        objects(entities=[{"name": "玛丽·居里", "type": "人"}], relations=[]),
        words="5.0",
    ),
    Step(
        "Graph RAG: gleaning",
        "A first reading of the text",
        objects(entities=GLEANED, relations=[]),
        graph_extraction(gleanings=1),
        objects(entities=[["London", "geo"]], relations=[]),
        objects(nodes=GLEANED),
        listed("London"),
        objects(entities=[{"name": "玛丽·居里", "type": "人"}], relations=[]),
        words=json.dumps([ENTITIES, RELATION]),
    ),
    Step(
        "Graph RAG: report",
        "Write a report about a group",
        objects(title="Ada Byron", summary="Ada Byron met him.", rating=5, findings=FINDINGS),
        report,
        objects(title="Ada Byron", findings={"1": {"text": "Ada Byron met Charles Babbage [1]."}}),
        objects(name="Ada Byron", description="Ada Byron met him.", score=5, insights=FINDINGS),
        listed("Ada Byron met Charles Babbage [1]."),
        objects(title="玛丽·居里", summary=FOREIGN, rating=5, findings=[{"text": FOREIGN, "sources": [1]}]),
    ),
    Step(
        "Graph RAG: points of a batch (map)",
        "List what the numbered passages",
        objects(points=POINTS),
        map_points,
        objects(points=[{"text": "Ada Byron met Charles Babbage [1].", "score": {"value": 80}}]),
        objects(answers=[{"description": "Ada Byron met Charles Babbage.", "rating": "8/10", "source": 1}]),
        listed("Ada Byron met Charles Babbage [1]."),
        objects(points=[{"text": FOREIGN, "score": 80, "sources": [1]}]),
    ),
    Step(
        "Graph RAG: answer (reduce)",
        "Answer the question from the points",
        run=reduced,
        **prose("Charles Babbage designed it.", "Ada Byron met Charles Babbage in London."),
    ),
    Step(
        "Graph RAG: ratings",
        "Rate each numbered report",
        objects(ratings=[{"number": 1, "rating": 4}, {"number": 2, "rating": 2}]),
        graph_question(rating_threshold=1),
        objects(ratings=[[1, 4]]),
        objects(scores=[{"report": 1, "score": "4/5"}]),
        listed("4", "2"),
        "第一份报告最有用。",
    ),
    Step(
        "Graph RAG: relevance",
        "Does the passage between the tags help",
        "Yes.",
        graph_question(published=PublishedOptions(relevance_budget=3)),
        objects(relevant=True),
        objects(answer="yes"),
        listed("yes"),
        "有帮助。",
    ),
    Step(
        "Graph RAG: hypothesis (DRIFT)",
        "Write what a report of the following form",
        run=graph_question(mode="drift", max_calls=4),
        **prose("Charles Babbage designed it.", "Ada Byron met Charles Babbage in London."),
    ),
    Step(
        "Graph RAG: first answer (DRIFT)",
        "Answer the question from the numbered passages",
        objects(answer="Ada Byron met him.", sources=[1], score=60, follow_ups=["And then?"]),
        graph_question(mode="drift", max_calls=4),
        objects(answer={"text": "Ada Byron met him."}, sources=[{"number": 1}], score=60, follow_ups=[]),
        objects(response="Ada Byron met him.", passages=[1], rating=60, questions=["And then?"]),
        listed("Ada Byron met him [1]."),
        objects(answer=FOREIGN, sources=[1], score=60, follow_ups=[]),
    ),
    Step(
        "Graph RAG: follow-up (DRIFT)",
        "Answer the follow-up question",
        objects(answer="Ada Byron met him.", sources=[1], score=60, follow_ups=[]),
        graph_question(mode="drift", max_calls=4),
        objects(answer={"text": "Ada Byron met him."}, sources=[{"number": 1}], score=60),
        objects(response="Ada Byron met him.", passages=[1], rating=60),
        listed("Ada Byron met him [1]."),
        objects(answer=FOREIGN, sources=[1], score=60, follow_ups=[]),
    ),
    Step(
        "spRAG: document",
        "What is the document between the tags",
        objects(title="Ada Byron in London", summary="This document is about: Ada Byron and the Analytical Engine."),
        context("none"),
        objects(document={"title": "Ada Byron in London", "summary": "This document is about: the Analytical Engine."}),
        objects(name="Ada Byron in London", description="This document is about: the Analytical Engine."),
        listed("Ada Byron in London", "This document is about: the Analytical Engine."),
        objects(title="玛丽·居里的生平", summary=FOREIGN),
    ),
    Step(
        "spRAG: sections",
        "The numbered texts are consecutive parts",
        objects(sections=[{"first": 0, "title": "Ada Byron", "summary": "This section is about: Ada Byron."}]),
        context("llm"),
        objects(sections=[[0, "Ada Byron"]]),
        objects(parts=[{"start": 0, "heading": "Ada Byron"}]),
        listed("Ada Byron"),
        objects(sections=[{"first": 0, "title": "玛丽·居里的生平", "summary": FOREIGN}]),
    ),
    Step(
        "spRAG: queries of a question",
        "Which searches would find everything",
        run=queries,
        **texts("queries", "searches", "query", "design of Charles Babbage", "whom Ada Byron met"),
    ),
]


def table() -> str:
    """The table of the documentation: ✓ for content, ✗ for a failure that is heard."""
    names = list(TEMPERAMENTS)
    marks = {"content": "✓", "failure": "✗"}
    rows = [f"| step | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    for step in STEPS:
        cells = [marks.get(verdict(step, name), "?") for name in names]
        rows.append(f"| {step.name} | {' | '.join(cells)} |")
    return "\n".join(rows)
