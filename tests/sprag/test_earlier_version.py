"""`earlier.zip`: an index as an earlier version stored it in memory: chunks with headers in a space of their own.

It is that of `built`, asked once with `context_weight=0.5` after a chunk of the letter was deleted.
"""

import shutil
from pathlib import Path

import pytest
from llama_index.core import load_index_from_storage
from tests.sprag.corpus import SPLIT, letter, report

from llama_index.ragkit import load_storage_context
from llama_index.ragkit.testing import HashEmbedding
from llama_index.sprag import RuleContext, SpRAGIndex

EXTRACTOR = RuleContext(salient_terms=2)
QUESTION = "What did the pilots ask for?"
ANSWERS = {  # the order of the version that stored it; scores as they are shown now
    1.0: [
        ("The pilots ask for a boat.", 0.818182),
        ("Outlook.", 0.773983),
        ("The council decides in autumn.", 0.763419),
        ("A new crane is to be bought.", 0.738311),
        ("Pilots came back to work in May.", 0.365298),
    ],
    0.5: [
        ("The pilots ask for a boat.", 0.835215),
        ("Outlook.", 0.766218),
        ("The council decides in autumn.", 0.748961),
        ("A new crane is to be bought.", 0.666998),
        ("Pilots came back to work in May.", 0.384992),
    ],
}


def built() -> SpRAGIndex:
    documents = [*report(), letter(), *report(["One line."], path="9f86d081884c7d65.pdf")]
    options = {"transformations": SPLIT, "extractor": EXTRACTOR, "embed_model": HashEmbedding()}
    index = SpRAGIndex.from_documents(documents, **options)
    index.delete_nodes([next(iter(index.ref_doc_info["letter"].node_ids))])
    return index


def opened(folder: Path, model: HashEmbedding) -> SpRAGIndex:
    return load_index_from_storage(load_storage_context(str(folder)), extractor=EXTRACTOR, embed_model=model)


def headers(index: SpRAGIndex) -> dict[str, str]:
    return {node.get_content(): index.header_of(node_id) for node_id, node in index.docstore.docs.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.unpack_archive(Path(__file__).with_name("earlier.zip"), tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.parametrize("weight", ANSWERS)
def test_it_answers_as_it_did_without_a_new_vector(folder: Path, tmp_path: Path, weight: float):
    for again in (folder, tmp_path / "again"):
        model = HashEmbedding()
        index = opened(again, model)
        found = index.as_retriever(mode="chunks", context_weight=weight, similarity_top_k=5).retrieve(QUESTION)
        assert [each.node.get_content() for each in found] == [text for text, _ in ANSWERS[weight]]
        assert [each.score for each in found] == pytest.approx([score for _, score in ANSWERS[weight]], abs=1e-5)
        assert set(model.texts) <= {QUESTION}
        index.storage_context.persist(str(tmp_path / "again"))


def test_a_write_brings_headers_that_a_delete_had_taken_and_a_build_makes_the_same(folder: Path):
    index, new = opened(folder, HashEmbedding()), built()
    assert headers(index) != headers(new)
    for each in (index, new):
        assert each.rebuild() == 0
    assert headers(index) == headers(new)
    answers = [each.as_retriever(mode="chunks", similarity_top_k=50).retrieve(QUESTION) for each in (index, new)]
    ours, theirs = ([(each.node.node_id, round(each.score or 0, 6)) for each in found] for found in answers)
    assert ours == theirs
    assert {**index.storage.struct.counters} == {**new.storage.struct.counters}


def test_a_delete_leaves_nothing_of_it(folder: Path, tmp_path: Path):
    index = opened(folder, HashEmbedding())
    for name in list(index.ref_doc_info):
        index.delete_ref_doc(name, delete_from_docstore=True)
    index.storage_context.persist(str(tmp_path / "empty"))
    stored = b"".join(path.read_bytes() for path in (tmp_path / "empty").iterdir()).lower()
    assert not any(word in stored for word in (b"crane", b"keeper", b"harbour"))
