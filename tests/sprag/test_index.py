"""The index: headers, documents of several pages, and what inserts and deletes do to them."""

import pytest
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import MetadataMode
from tests.sprag.corpus import LETTER, PAGES, SPLIT, letter, report

from llama_index.hipporag import NounPhraseExtractor
from llama_index.ragkit.errors import ConfigurationError, ExtractorMismatchError
from llama_index.ragkit.testing import HashEmbedding
from llama_index.sprag import RuleContext, SpRAGIndex


def built(documents, **options):
    return SpRAGIndex.from_documents(documents, transformations=SPLIT, **{"extractor": RuleContext(), **options})


def headers(index):
    return {node.get_content(): index.header_of(node_id) for node_id, node in index.docstore.docs.items()}


def test_pages_of_a_file_are_one_document_with_a_header_before_each_chunk():
    index = built([*report(), letter()])
    assert sorted(len(document.chunks) for document in index.state.documents.values()) == [4, 11]
    found = headers(index)
    of_accounts = next(header for text, header in found.items() if text.startswith("Wages"))
    assert of_accounts.splitlines()[0] == "harbour report"
    assert "Harbour report of 1931." in of_accounts
    assert of_accounts.splitlines()[-1].startswith("Accounts. Dues rose")


def test_documents_hold_their_chunks_in_reading_order():
    index = built(report()[::-1])
    (document,) = index.state.documents.values()
    texts = [index.docstore.docs[chunk].get_content() for chunk in document.chunks]
    assert " ".join(texts) == " ".join(PAGES)
    assert all(document.goes_on[1:])


def test_equal_files_of_two_tenants_stay_apart():
    index = built([*report(tenant="a"), *report(["Secret plans. Nobody may know. The crane is sold."], tenant="b")])
    assert len(index.state.documents) == 2
    of_a = [header for text, header in headers(index).items() if text in " ".join(PAGES)]
    assert not any("Secret" in header for header in of_a)


def test_group_by_names_the_document_of_a_chunk():
    index = built([*report(tenant="a"), *report(path="annex.pdf")], extractor=RuleContext(group_by="tenant"))
    assert len(index.state.documents) == 1


def test_headers_are_embedded_and_searched_and_the_nodes_stay_as_they_are():
    model = HashEmbedding()
    index = built([*report(), letter()], embed_model=model)
    accounts = next(text for text in model.texts if "Wages fell" in text and text.startswith("harbour report\n"))
    assert "\n\n" in accounts
    assert all("context_title" not in node.metadata for node in index.docstore.docs.values())
    found = index.as_retriever(mode="chunks", similarity_top_k=3).retrieve("harbour report: dues")
    assert "Dues" in " ".join(result.node.get_content() for result in found)


def test_a_document_of_one_chunk_has_its_title_alone():
    index = built([letter()], extractor=RuleContext())
    short = SpRAGIndex.from_documents([letter()], extractor=RuleContext())
    assert set(headers(short).values()) == {""}
    assert index.state.headers.keys() == index.docstore.docs.keys()


def test_an_index_needs_an_extractor_of_context():
    with pytest.raises(ConfigurationError, match="AutoContext"):
        SpRAGIndex([], extractor=NounPhraseExtractor())


def test_a_loaded_index_knows_documents_and_headers(tmp_path):
    index = built([*report(), letter()])
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, extractor=RuleContext())
    assert headers(loaded) == headers(index)
    assert {key: document.chunks for key, document in loaded.state.documents.items()} == {
        key: document.chunks for key, document in index.state.documents.items()
    }
    with pytest.raises(ExtractorMismatchError):
        load_index_from_storage(context, extractor=RuleContext(first_lines=3)).insert(letter())


def test_pages_that_come_one_by_one_make_the_index_that_they_make_together():
    at_once, grown = built([*report(), letter()]), built([])
    for document in [*report()[::-1], letter()]:
        grown.insert(document)
    assert headers(grown) == headers(at_once)
    question = "What did the pilots ask for?"
    for mode in ("segments", "chunks"):
        ours, theirs = (
            [(r.node.get_content(), round(r.score, 6)) for r in i.as_retriever(mode=mode).retrieve(question)]
            for i in (grown, at_once)
        )
        assert ours == theirs


def test_a_deleted_page_leaves_no_trace_in_the_headers_of_the_others(tmp_path):
    index = built(report())
    index.delete_ref_doc("a-harbour_report.pdf-1", delete_from_docstore=True)
    assert not any("1931" in header for header in headers(index).values())
    index.storage_context.persist(str(tmp_path))
    assert b"1931" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert set(headers(index)) == {text for text in headers(built(report())) if text not in PAGES[0]}


def test_a_delete_writes_the_headers_again_and_embeds_the_chunks_that_they_stand_before():
    model = HashEmbedding()
    index = built([*report(), letter()], embed_model=model)
    model.texts.clear()
    index.delete_ref_doc("letter", delete_from_docstore=True)
    assert model.texts == []
    index.delete_ref_doc("a-harbour_report.pdf-1", delete_from_docstore=True)
    assert headers(index) == headers(built(report()[1:]))
    assert sorted(model.texts) == sorted(f"{header}\n\n{text}" for text, header in headers(index).items())


def test_an_update_embeds_what_changed_and_no_more():
    model = HashEmbedding()
    index = built([*report(), letter()], embed_model=model)
    model.texts.clear()
    changed = report([PAGES[0], PAGES[1], PAGES[2] + " The mayor agrees."])
    assert index.refresh_ref_docs([*changed, letter()]) == [False, False, True, False]
    assert all("mayor" in text or "council" in text for text in model.texts)


def test_salient_terms_are_chosen_again_by_rebuild():
    extractor = RuleContext(salient_terms=3, first_lines=0, page_opening=0)
    pages = ["The crane lifts. " * 6, "The crane rests. " * 6]
    grown = built(report(pages), extractor=extractor)
    grown.insert(letter())
    at_once = built([*report(pages), letter()], extractor=extractor)
    grown.rebuild()
    at_once.rebuild()
    assert any("crane" in header for header in headers(at_once).values())
    assert headers(grown) == headers(at_once)


def test_as_a_transformation_the_context_is_for_the_embedding_model_and_not_for_the_llm():
    nodes = IngestionPipeline(transformations=[*SPLIT, RuleContext()]).run(documents=[*report(), letter()])
    accounts = next(node for node in nodes if node.text.startswith("Wages"))
    assert accounts.metadata["context_title"] == "harbour report"
    assert "harbour report" in accounts.get_content(metadata_mode=MetadataMode.EMBED)
    assert accounts.get_content(metadata_mode=MetadataMode.LLM) == accounts.text
    assert accounts.text in PAGES[1]
    assert VectorStoreIndex(nodes).as_retriever().retrieve("dues")
    again = RuleContext()(nodes)
    assert sum(name == "context_title" for name in again[0].excluded_llm_metadata_keys) == 1


def test_the_published_wording_of_headers():
    index = built([*report(), letter()], header="published")
    accounts = next(header for text, header in headers(index).items() if text.startswith("Wages"))
    assert accounts.startswith("Document context: the following excerpt is from a document titled 'harbour report'.")
    assert "Section context: this excerpt is from the section titled 'Accounts." in accounts
    assert SpRAGIndex.paper()["header"] == "published"


def test_pages_are_drawn_with_and_without_a_question(tmp_path):
    index = built([*report(), letter()])
    empty = SpRAGIndex([], extractor=RuleContext()).visualize(tmp_path / "empty.html")
    plain = index.visualize(tmp_path / "plain.html").read_text(encoding="utf-8")
    asked = index.visualize(tmp_path / "asked.html", query="What did the pilots ask for?").read_text(encoding="utf-8")
    chunks = index.visualize(tmp_path / "chunks.html", query="pilots", mode="chunks").read_text(encoding="utf-8")
    assert empty.is_file()
    assert "harbour report" in plain
    assert "chosen segments" in asked
    assert "Question:" not in plain
    assert "pilots" in chunks


def test_odd_letters_do_no_harm():
    index = built([letter(), *report(["漢字だけの文書。" * 30, "هذا نص عربي. " * 30], path="漢字.pdf")])
    assert index.as_retriever().retrieve("漢字")
    assert LETTER.startswith(index.as_retriever(mode="chunks", similarity_top_k=1).retrieve("keeper")[0].node.text[:10])
