"""What the extractors give, by themselves, in a pipeline and to an index."""

import json

import pytest
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode

from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor, OpenIEExtractor, RecordedExtractor
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

PUBLISHED_FILE = {
    "docs": [
        {
            "idx": 0,
            "passage": "Analytical Engine\nBabbage designed the engine.",
            "extracted_entities": ["Babbage", "1837"],
            "extracted_triples": [["Babbage", "designed", "the engine"], ["broken", "pair"], "text"],
        },
        {"idx": 1, "passage": "A passage without facts.", "extracted_entities": [], "extracted_triples": []},
    ],
    "ents_by_doc": [],
}


def read(extractor, *nodes: TextNode):
    return run_steps(extractor.extract(list(nodes)))


def test_the_authors_file_is_read(tmp_path):
    path = tmp_path / "openie_results.json"
    path.write_text(json.dumps(PUBLISHED_FILE), encoding="utf-8")
    plain = TextNode(text="Analytical Engine\nBabbage designed  the engine.")
    titled = TextNode(text="Babbage designed the engine.", metadata={"title": "Analytical Engine"})
    for source in (path, str(path), PUBLISHED_FILE, PUBLISHED_FILE["docs"]):
        extractor = RecordedExtractor.from_openie(source)
        for node in (plain, titled):
            (found,) = read(extractor, node)
            assert found.record["entities"] == ["Babbage", "1837"]
            assert found.record["triples"] == [["Babbage", "designed", "the engine"], ["broken", "pair"]]
            assert found.record["subject"] == ["Analytical Engine"]
    index = HippoRAGIndex(nodes=[plain], extractor=extractor, embed_model=HashEmbedding())
    assert list(index.state.facts) == [("babbage", "designed", "the engine")]


@pytest.mark.parametrize("wrong", [{"docs": [{"text": "x"}]}, {"documents": []}, {"docs": 3}, [1]])
def test_other_files_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="docs"):
        RecordedExtractor.from_openie(wrong)


def test_records_by_id_come_before_records_by_text_and_missing_ones_are_failures():
    extractor = RecordedExtractor(
        {"n1": {"entities": ["by id"]}, "some text": {"entities": ["by text"], "triples": []}}
    )
    one, two, none = read(
        extractor,
        TextNode(id_="n1", text="some text"),
        TextNode(id_="n2", text=" some\ntext "),
        TextNode(id_="n3", text="other"),
    )
    assert one.record["entities"] == ["by id"]
    assert two.record["entities"] == ["by text"]
    assert none.record is None
    assert "'n3'" in none.error
    with pytest.raises(ConfigurationError, match="neither"):
        RecordedExtractor({"n1": {"nodes": []}})
    assert extractor.fingerprint == RecordedExtractor().fingerprint


def test_rules_read_names_in_scripts_with_and_without_spaces():
    (latin,) = read(NounPhraseExtractor(), TextNode(text="Ada Byron\nAda Byron met Charles Babbage in London."))
    assert latin.record["subject"] == ["Ada Byron"]
    assert {"Ada Byron", "Charles Babbage", "London"} <= set(latin.record["entities"])
    assert all(head == "Ada Byron" for head, _, _ in latin.record["triples"])
    (chinese,) = read(NounPhraseExtractor(), TextNode(text="北京大学在北京。清华大学也在北京。"))
    assert any("北京" in entity for entity in chinese.record["entities"])
    (titled,) = read(NounPhraseExtractor(), TextNode(text="It was built by Babbage.", metadata={"title": "Engine"}))
    assert titled.record["subject"] == ["Engine"]
    (untitled,) = read(NounPhraseExtractor(title_key=None), TextNode(text="x y.", metadata={"title": "Engine"}))
    assert untitled.record["subject"] == []
    (lower,) = read(NounPhraseExtractor(terms=True), TextNode(text="It treats acute leukemia."))
    assert lower.record["entities"] == ["acute leukemia"]


def test_what_a_pipeline_read_is_taken_by_the_index():
    node = TextNode(text="Ada Byron met Charles Babbage in London.")
    (carrying,) = IngestionPipeline(transformations=[NounPhraseExtractor()]).run(nodes=[node])
    extractor = NounPhraseExtractor()
    index = HippoRAGIndex(nodes=[carrying], extractor=extractor, embed_model=HashEmbedding())
    assert index.docstore.docs[carrying.node_id].metadata == {}
    assert {"ada byron", "charles babbage"} <= set(index.state.phrases)


def test_fingerprints_tell_extractors_apart():
    rules = [NounPhraseExtractor(), NounPhraseExtractor(terms=True)]
    kinds = [OpenIEExtractor(), OpenIEExtractor(title_key="heading"), *rules, RecordedExtractor()]
    assert len({json.dumps(kind.fingerprint, sort_keys=True) for kind in kinds}) == 5
