"""Questions by rules are shown, but not embedded: a chunk is found by its own words and vector, which they repeat."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.node_parser import MarkdownNodeParser

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor, UtilityQuestionExtractor
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.errors import ExtractorMismatchError
from llama_index.ragkit.testing import HashEmbedding

THINGS = ("loom", "lamp", "kiln", "tide mill")


def document(number: int) -> Document:
    about = [f"# The {thing}\n\nKeeper {number} lit the {thing} of Oban. It burned oil." for thing in THINGS]
    return Document(text="\n\n".join(about), id_=f"d{number}")


def build(count: int = 3, model: HashEmbedding | None = None, **kwargs: Any) -> GEMRAGIndex:
    return GEMRAGIndex.from_documents(
        [document(number) for number in range(count)], **{**parts(model), "transformations": [SPLIT], **kwargs}
    )


def parts(model: HashEmbedding | None = None, **kwargs: Any) -> dict[str, Any]:
    extractor = KeyphraseQuestionExtractor(**kwargs)
    return {"extractor": extractor, "summarizer": ExtractiveSummarizer(), "embed_model": model or HashEmbedding()}


SPLIT = MarkdownNodeParser()


def test_chunks_and_themes_are_embedded_and_nothing_else():
    model = HashEmbedding()
    index = build(model=model)
    assert len(model.texts) == len(index.docstore.docs) + len(index.themes) + 1  # and what tells models apart
    del model.texts[:]
    assert index.as_retriever().retrieve("Who lit the loom?")
    assert model.texts == ["Who lit the loom?"]


def test_they_are_shown_all_the_same():
    index = build()
    asked = "Keeper 0 lit, kiln, Oban?"
    (chunk,) = (name for name in index.docstore.docs if asked in index.questions_of(name))
    assert all(index.questions_of(name) for name in index.themes)
    (why,) = (each for each in index.as_retriever(similarity_top_k=20).explain("A kiln?") if each.node_id == chunk)
    assert (why.question, why.question_similarity, why.hub, why.fallback) == (asked, 0.0, 0.0, "")
    questions = [data for _, data in index.to_networkx().nodes(data=True) if data["kind"] == "question"]
    assert asked in [each["text"] for each in questions]
    assert asked in [node.text for node in index.visualize().page.view.nodes]


def test_questions_that_an_earlier_version_embedded_answer_until_the_first_write(tmp_path: Path):
    earlier = build(extractor=KeyphraseQuestionExtractor(embed_questions=True))
    del earlier.index_struct.components["extractor"]["embed_questions"]  # which had no choice
    earlier.storage_context.index_store.add_index_struct(earlier.index_struct)
    earlier.storage_context.persist(str(tmp_path))
    index: Any = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), **parts())
    index._transformations = [SPLIT]
    found, then = ([(r.node_id, r.score) for r in each.as_retriever().retrieve("A kiln?")] for each in (index, earlier))
    assert found == then
    assert len(index.state.chunk_layer.questions) > len(index.docstore.docs)
    index.insert(document(3))
    assert not len(index.state.chunk_layer.questions)
    assert not len(index.state.theme_layer.questions)
    whole = build(4)
    questions = ("A kiln?", "Who lit the tide mill?", "What burned oil?")
    of_new, of_whole = (each.as_retriever(similarity_top_k=40, max_summaries=0) for each in (index, whole))
    for question in questions:
        assert [r.node_id for r in of_new.retrieve(question)] == [r.node_id for r in of_whole.retrieve(question)]
    assert "questions" not in index.index_struct.counters


@pytest.mark.parametrize("embedded", [False, True])
def test_no_index_has_vectors_of_some_questions_only(embedded: bool):
    index = build(extractor=KeyphraseQuestionExtractor(embed_questions=embedded))
    other = parts(embed_questions=not embedded)
    again: Any = load_index_from_storage(index.storage_context, **other)
    with pytest.raises(ExtractorMismatchError, match="embed_questions"):
        again.insert(document(3))


def test_the_paper_and_the_questions_of_a_model_are_embedded():
    index = build(**GEMRAGIndex.paper())
    assert len(index.state.chunk_layer.questions) == index.index_struct.counters["questions"] > 0
    documents = [document(number) for number in range(3)]
    kinds = (KeyphraseQuestionExtractor(), UtilityQuestionExtractor(num_questions=2))
    plain, asked = (
        GEMRAGIndex.estimate(documents, extractor=kind, summarizer=ExtractiveSummarizer(), transformations=[SPLIT])
        for kind in kinds
    )
    assert plain.embedded_texts < asked.embedded_texts <= 3 * plain.embedded_texts
