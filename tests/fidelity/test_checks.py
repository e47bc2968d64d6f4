"""No paper holds what a model wrote against its text, so `paper()` does not either.

PG-RAG's does, since the words of a fact say which chunk of a document it is from (docs/papers.md).
"""

import json

import pytest
from llama_index.core.schema import TextNode
from tests.cases import CASES, Case
from tests.together.test_paper import versions

from llama_index.graphrag import GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, OpenIEExtractor
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.sprag import SpRAGIndex, SpRAGRetriever

INVENTED = "Zebulon Quill"
MODEL = HashEmbedding(dim=64)
METHODS = [case for case in CASES if case.name not in ("toy", "pgrag")]


def lamp() -> list[TextNode]:
    return [TextNode(text="The lamp burned oil.", id_="lamp")]


def says(**reply: object) -> ScriptedLLM:
    return ScriptedLLM(lambda prompt: json.dumps(reply))


def test_hipporag_keeps_entities_and_triples_that_the_passage_does_not_name():
    llm = says(named_entities=[INVENTED], triples=[[INVENTED, "met", "Orla Finch"]])
    index = HippoRAGIndex(
        lamp(), llm=llm, embed_model=MODEL, **HippoRAGIndex.paper(), extractor=OpenIEExtractor.paper()
    )
    assert sorted(index.state.phrases) == ["orla finch", "zebulon quill"]
    (why,) = index.as_retriever(**HippoRAGRetriever.paper()).explain("Who lit the lamp?")
    assert [link.phrase for link in why.linked] == ["zebulon quill"]


def test_graph_rag_keeps_entities_that_the_chunk_does_not_name():
    llm = says(entities=[{"name": INVENTED, "type": "person", "description": "A walker."}], relations=[], answer="no")
    index = GraphRAGIndex(lamp(), llm=llm, embed_model=MODEL, **GraphRAGIndex.paper())
    assert INVENTED in {text for _, text in index.to_networkx().nodes(data="text")}


@pytest.mark.parametrize("version", ["code", "article"])
def test_sprag_keeps_descriptions_that_are_not_about_the_document(version: str):
    section = {"first": 0, "title": "On moors", "summary": "A walk."}
    described = says(title=INVENTED, summary="A walker crosses a moor.", sections=[section])
    llm = described if version == "code" else ScriptedLLM(lambda prompt: f"{INVENTED} crosses a moor.")
    index = SpRAGIndex(lamp(), llm=llm, embed_model=MODEL, **SpRAGIndex.paper(version))
    assert INVENTED in index.as_retriever(**SpRAGRetriever.paper()).retrieve("A lamp?")[0].get_content()


@pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)
def test_nothing_that_paper_gives_checks_replies_against_texts(case: Case):
    for paper in (case.cls.paper, case.cls.retriever_cls.paper):
        for keywords in versions(paper):
            given = [value.min_in_text for value in keywords.values() if hasattr(value, "min_in_text")]
            assert given in ([], [0]), keywords
