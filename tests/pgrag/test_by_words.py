"""Facts that are sentences of the text have no vectors until a search needs them, and are compared by their words."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from tests.serving.twins import Twins

from llama_index.pgrag import MindMapExtractor, OutlineExtractor, PGRAGIndex, PGRAGPostprocessor, PGRAGRetriever
from llama_index.pgrag.fusion_rows import FusionRows
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding

KEEPERS = ("Ada Hale", "Otto Lind", "Mary Quill", "Jan Frisk", "Lena Orr")
QUESTION = "Which oil did the lamp of Gull Reef burn?"
PAPER = {**PGRAGRetriever.paper(), "key_points": "question"}


def document(number: int) -> Document:
    keeper, other = KEEPERS[number % 5], KEEPERS[(number + 2) % 5]
    text = (
        f"# Gull Reef {number}\n\n{keeper} kept the lamp of Gull Reef {number} for {number} years. "
        f"The lamp burned oil of kind {number}. {keeper} wrote letters to {other} every winter."
    )
    return Document(text=text, id_=f"d{number}", metadata={"kind": number % 2})


def documents(count: int = 12) -> list[Document]:
    return [document(i) for i in range(count)]


def build(**kwargs: Any) -> PGRAGIndex:
    given = {"extractor": OutlineExtractor(), "embed_model": HashEmbedding(), **kwargs}
    return PGRAGIndex.from_documents(documents(), **given)


def found(index: PGRAGIndex, question: str = QUESTION, **options: Any) -> list[tuple[str, float]]:
    results = index.as_retriever(**options).retrieve(question)
    return [(result.node.get_content(), round(result.get_score(), 6)) for result in results]


def embedded_by(index: PGRAGIndex, run: Any) -> list[str]:
    index.embed_model.texts.clear()
    run()
    return index.embed_model.texts


def test_a_build_embeds_chunks_and_a_search_its_question():
    index = build()
    said = PGRAGIndex.estimate(documents(), extractor=OutlineExtractor())
    assert len(index.embed_model.texts) == said.embedded_texts == 12 + 1  # the text by which the model is recognised
    assert said.embedding_is_exact
    for options in ({}, {"return_source": True}, {"similarity_top_k": 40}):
        assert embedded_by(index, lambda options=options: found(index, **options)) == [QUESTION]
    assert embedded_by(index, lambda: index.insert(document(20))) == [index_text(index, "d20")]
    assert not embedded_by(index, lambda: index.delete_ref_doc("d20"))


def index_text(index: PGRAGIndex, document_id: str) -> str:
    (node_id,) = index.ref_doc_info[document_id].node_ids
    return index.docstore.get_node(node_id).get_content(metadata_mode="embed")


def test_with_an_llm_cells_are_embedded_and_counted_in_the_estimate():
    counts = [
        PGRAGIndex.estimate(documents(), extractor=extractor, **given).embedded_texts
        for extractor, given in (
            (OutlineExtractor(), {}),
            (MindMapExtractor(verify=False), {}),
            (OutlineExtractor(), {"cell_vectors": True}),
            (MindMapExtractor(verify=False), {"cell_vectors": False}),
        )
    ]
    assert counts[0] == counts[3] < counts[1] == counts[2] == len(build(cell_vectors=True).embed_model.texts)


@pytest.mark.parametrize("options", [PAPER, {"mode": "PG"}, {"mode": "PG w. KPs"}])
def test_a_search_by_vectors_embeds_all_cells_once_and_finds_what_an_index_with_vectors_does(options):
    index, whole = build(), build(cell_vectors=True)
    by_words = found(index)
    assert len(embedded_by(index, lambda: found(index, **options))) > 12
    assert embedded_by(index, lambda: found(index, **options)) == [QUESTION]
    assert found(index) == by_words  # whatever was asked before
    for each in (index, whole):
        each.insert(document(30))
    assert found(index, **options) == found(whole, **options)
    assert index.storage.struct.counters == whole.storage.struct.counters
    for kind in ("super_topics", "super_facts"):
        assert getattr(index.graph, kind) == getattr(whole.graph, kind)


def test_a_fact_with_the_words_of_the_question_comes_first_and_is_explained():
    best = build().as_retriever(similarity_top_k=3).explain("Which lamp burned oil of kind 7?")[0]
    assert best.path[-1] == "The lamp burned oil of kind 7."
    assert best.cells[-1].text == best.path[-1]
    assert best.cosine == pytest.approx(1, abs=0.1)  # the share of the words of the question that it has


def test_equal_texts_share_a_super_node():
    index = PGRAGIndex.from_documents(
        [Document(text="# Lamp\n\nIt burned whale oil every night.", id_=name) for name in "ab"],
        extractor=OutlineExtractor(),
        embed_model=HashEmbedding(),
    )
    assert [len(group) for group in index.graph.super_topics.nodes()] == [2]
    assert [len(group) for group in index.graph.super_facts.nodes()] == [2]


def test_it_comes_back_as_it_was_with_and_without_vectors(tmp_path: Path):
    index = build()
    for name in ("words", "vectors"):
        index.storage_context.persist(str(tmp_path / name))
        context = StorageContext.from_defaults(persist_dir=str(tmp_path / name))
        loaded = load_index_from_storage(context, extractor=OutlineExtractor(), embed_model=HashEmbedding())
        assert found(loaded) == found(index)
        assert loaded.storage.struct.counters == index.storage.struct.counters
        loaded.insert(document(40))
        assert (len(loaded.graph.facts) > 0) == (name == "vectors")
        found(index, **PAPER)


def test_an_index_that_an_earlier_version_embedded_is_read_and_written_as_one_with_vectors(tmp_path: Path):
    index = build(cell_vectors=True)
    index.storage.struct.params["pgrag"].pop("cell_vectors")
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, extractor=OutlineExtractor(), embed_model=HashEmbedding())
    assert found(loaded) == found(index)
    for each in (index, loaded):
        each.insert(document(40))
    assert len(loaded.graph.facts) == len(index.graph.facts) == len(index.graph.map_of)


def test_a_search_that_cannot_embed_leaves_the_index_as_it_was(monkeypatch: pytest.MonkeyPatch):
    index = build()
    before = found(index)

    def broken(self: HashEmbedding, texts: list[str]) -> list[list[float]]:
        raise OSError("no connection")

    with monkeypatch.context() as patch:
        patch.setattr(HashEmbedding, "_get_text_embeddings", broken)
        with pytest.raises(OSError, match="no connection"):
            found(index, **PAPER)
    assert found(index) == before
    assert found(index, **PAPER) == found(build(cell_vectors=True), **PAPER)


@pytest.mark.parametrize("stored", [False, True])
def test_storing_vectors_that_stops_midway_leaves_an_index_that_is_asked_deleted_from_and_embedded(
    stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    twins = WordTwins(tmp_path, documents())
    index = twins.stored if stored else twins.memory
    before, counters = found(index), dict(index.storage.struct.counters)
    replace = FusionRows.replace
    stored_topics: list[Any] = []

    def broken(self: FusionRows, *given: Any) -> Any:
        if stored_topics:
            raise OSError("the disk is full")
        stored_topics.append(given)
        return (yield from replace(self, *given))

    with monkeypatch.context() as patch:
        patch.setattr(FusionRows, "replace", broken)
        with pytest.raises(OSError, match="the disk is full"):
            found(index, **PAPER)
    assert found(index) == before
    assert dict(index.storage.struct.counters) == counters
    topics = [topic_id for topic_id, each in twins.memory.graph.maps.items() if each.document == "d3"]
    for each in twins:
        each.delete_ref_doc("d3", delete_from_docstore=True)
    assert topics
    assert not len(run_steps(index.storage.space("topics").described(topics)))
    assert found(index, **PAPER) == found(twins.memory if stored else twins.stored, **PAPER)
    assert index.storage.struct.counters["facts"] == twins.memory.storage.struct.counters["facts"] > 0


def test_a_truth_value_is_asked_for():
    with pytest.raises(ConfigurationError, match="cell_vectors must be True, False or None, not 'yes'"):
        build(cell_vectors="yes")


class WordTwins(Twins):
    cls = PGRAGIndex

    def build(self, given: Any, **kwargs: Any) -> Any:
        return PGRAGIndex.from_documents(given, **kwargs)

    def components(self) -> dict[str, Any]:
        return {"extractor": OutlineExtractor(), "embed_model": HashEmbedding(dim=32), **self.options}

    def check(self) -> None:
        for options in ({}, {"return_source": True}, {"similarity_top_k": 4}):
            for question in (QUESTION, "Who wrote to Mary Quill?"):
                stored, memory = (found(each, question, **options) for each in self)
                assert stored == memory


def test_served_from_stores_it_gives_the_answers_of_the_index_in_memory(tmp_path: Path):
    twins = WordTwins(tmp_path, documents())
    twins.check()
    for each in twins:
        each.insert(document(30))
        each.delete_ref_doc("d3", delete_from_docstore=True)
    twins.check()
    counters = [{name: n for name, n in each.storage.struct.counters.items() if n} for each in twins]
    assert counters[0] == counters[1]
    texts = [
        PGRAGPostprocessor(each).postprocess_nodes(
            each.as_retriever(return_source=True).retrieve(QUESTION), query_str=QUESTION
        )
        for each in twins
    ]
    assert [n.node.get_content() for n in texts[0]] == [n.node.get_content() for n in texts[1]] != []
    assert found(twins.stored, **PAPER) == found(twins.memory, **PAPER)
    assert twins.stored.storage.struct.counters["super_facts"] == twins.memory.storage.struct.counters["super_facts"]
    twins.check()
    for each in twins:
        each.insert(document(31))
    twins.check()
    assert found(twins.again(), **PAPER) == found(twins.memory, **PAPER)
