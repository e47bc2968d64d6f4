"""Documents that a model reads as wholes: calls, whose fact is whose, updates, deletes, caches, failures."""

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from llama_index.core import Document, load_index_from_storage
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.pgrag import MindMapExtractor, PGRAGIndex, builder
from llama_index.pgrag.extraction.mind_map_extractor import parts_of
from llama_index.pgrag.records import from_record
from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

ONCE = RetryPolicy(max_attempts=1)
LAMP = "Marl Head Light burned whale oil. The keeper was Ada Byron."
THEFT = "Otto Lindqvist stole its lens in 1871. He sold it in Lyon."
TOWER = "The tower is forty metres tall. It leans to the north."


def text_of(prompt: str) -> str:
    return re.search(r"<text-\w+ number=\"1\">\n(.*?)\n</", prompt, re.DOTALL)[1]


def good(prompt: str) -> str:
    """A model whose topic has words of two chunks, and whose facts are the sentences."""
    text = text_of(prompt)
    lines = [f"{line.strip()}." for line in re.split(r"\.\s*", text) if line.strip()]
    topic = "Marl Head Light and Otto Lindqvist" if "Otto" in text else "Marl Head Light"
    tree = {f"matter {i}": line for i, line in enumerate(lines)}
    return json.dumps({"topic": topic, "statements": lines, "mind_map": tree})


def chunk(name: str, text: str, document: str | None = "D") -> TextNode:
    source = {} if document is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    offset = {"lamp": 0, "theft": 100, "tower": 200}.get(name[:5].rstrip("-0123456789"), 0)
    return TextNode(id_=name, text=text, relationships=source, start_char_idx=offset, end_char_idx=offset + len(text))


def chunks(*names: str, document: str = "D") -> list[TextNode]:
    texts = {"lamp": LAMP, "theft": THEFT, "tower": TOWER}
    return [chunk(name, texts[name], document) for name in names]


def build(nodes: Sequence[TextNode], llm: ScriptedLLM, **kwargs) -> PGRAGIndex:
    extractor = MindMapExtractor(retry=ONCE, min_semantic=-1.0, **kwargs.pop("options", {}))
    return PGRAGIndex(nodes=list(nodes), extractor=extractor, llm=llm, embed_model=HashEmbedding(), **kwargs)


def facts(index: PGRAGIndex) -> dict[str, set[str]]:
    """Fact paths by node."""
    return {node_id: {fact.text for fact in found} for node_id, found in index.graph.of_node.items()}


def stored(index: PGRAGIndex) -> str:
    """What the index has derived, as one text."""
    entries = run_steps(index.storage.manifest.entries())
    rows = [
        record.id + record.key
        for kind in ("topics", "routes", "facts")
        for record in index.storage.snapshot(kind).records
    ]
    return json.dumps([dict(vars(entry)) for entry in entries.values()]) + str(rows) + str(facts(index))


def stored_record(index: PGRAGIndex, node_id: str) -> dict[str, Any]:
    return run_steps(index.storage.manifest.entries())[node_id].record


def test_a_thousand_chunks_of_three_hundred_documents_are_three_hundred_calls():
    llm = ScriptedLLM(good)
    nodes = [chunk(f"lamp-{i}", f"{LAMP} Note {i}.", f"D{i % 300}") for i in range(1000)]
    index = build(nodes, llm)
    assert len(llm.prompts) == 300
    assert len(facts(index)) == 1000
    assert MindMapExtractor(retry=ONCE).estimate(nodes, llm).calls == 300


def test_a_document_is_one_call_and_each_fact_belongs_to_the_chunk_whose_text_holds_it():
    llm = ScriptedLLM(good)
    index = build(chunks("theft", "tower", "lamp"), llm)
    assert len(llm.prompts) == 1
    assert text_of(llm.prompts[0]) == "\n".join([LAMP, THEFT, TOWER])  # in the order of the document
    found = facts(index)
    assert {node_id: len(own) for node_id, own in found.items()} == {"lamp": 2, "theft": 2, "tower": 2}
    assert any("sold it in Lyon" in text for text in found["theft"])
    assert {found.topic for found in index.graph.maps.values()} == {"Marl Head Light and Otto Lindqvist"}


def test_a_fact_that_two_chunks_hold_belongs_to_both_and_text_of_overlapping_chunks_is_read_once():
    text = f"{LAMP} {TOWER} {THEFT}"
    first = TextNode(
        id_="a",
        text=text[: len(LAMP) + 1 + len(TOWER)],
        start_char_idx=0,
        end_char_idx=len(LAMP) + 1 + len(TOWER),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="D")},
    )
    second = TextNode(
        id_="b",
        text=text[len(LAMP) + 1 :],
        start_char_idx=len(LAMP) + 1,
        end_char_idx=len(text),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="D")},
    )
    llm = ScriptedLLM(good)
    found = facts(build([second, first], llm))
    assert text_of(llm.prompts[0]).count("forty metres") == 1
    assert any("forty metres" in fact for fact in found["a"])
    assert any("forty metres" in fact for fact in found["b"])


def test_nodes_without_a_document_are_documents_of_their_own():
    llm = ScriptedLLM(good)
    build([chunk("lamp", LAMP, None), chunk("tower", TOWER, None)], llm)
    assert len(llm.prompts) == 2


def test_without_a_check_of_words_each_node_is_read_by_itself():
    llm = ScriptedLLM(good)
    build(chunks("lamp", "tower"), llm, options={"min_in_text": 0})
    assert len(llm.prompts) == 2


def test_long_documents_are_read_in_parts_of_whole_nodes_under_one_topic():
    nodes = [chunk(f"lamp-{i}", f"{LAMP} {TOWER} Note {i}.") for i in range(6)]
    llm = ScriptedLLM(good)
    index = build(nodes, llm, options={"part_tokens": 70})
    parts = parts_of(sorted(nodes, key=lambda node: node.hash), 70)
    assert [len(part.places) for part in parts] == [2, 2, 2]
    assert len(llm.prompts) == 3
    assert "Known topic: Marl Head Light" in llm.prompts[1]
    assert len(index.graph.maps) == 1
    assert MindMapExtractor(part_tokens=70).estimate(nodes).calls == 3


def test_inserting_documents_one_by_one_is_building_them_at_once():
    documents = {"D": chunks("lamp", "theft"), "E": chunks("tower", document="E")}
    documents["E"][0].id_ = "other"
    at_once = build([*documents["D"], *documents["E"]], ScriptedLLM(good))
    grown = build([], ScriptedLLM(good))
    for nodes in documents.values():
        grown.insert_nodes(nodes)
    assert facts(grown) == facts(at_once)
    assert grown.graph.maps == at_once.graph.maps


def documents(*parts: str) -> list[Document]:
    return [Document(text="\n\n\n".join(parts), id_="D")]


SPLIT = SentenceSplitter(chunk_size=24, chunk_overlap=0, paragraph_separator="\n\n\n")


def from_documents(parts: Sequence[str], llm: ScriptedLLM, **kwargs) -> PGRAGIndex:
    extractor = MindMapExtractor(retry=ONCE, min_semantic=-1.0)
    return PGRAGIndex.from_documents(
        documents(*parts), extractor=extractor, llm=llm, embed_model=HashEmbedding(), transformations=[SPLIT], **kwargs
    )


def test_an_update_reads_the_document_again_in_one_call_and_is_the_build_of_the_new_document():
    llm = ScriptedLLM(good)
    index = from_documents([LAMP, THEFT], llm)
    llm.prompts.clear()
    index.embed_model.texts.clear()
    index.update_ref_doc(documents(LAMP, TOWER)[0])
    assert len(llm.prompts) == 1
    assert LAMP not in index.embed_model.texts  # read again, but not embedded again
    assert facts(index) == facts(from_documents([LAMP, TOWER], ScriptedLLM(good)))
    assert "Otto" not in stored(index)
    llm.prompts.clear()
    index.update_ref_doc(documents(LAMP)[0])  # a chunk went, the other is as it was
    assert facts(index) == facts(from_documents([LAMP], ScriptedLLM(good)))
    assert len(llm.prompts) == 1
    index.refresh_ref_docs(documents(LAMP))
    assert len(llm.prompts) == 1


def test_a_chunk_inserted_by_itself_is_read_by_itself_and_leaves_the_others_as_they_are():
    llm = ScriptedLLM(good)
    index = build(chunks("lamp", "tower"), llm)
    before = facts(index)
    llm.prompts.clear()
    index.insert_nodes(chunks("theft"))
    assert [text_of(prompt) for prompt in llm.prompts] == [THEFT]
    assert {node_id: own for node_id, own in facts(index).items() if node_id != "theft"} == before


@pytest.mark.parametrize("how", ["delete", "replace"])
def test_a_chunk_that_goes_by_itself_takes_its_words_with_it_and_needs_no_model(how: str, tmp_path):
    llm = ScriptedLLM(good)
    index = build(chunks("lamp", "theft", "tower"), llm, cache=tmp_path / "cache.db")
    assert "Otto" in stored(index)
    llm.prompts.clear()
    if how == "delete":
        index.delete_nodes(["theft"], delete_from_docstore=True)
        assert llm.prompts == []
    else:
        index.insert_nodes([chunk("theft", "A storm broke the windows.")])
        assert [text_of(prompt) for prompt in llm.prompts] == ["A storm broke the windows."]
    assert "Otto" not in stored(index)
    assert {node_id: len(own) for node_id, own in facts(index).items() if node_id != "theft"} == {"lamp": 2, "tower": 2}
    with closing(sqlite3.connect(tmp_path / "cache.db")) as db:
        assert "Otto" not in str(
            [
                row
                for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
                for row in db.execute(f'SELECT * FROM "{name}"')
            ]
        )
    index.delete_ref_doc("D", delete_from_docstore=True)
    assert stored(index) == "[][]{}"
    context = index.storage_context
    assert load_index_from_storage(context, embed_model=HashEmbedding(), cache=tmp_path / "cache.db").graph.maps == {}


def test_a_delete_that_was_interrupted_can_be_repeated(monkeypatch):
    index = build(chunks("lamp", "theft"), ScriptedLLM(good))
    with monkeypatch.context() as patch:
        patch.setattr(builder, "facts_after", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            index.delete_nodes(["theft"])
    index.delete_nodes(["theft"])
    assert "Otto" not in stored(index)


def test_a_call_that_fails_fails_all_nodes_of_its_document_and_is_made_again_once():
    broken = [True]

    def script(prompt: str) -> str:
        return "I would rather not." if broken[0] and "Otto" in text_of(prompt) else good(prompt)

    llm = ScriptedLLM(script)
    index = build([*chunks("lamp", "theft"), chunk("tower", TOWER, "E")], llm, fallback=None)
    assert sorted(failure.node_id for failure in index.failures()) == ["lamp", "theft"]
    assert set(facts(index)) == {"tower"}
    assert index.retry_failed() == 2
    broken[0] = False
    llm.prompts.clear()
    assert index.retry_failed() == 0
    assert len(llm.prompts) == 1
    assert set(facts(index)) == {"lamp", "theft", "tower"}


def test_what_was_paid_for_is_not_paid_for_again(tmp_path):
    llm = ScriptedLLM(good)
    for _ in range(2):
        index = build(chunks("lamp", "theft"), llm, cache=tmp_path / "cache.db")
    assert len(llm.prompts) == 1
    twin = [chunk(f"{node.node_id}-2", node.text, "E") for node in chunks("lamp", "theft")]
    index.insert_nodes(twin)  # another document with the same text
    assert len(llm.prompts) == 1
    index.delete_ref_doc("D", delete_from_docstore=True)
    build(chunks("lamp", "theft"), llm, cache=tmp_path / "cache.db")
    assert len(llm.prompts) == 1  # the other document still uses the reply


def test_a_part_that_was_read_stays_after_a_failure_of_the_next_and_is_not_read_again():
    broken = [True]
    llm = ScriptedLLM(lambda prompt: "No." if broken[0] and "Note 5" in prompt else good(prompt))
    nodes = [chunk(f"lamp-{i}", f"{LAMP} {TOWER} Note {i}.") for i in range(6)]
    index = build(nodes, llm, options={"part_tokens": 70})
    assert [failure.node_id for failure in index.failures()] == ["lamp-4", "lamp-5"]
    assert set(facts(index)) == {f"lamp-{i}" for i in range(4)}
    broken[0] = False
    asked = len(llm.prompts)
    assert index.retry_failed() == 0
    assert 0 < len(llm.prompts) - asked < 3
    assert set(facts(index)) == {f"lamp-{i}" for i in range(6)}


def test_statements_without_a_map_such_as_those_of_a_reply_that_was_cut_off_are_facts():
    reply = json.dumps({"topic": "Marl Head Light", "statements": [LAMP, "The sea is deep."], "mind_map": {"fuel": ""}})
    for llm in (ScriptedLLM(reply[: reply.index("mind_map")]), ScriptedLLM(reply)):
        index = build(chunks("lamp"), llm)
        assert {path[-1] for path in from_record(stored_record(index, "lamp"))[1]} == {LAMP}
        assert stored_record(index, "lamp")["dropped"] == {"facts": 1}


def test_a_pipeline_reads_documents_too_and_an_index_takes_what_it_read():
    llm = ScriptedLLM(good)
    extractor = MindMapExtractor(llm=llm, retry=ONCE, min_semantic=-1.0, embed_model=HashEmbedding())
    nodes = IngestionPipeline(transformations=[SPLIT, extractor]).run(documents=documents(LAMP, THEFT))
    assert len(nodes) == 2
    assert len(llm.prompts) == 1
    index = build([], llm)
    index.insert_nodes(nodes)
    assert len(llm.prompts) == 1
    theft = next(node.node_id for node in nodes if "Otto" in node.text)
    index.delete_nodes([theft])
    assert "Otto" not in stored(index)
    whole = PGRAGIndex.from_documents(
        documents(LAMP, THEFT), extractor=extractor, embed_model=HashEmbedding(), transformations=[SPLIT, extractor]
    )
    assert len(facts(whole)) == 2


@pytest.mark.parametrize("way", ["memory", "loaded", "stores"])
def test_a_fact_with_words_of_another_chunk_passes_a_filter_only_with_it(way: str, tmp_path):
    """The topic "Marl Head Light and Otto Lindqvist" has words of two chunks."""
    where = {}
    if way == "stores":
        url, made = f"sqlite:///{tmp_path / 'index.db'}", {}
        context = storage_context(url, vectors=lambda space, _: made.setdefault(space, MatrixVectorStore()))
        where = {"storage_context": context}
    index = build(chunks("lamp", "theft", "tower"), ScriptedLLM(good), **where)
    if way == "loaded":
        index = load_index_from_storage(index.storage_context, embed_model=HashEmbedding())
    question = "Who was the keeper of Marl Head Light?"
    for node_ids, shown in ((["lamp", "theft", "tower"], True), (["lamp", "tower"], False)):
        for options in ({}, {"return_source": True}):
            retriever = index.as_retriever(node_ids=node_ids, **options)
            told = repr(retriever.explain(question)) + repr(
                [r.node.get_content() for r in retriever.retrieve(question)]
            )
            page = index.visualize(tmp_path / "page.html", question, node_ids=node_ids, **options)
            assert ("Otto" in told) == ("Otto" in page.read_text(encoding="utf-8")) == shown
