"""Documents that are too short for themes of their own share one memory graph."""

from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from tests.gemrag.test_index import TOPICS

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.testing import HashEmbedding


def components(**kwargs: Any) -> dict[str, Any]:
    return {
        "embed_model": HashEmbedding(dim=64),
        "extractor": KeyphraseQuestionExtractor(),
        "summarizer": ExtractiveSummarizer(),
        **kwargs,
    }


def node(document: str, place: int = 0) -> TextNode:
    number = int(document.split()[1])
    text = f"{TOPICS[number % 4]} number{number} part{place} {TOPICS[number % 4].split()[place % 4]}."
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return TextNode(id_=f"{document}/{place}", text=text, relationships=source)


def documents(count: int) -> list[str]:
    return [f"doc {number}" for number in range(count)]


def index_of(nodes: list[TextNode], **kwargs: Any) -> GEMRAGIndex:
    return GEMRAGIndex(nodes=nodes, **components(**kwargs))


def memory(index: GEMRAGIndex) -> dict[str, Any]:
    return {name: (theme.group, theme.members) for name, theme in index.state.themes.items()}


def test_ordinary_documents_of_one_chunk_have_themes_over_the_corpus():
    texts = [Document(text=f"{TOPICS[i % 4]} number{i}.", id_=f"doc {i}") for i in range(40)]
    index = GEMRAGIndex.from_documents(texts, **components())
    assert len(index.themes) > 1
    assert all(len(members) > 1 for members in index.themes.values())
    topics = [{int(index.docstore.docs[m].ref_doc_id.split()[1]) % 4 for m in ms} for ms in index.themes.values()]
    assert sum(len(found) == 1 for found in topics) >= 2
    assert GEMRAGIndex.estimate(texts, **{k: v for k, v in components().items() if k != "embed_model"}).calls == 0


def test_long_documents_keep_graphs_of_their_own():
    nodes = [node(document, place) for document in documents(3) for place in range(6)]
    nodes += [node(f"doc {number}") for number in range(10, 30)]
    groups = {theme.group for theme in index_of(nodes).state.themes.values()}
    assert "short documents" in groups
    assert groups - {"short documents"} <= {f'"{document}"' for document in documents(3)}
    assert len(groups) > 1


@pytest.mark.parametrize("kwargs", [{"paper": True}, {"group_by": "tenant"}])
def test_the_paper_and_other_groups_are_as_they_were(kwargs: dict[str, Any]):
    nodes = [node(document) for document in documents(20)]
    for each in nodes:
        each.metadata = {"tenant": each.ref_doc_id}
    assert index_of(nodes, **kwargs).themes == {}


def test_a_document_that_grows_or_shrinks_moves_and_a_rebuild_is_a_fresh_build():
    grown = index_of([node(document) for document in documents(24)])
    grown.insert_nodes([node("doc 0", place) for place in range(1, 6)])
    grown.insert_nodes([node("doc 1", place) for place in range(1, 6)])
    grown.delete_nodes([f"doc 1/{place}" for place in range(1, 6)], delete_from_docstore=True)
    grown.rebuild()
    fresh = index_of([node(document) for document in documents(24)] + [node("doc 0", place) for place in range(1, 6)])
    assert memory(grown) == memory(fresh)


def test_a_deleted_short_document_leaves_no_theme_that_rests_on_it():
    index = index_of([node(document) for document in documents(24)])
    victim = next(iter(index.themes.values()))[0]
    index.delete_ref_doc(victim.split("/")[0], delete_from_docstore=True)
    assert not any(victim in members for members in index.themes.values())
    for document in documents(24):
        index.delete_ref_doc(document, delete_from_docstore=True)
    assert index.themes == {}
