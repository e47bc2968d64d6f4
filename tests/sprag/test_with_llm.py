"""AutoContext: what is asked, what is kept, what happens when the model fails, and what a delete leaves."""

import asyncio
import json
import re

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.ingestion import IngestionPipeline
from tests.sprag.corpus import PAGES, SPLIT, letter, report

from llama_index.ragkit.errors import CacheRequiredError, ExtractionError
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.sprag import AutoContext, FirstGenerationContext, SpRAGIndex

ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)


def reply(prompt):
    if "numbered texts" in prompt:
        parts = re.findall(r"^\[(\d+)\]\n<part-.*>\n(\S+ \S+)", prompt, re.MULTILINE)
        found = [
            {"first": int(i), "title": text, "summary": f"This section is about: {text}."} for i, text in parts[::3]
        ]
        return json.dumps({"sections": found})
    text = re.findall(r"<document-.*?>\n(.*?)\n</document-", prompt, re.DOTALL)[-1]
    known = [f"the {word}" for word in ("lamp", "harbour") if word in text]
    subject = known[0] if "keeper" in text and known else known[-1] if known else " ".join(text.split()[:2])
    return json.dumps({"title": f"About {subject}", "summary": f"This document is about: {subject}."})


def built(documents, llm, extractor=None, **options):
    extractor = AutoContext(retry=ONCE) if extractor is None else extractor
    return SpRAGIndex.from_documents(
        documents, transformations=SPLIT, llm=llm, extractor=extractor, embed_model=HashEmbedding(), **options
    )


def headers(index):
    return {node.get_content(): index.header_of(node_id) for node_id, node in index.docstore.docs.items()}


def test_one_call_a_document_whatever_its_pages():
    llm = ScriptedLLM(reply)
    index = built([*report(), letter()], llm)
    assert len(llm.prompts) == 2
    for extractor in (AutoContext(), FirstGenerationContext()):
        given = {"transformations": SPLIT, "llm": llm, "extractor": extractor}
        assert SpRAGIndex.estimate([*report(), letter()], **given).calls == 2
    assert {header.splitlines()[0] for header in headers(index).values()} == {"About the harbour", "About the lamp"}
    assert all("This document is about: the " in header for header in headers(index).values())


def test_a_title_in_the_metadata_is_kept():
    document = Document(text=letter().text, metadata={"title": "A letter"}, excluded_embed_metadata_keys=["title"])
    index = built([document], ScriptedLLM(reply))
    assert {header.splitlines()[0] for header in headers(index).values()} == {"A letter"}


def test_the_model_reads_the_beginning_of_a_long_document():
    llm = ScriptedLLM(reply)
    extractor = AutoContext(retry=ONCE, document_tokens=20)
    index = built(report([*PAGES, *[f"Page {i} of the annex. It is long." for i in range(50)]]), llm, extractor)
    assert "dredged" in llm.prompts[0]
    assert "annex" not in llm.prompts[0]
    index.insert(report(["The last page. Nothing new."], path="harbour_report.pdf", tenant="a")[0])
    assert len(index.state.documents) == 1


def test_sections_may_come_from_the_model():
    llm = ScriptedLLM(reply)
    index = built(report(), llm, AutoContext(retry=ONCE, sections="llm", section_tokens=40))
    (document,) = index.state.documents.values()
    titles = [document.section(i) for i in range(len(document.chunks))]
    assert titles[0] == ("Harbour report",)
    assert len(set(titles)) > 2
    assert all(titles)
    assert "This section is about: Harbour report." in index.header_of(document.chunks[0])
    assert len(llm.prompts) > 2
    unchanged = len(llm.prompts)
    index.rebuild()
    assert len(llm.prompts) == unchanged


def test_an_unchanged_beginning_is_not_read_again():
    llm = ScriptedLLM(reply)
    extractor = AutoContext(retry=ONCE, document_tokens=20)
    index = built(report(), llm, extractor)
    changed = report([PAGES[0], PAGES[1], PAGES[2] + " The mayor agrees."])
    index.refresh_ref_docs(changed)
    assert len(llm.prompts) == 1
    assert all(headers(index).values())


def test_a_document_that_fails_is_searched_without_headers_until_it_is_tried_again():
    llm = ScriptedLLM(lambda prompt: "no idea" if "keeper" in prompt else reply(prompt))
    index = built([*report(), letter()], llm, fallback=None)
    assert [header for text, header in headers(index).items() if text in letter().text] == [""] * 4
    assert index.index_struct.counters["failed"] == 1
    assert index.as_retriever().retrieve("the museum")
    assert index.retry_failed() == 1
    fixed = load_with(index, ScriptedLLM(reply))
    assert fixed.retry_failed() == 0
    assert all(headers(fixed).values())
    with pytest.raises(ExtractionError):
        built([letter()], ScriptedLLM("no idea"), on_error="raise")


def load_with(index, llm):
    return load_index_from_storage(
        index.storage_context, index_id=index.index_id, llm=llm, extractor=AutoContext(retry=ONCE),
        embed_model=HashEmbedding(),
    )  # fmt: skip


def test_a_delete_calls_no_model_and_drops_what_was_said_about_the_deleted_text(tmp_path):
    llm = ScriptedLLM(lambda prompt: json.dumps({"title": "Crane and council", "summary": "Qzxcanary, of the crane."}))
    index = built(report(), llm)
    assert all("Qzxcanary" in header for header in headers(index).values())
    index.delete_ref_doc("a-harbour_report.pdf-1", delete_from_docstore=True)
    assert len(llm.prompts) == 1
    assert not any("Qzxcanary" in header for header in headers(index).values())
    assert {failure.by for failure in index.failures()} == {"RuleContext"}
    index.storage_context.persist(str(tmp_path))
    assert b"qzxcanary" not in b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()).lower()
    assert index.retry_failed() == 0
    assert all("Qzxcanary" in header for header in headers(index).values())
    assert len(llm.prompts) == 2


def test_replies_are_cached_and_released_with_the_document(tmp_path):
    first, second = ScriptedLLM(reply), ScriptedLLM(reply)
    cache = tmp_path / "cache.db"
    index = built([*report(), letter()], first, cache=cache)
    again = built([*report(), letter()], second, cache=cache)
    assert (len(first.prompts), len(second.prompts)) == (2, 0)
    assert headers(again) == headers(index)
    for each in (index, again):
        each.delete_ref_doc("letter", delete_from_docstore=True)
    assert b"About the lamp" not in cache.read_bytes()
    assert b"About the harbour" in cache.read_bytes()
    without = load_with(index, first)
    with pytest.raises(CacheRequiredError):
        without.delete_ref_doc("a-harbour_report.pdf-1")


def test_an_index_takes_what_a_pipeline_read():
    llm = ScriptedLLM(reply)
    for sections in ("rules", "llm"):
        extractor = AutoContext(retry=ONCE, llm=llm, sections=sections)
        nodes = IngestionPipeline(transformations=[*SPLIT, extractor]).run(documents=[*report(), letter()])
        paid = len(llm.prompts)
        index = SpRAGIndex(nodes, extractor=extractor, embed_model=HashEmbedding())
        assert len(llm.prompts) == paid
        assert headers(index) == headers(built([*report(), letter()], llm, AutoContext(retry=ONCE, sections=sections)))


def test_asynchronous_builds_are_the_same():
    llm = ScriptedLLM(reply)
    index = asyncio.run(
        SpRAGIndex.afrom_documents(
            [*report(), letter()], transformations=SPLIT, llm=llm, extractor=AutoContext(retry=ONCE),
            embed_model=HashEmbedding(),
        )
    )  # fmt: skip
    assert headers(index) == headers(built([*report(), letter()], ScriptedLLM(reply)))
    asyncio.run(index.arebuild())
    assert len(llm.prompts) == 2


def test_a_fresh_context_holds_the_whole_index(tmp_path):
    index = built([*report(), letter()], ScriptedLLM(reply))
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, extractor=AutoContext(), embed_model=HashEmbedding())
    assert headers(loaded) == headers(index)
