"""The retriever through LlamaIndex's doors: what it is given, what it gives, and why."""

import asyncio
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from tests.cases import TEXTS, HashHeads, chunks
from tests.page_data import page_data
from tests.shifted import ShiftedHeads

from llama_index.mrag import MRAGIndex, MRAGRetriever, SplitEmbedding
from llama_index.mrag.voting.ranking import votes_weight
from llama_index.ragkit.errors import ConfigurationError, EmbeddingModelMismatchError
from llama_index.ragkit.vectors.question_scores import hybrid_nearness, result_scores

STORY = "The Analytical Engine used punched cards. The loom wove silk in Lyon, and the Rhone flows by the town."


class RandomEmbedding(HashHeads):
    """A text's vector has nothing to do with any other text's: no two cosines are equal."""

    def vector(self, text: str) -> list[float]:
        return np.random.default_rng(list(text.encode())).normal(size=self.dim).tolist()


def index_of(texts=TEXTS, **kwargs) -> MRAGIndex:
    return MRAGIndex([TextNode(text=text, id_=f"n{i}") for i, text in enumerate(texts)], **kwargs)


def ids(found) -> list[str]:
    return [result.node_id for result in found]


def test_importance_follows_inserts_deletes_and_a_reload(tmp_path):
    index = MRAGIndex(chunks("d", 5), embed_model=HashHeads())
    index.insert_nodes(chunks("e", 4))
    index.delete_ref_doc("d", delete_from_docstore=True)
    fresh = MRAGIndex(chunks("e", 4), embed_model=HashHeads())
    np.testing.assert_allclose(index.importance, fresh.importance, atol=1e-9)
    index.storage_context.persist(str(tmp_path))
    loaded = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), embed_model=HashHeads())
    np.testing.assert_allclose(loaded.importance, index.importance, atol=1e-9)
    assert loaded.num_heads == 4


def test_every_sentence_finds_its_own():
    index = index_of(embed_model=RandomEmbedding())
    question = f"{TEXTS[1]} {TEXTS[4]}"
    found = index.as_retriever(similarity_top_k=3).retrieve(question)
    assert set(ids(found)[:2]) == {"n1", "n4"}
    whole = index.as_retriever(similarity_top_k=3, aspects="none").retrieve(question)
    assert whole[0].score < 1
    assert all(0 <= result.score <= 1 for result in found)
    assert [r.score for r in found] == sorted((r.score for r in found), reverse=True)


@pytest.mark.parametrize("question", [STORY, "bread"])
def test_sync_and_async_agree(question):
    retriever = index_of().as_retriever(similarity_top_k=5)
    one, other = retriever.retrieve(question), asyncio.run(retriever.aretrieve(question))
    assert [(r.node_id, r.score) for r in one] == [(r.node_id, r.score) for r in other]
    assert retriever.explain(question) == asyncio.run(retriever.aexplain(question))


def test_a_question_of_one_aspect_is_nearness_without_a_vote():
    index = index_of(embed_model=RandomEmbedding())
    retriever = index.as_retriever(similarity_top_k=6)
    why = retriever.explain("Who wove silk for the looms")
    nearness = hybrid_nearness(np.array([w.cosine for w in why]), np.array([w.lexical for w in why]), 0.5)
    assert [w.nearness for w in why] == pytest.approx(nearness.tolist())
    assert nearness.tolist() == sorted(nearness, reverse=True)
    assert [w.score for w in why] == pytest.approx(result_scores(nearness, nearness).tolist())
    assert all(w.vote_weight == 0 and not w.votes and not w.aspects for w in why)


def test_without_lexical_weight_one_aspect_is_ranked_by_the_cosine():
    model = RandomEmbedding()
    why = index_of(embed_model=model).as_retriever(similarity_top_k=6, lexical_weight=0).explain("silk loom")
    question = np.array(model.vector("silk loom"))
    cosines = {w.node_id: float(np.dot(model.vector(TEXTS[int(w.node_id[1:])]), question)) for w in why}
    norms = {n: np.linalg.norm(question) * np.linalg.norm(model.vector(TEXTS[int(n[1:])])) for n in cosines}
    assert [w.cosine for w in why] == pytest.approx([cosines[w.node_id] / norms[w.node_id] for w in why], abs=1e-6)
    assert [w.cosine for w in why] == sorted((w.cosine for w in why), reverse=True)
    assert {w.lexical for w in why} == {0.0}


def test_words_of_the_question_find_a_node_that_the_vectors_do_not():
    index = index_of(["silk loom", "bread oven", "lamp oil"], embed_model=RandomEmbedding())
    for text in ("bread", "bread. oil."):
        best = {ids(index.as_retriever(lexical_weight=1.0).retrieve(text))[0] for _ in range(2)}
        assert best <= {"n1", "n2"}
    assert ids(index.as_retriever(lexical_weight=1.0).retrieve("bread"))[0] == "n1"


def test_more_aspects_give_votes_more_weight():
    retriever = index_of().as_retriever()
    weights = [retriever.explain(" ".join(TEXTS[:count]))[0].vote_weight for count in (1, 2, 4)]
    assert weights[0] < weights[1] < weights[2] < 1
    assert index_of().as_retriever(vote_weight=0).explain(STORY)[0].vote_weight == 0


WORDS = [[f"{letter}{number}word" for number in range(9)] for letter in "abcdef"]


class ByLetter(HashHeads):
    """Every head puts a text next to the passage with the first of its words, or `off` passages further on."""

    off: int = 0

    def vector(self, text: str) -> list[float]:
        place = ord(text[0].lower()) - ord("a") + (self.off if "?" in text else 0)
        return np.tile(np.eye(8)[place % 6], self.dim // 8).tolist()


def weight_of(question: str, model: HashHeads | None = None) -> float:
    """The weight of votes for a question to six passages without a common word."""
    index = index_of([" ".join(words) for words in WORDS], embed_model=model or RandomEmbedding())
    return index.as_retriever().explain(question)[0].vote_weight


@settings(max_examples=10)
@given(st.integers(0, 5), st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True))
def test_sentences_about_one_passage_are_one_subject(passage, ends):
    cuts = [0, *sorted(ends), 9]
    sentences = [" ".join(WORDS[passage][a:b]).capitalize() + "?" for a, b in itertools.pairwise(cuts)]
    assert weight_of(" ".join(sentences)) == pytest.approx(votes_weight(1.0))


@pytest.mark.parametrize("count", [2, 4, 6])
def test_sentences_about_passages_of_their_own_are_as_many_subjects(count):
    question = " ".join(" ".join(words[:3]).capitalize() + "?" for words in WORDS[:count])
    assert weight_of(question, ByLetter()) == pytest.approx(votes_weight(count))
    assert weight_of(question, ByLetter(off=1)) == pytest.approx(votes_weight(count))


@pytest.mark.parametrize("count", [2, 4, 6])
def test_votes_of_voters_who_know_little_do_not_decide(count):
    question = " ".join(f"{words[0].capitalize()} in words of its own?" for words in WORDS[:count])
    assert weight_of(question, ByLetter()) == pytest.approx(votes_weight(count))
    assert weight_of(question, ByLetter(off=1)) == pytest.approx(votes_weight(count, 0))


@pytest.mark.parametrize("count", [9, 12, 40])
def test_a_question_of_many_subjects_finds_the_passage_of_each(count):
    texts = [" ".join(f"subject{number}word{place}" for place in range(9)) for number in range(count + 5)]
    question = " ".join(f"{' '.join(text.split()[:3]).capitalize()}?" for text in texts[:count])
    retriever = index_of(texts, embed_model=RandomEmbedding()).as_retriever(similarity_top_k=count)
    assert set(ids(retriever.retrieve(question))) == {f"n{number}" for number in range(count)}
    assert retriever.explain(question)[0].vote_weight < 1
    everything = index_of(texts, embed_model=RandomEmbedding()).as_retriever(similarity_top_k=count + 5)
    assert len(everything.retrieve(question)) == count + 5


def test_instructions_for_the_answer_are_no_subject():
    asked = "a0word a1word a2word a3word?"
    told = "Please round whatever you answer. Then explain everything step by step, in full sentences, to me."
    assert weight_of(f"{asked.capitalize()} {told}") == pytest.approx(votes_weight(1.0))


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.sampled_from(["silk", "loom", "bread", "lamp", "oil", "tide"]), min_size=1, max_size=5),
        min_size=2,
        max_size=8,
    ),
    st.sampled_from(["silk bread", "The silk on the loom. The oil of the lamp, and the tide of bread."]),
    st.sampled_from([1.0, 2.0]),
)
def test_the_range_of_cosines_of_an_embedding_model_changes_no_ranking(texts, question, common):
    texts = [f"{' '.join(words)} {i}" for i, words in enumerate(texts)]
    plain, shifted = (
        index_of(texts, embed_model=ShiftedHeads(common=c)).as_retriever(similarity_top_k=9) for c in (0.0, common)
    )
    one, other = plain.retrieve(question), shifted.retrieve(question)
    assert {r.node_id: r.score for r in one} == pytest.approx({r.node_id: r.score for r in other}, abs=1e-4)
    assert [w.lexical for w in plain.explain(question)] == [w.lexical for w in shifted.explain(question)]


def test_filters_hold_for_every_voter():
    nodes = [
        TextNode(text=t, id_=f"n{i}", metadata={"odd": i % 2}, excluded_embed_metadata_keys=["odd"])
        for i, t in enumerate(TEXTS)
    ]
    index = MRAGIndex(nodes)
    only = MetadataFilters(filters=[MetadataFilter(key="odd", value=1)])
    for kwargs in ({"filters": only}, {"node_ids": ["n1", "n3", "n5"]}):
        retriever = index.as_retriever(similarity_top_k=6, **kwargs)
        assert set(ids(retriever.retrieve(STORY))) == {"n1", "n3", "n5"}
        assert {why.node_id for why in retriever.explain(STORY)} == {"n1", "n3", "n5"}
        alone = MRAGIndex([node for node in nodes if node.metadata["odd"]]).as_retriever(vote_weight=0)
        assert {w.node_id: w.cosine for w in retriever.explain(STORY)} == pytest.approx(
            {w.node_id: w.cosine for w in alone.explain(STORY)}
        )
    assert index.as_retriever(node_ids=[]).retrieve(STORY) == []


def test_as_many_as_are_asked_for_are_found():
    index = index_of([f"word{i} number" for i in range(80)])
    assert len(index.as_retriever(similarity_top_k=70, num_candidates=1).retrieve("word3")) == 70
    assert len(index.as_retriever(similarity_top_k=99).retrieve("word3")) == 80


def test_explanations_add_up_to_the_scores():
    retriever = index_of().as_retriever(similarity_top_k=4)
    found = retriever.retrieve(STORY)
    why = retriever.explain(STORY)
    assert [(w.node_id, w.score) for w in why] == [(r.node_id, r.score) for r in found]
    aspects = {
        "The Analytical Engine used punched cards.",
        "The loom wove silk in Lyon, and the Rhone flows by the town.",
    }
    for w in why:
        assert all((vote.head is None or 0 <= vote.head < 4) and vote.place >= 1 for vote in w.votes)
        for aspect, share in w.aspects.items():
            assert sum(vote.share for vote in w.votes if vote.aspect == aspect) == pytest.approx(share)
    assert aspects <= {aspect for w in why for aspect in w.aspects}


@pytest.mark.parametrize(
    ("kwargs", "named"),
    [
        ({"aspects": "words"}, "words"),
        ({"vote": "veto"}, "veto"),
        ({"num_candidates": 0}, "num_candidates"),
        ({"lexical_weight": 1.5}, "1.5"),
        ({"vote_weight": -1}, "vote_weight"),
        ({"num_queries": 0}, "num_queries"),
        ({"similarity_top_k": 0}, "similarity_top_k"),
    ],
)
def test_what_cannot_be_meant_is_refused(kwargs, named):
    with pytest.raises(ConfigurationError, match=named):
        MRAGRetriever(index_of(), **kwargs)


def test_float16_halves_the_vectors_and_hardly_changes_scores():
    full, half = index_of(), index_of(dtype="float16")
    a, b = (i.as_retriever(similarity_top_k=6).retrieve(STORY) for i in (full, half))
    assert {r.node_id: r.score for r in a} == pytest.approx({r.node_id: r.score for r in b}, abs=0.05)
    assert half.state.chunks.matrix.dtype == np.float16
    with pytest.raises(ConfigurationError, match="float8"):
        index_of(dtype="float8")


def test_float16_comes_back_from_a_folder(tmp_path):
    index = index_of(dtype="float16")
    before = [(r.node_id, r.score) for r in index.as_retriever().retrieve(STORY)]
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context)
    assert loaded.state.chunks.matrix.dtype == np.float16
    assert [(r.node_id, r.score) for r in loaded.as_retriever().retrieve(STORY)] == before
    with pytest.raises(ConfigurationError, match="float16"):
        load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), dtype="float32")


def test_a_model_without_heads_is_wrapped_and_said_so(caplog):
    index = index_of(embed_model=MockEmbedding(embed_dim=64))
    assert isinstance(index.embed_model, SplitEmbedding)
    assert index.num_heads == 2
    assert "SplitEmbedding" in caplog.text
    assert index.as_retriever().retrieve("x")


def test_another_number_of_heads_is_refused():
    index = index_of(embed_model=SplitEmbedding(MockEmbedding(embed_dim=64), num_heads=8))
    other = SplitEmbedding(MockEmbedding(embed_dim=64), num_heads=4)
    loaded = load_index_from_storage(index.storage_context, embed_model=other)
    with pytest.raises(EmbeddingModelMismatchError, match="8 heads"):
        loaded.as_retriever().retrieve("x")
    with pytest.raises(ConfigurationError, match="64"):
        index_of(embed_model=SplitEmbedding(MockEmbedding(embed_dim=64), num_heads=7))


def test_a_head_of_zeros_and_a_huge_query():
    index = index_of([*TEXTS, ""])
    assert ids(index.as_retriever(similarity_top_k=3).retrieve("card " * 20000))
    assert index.as_retriever().retrieve(QueryBundle(""))


def test_split_embedding_works_in_any_index():
    model = SplitEmbedding(HashHeads(), num_heads=4)
    nodes = [TextNode(text=t, id_=f"n{i}") for i, t in enumerate(TEXTS)]
    assert ids(VectorStoreIndex(nodes, embed_model=model).as_retriever(similarity_top_k=1).retrieve(TEXTS[4])) == ["n4"]
    assert model.split(model.get_text_embedding("x")).shape == (4, 8)
    assert asyncio.run(model.aget_query_embedding_batch(["a", "b"])) == model.get_query_embedding_batch(["a", "b"])


@pytest.mark.parametrize("asked", [False, True])
def test_the_page_shows_heads_and_nodes(asked, tmp_path):
    index = index_of()
    page = index.visualize(tmp_path / "heads.html", query=STORY if asked else None)
    text = page.read_text(encoding="utf-8")
    assert ("head 3" in text) != asked
    assert "punched cards" in text
    assert ("Question: " in text) == asked


def test_the_page_has_a_row_for_each_clause_and_says_how_many_are_best(tmp_path):
    asked = "Tell me who punched cards for the loom, and which birds fly over the sea in winter, and so on."
    index = index_of()
    index.as_retriever(similarity_top_k=3).retrieve(asked)
    page = page_data(index.visualize(tmp_path / "page.html"))
    aspects = [node["text"] for node in page["view"]["nodes"] if node["id"].startswith("aspect ")]
    assert len(aspects) > 1
    assert not [aspect for aspect in aspects for other in aspects if other != aspect and other in aspect]
    assert page["lit"] == "The 3 best"


def test_a_delete_forgets_the_last_question_too(tmp_path):
    index = index_of()
    index.as_retriever().retrieve(STORY)
    index.delete_nodes(["n2"])
    assert "Question: " not in index.visualize(tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_index_without_nodes_has_a_page_too(tmp_path):
    assert MRAGIndex([]).visualize(tmp_path / "empty.html", query="x").exists()
