"""All systems on the same questions: what is built, asked, kept and told."""

import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document
from tests.chromium import CHROMIUM, Browser

from llama_index.mrag import SplitEmbedding
from llama_index.ragkit.compare import Comparison, Hit, Question, Run, compare
from llama_index.ragkit.compare.command import main
from llama_index.ragkit.compare.methods import METHODS, Method, heads_of, installed
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

SPLIT = [SentenceSplitter(chunk_size=80, chunk_overlap=0)]
TEXTS = {
    "lamp": "The lamp of Tern Rock burned whale oil. Ada Hale kept it from 1871. She was paid in coal and candles.",
    "hale": "Ada Hale was born in Port Ellis. Her father made ropes. She drowned on a calm night in November.",
    "port": "Port Ellis has the oldest ropewalk on the coast. It burned in 1902. The town built it again in brick.",
    "bells": "The bells of Oban ring for ships in fog. The ringer lives beside the tower. He is deaf in one ear.",
}
QUESTIONS = [Question("What did the lamp of Tern Rock burn?", ("lamp",)), Question("Who rings the bells?", ("bells",))]


def documents() -> list[Document]:
    return [Document(text=text, id_=name, metadata={"file_name": f"{name}.md"}) for name, text in TEXTS.items()]


def compared(**kwargs: Any) -> Comparison:
    given = {"embed_model": HashEmbedding(dim=256), "transformations": SPLIT, "top_k": 2, **kwargs}
    questions = given.pop("questions", QUESTIONS)
    return compare(documents(), questions, **given)


def test_all_installed_methods_and_plain_search_answer() -> None:
    found = compared()
    assert [run.name for run in found.runs] == ["dense", "BM25", "hybrid", *(method.name for method in METHODS)]
    assert [run.error for run in found.runs] == [""] * len(found.runs)
    assert all(len(hits) <= 2 and hits for run in found.runs for hits in run.hits)
    assert set(found.evaluations) == {run.name for run in found.runs}
    assert found.evaluations["BM25"].interval("recall@2").mean == 1.0
    assert set(found.agreements) == {run.name for run in found.runs} - {"hybrid"}
    named = {doc for run in found.runs for hits in run.hits for hit in hits for doc in hit.documents}
    assert named <= set(TEXTS)
    assert "Recommended: " in str(found)


def test_the_table_says_quality_and_cost() -> None:
    found = compared(methods=["hipporag"])
    head, rows = found.rows()
    assert head[:3] == ["system", "recall@2", "MRR"]
    assert [row[0] for row in rows] == ["dense", "BM25", "hybrid", "HippoRAG"]
    assert all(len(row) == len(head) for row in rows)
    texts = int(rows[3][head.index("embedded texts")].replace(",", ""))
    assert texts > int(rows[0][head.index("embedded texts")]) > 0


def test_every_question_is_embedded_once_for_all_systems() -> None:
    model = HashEmbedding(dim=256)
    compared(embed_model=model, methods=["HippoRAG", "spRAG", "MRAG"])
    assert [model.texts.count(question.text) for question in QUESTIONS] == [1, 1]
    assert model.embeddings_cache is None


def test_a_long_page_shows_the_questions_on_which_systems_differ() -> None:
    def hits(documents: list[str]) -> list[list[Hit]]:
        return [[Hit(name, (name,), "text", 1.0)] for name in documents]

    questions = [Question(f"Question number {i}?", ("right",)) for i in range(300)]
    runs = [Run("dense", True, hits(["right"] * 300)), Run("BM25", True, hits(["right"] * 299 + ["wrong"]))]
    page = Comparison(questions, "yours", [*runs, Run("hybrid", True, hits(["right"] * 300))], 1, {}).html()
    assert page.count("<details") == 100
    assert page.index("Question number 299?") < page.index("Question number 0?")
    assert "100 questions on which the systems differ most" in page
    assert "300 questions: yours" in page
    assert "found by 2 of 3" in page


def test_of_several_documents_the_page_says_who_found_all() -> None:
    def hits(*names: str) -> list[list[Hit]]:
        return [[Hit(name, (name,), "text", 1.0) for name in names]]

    runs = [Run("dense", True, hits("one", "two")), Run("BM25", True, hits("one")), Run("hybrid", True, hits("three"))]
    page = Comparison([Question("Who?", ("one", "two"))], "yours", runs, 2, {}).html()
    assert "all 2 found by 1 of 3, some by 2" in page


def test_a_long_passage_is_shown_around_the_answer() -> None:
    text = "It was long ago. " * 40 + "He was born in Wellington, Texas, near the depot. " + "It rained. " * 60
    runs = [Run(name, True, [[Hit("a", ("a",), text, 1.0)]]) for name in ("dense", "BM25", "hybrid")]
    asked = Question("Where was he born?", ("a",), ("wellington, texas",))
    assert "Wellington, Texas" in Comparison([asked], "yours", runs, 1, {}).html()
    assert "Wellington" not in Comparison([Question(asked.text, ("a",))], "yours", runs, 1, {}).html()


def test_questions_without_labels_give_agreement_and_no_quality() -> None:
    found = compared(questions=["What burned?", "Who rings the bells?"], methods=["HippoRAG"])
    assert found.evaluations == {}
    assert "recall@2" not in found.rows()[0]
    assert found.recommendation.name == "hybrid"
    assert "quality cannot be measured" in found.recommendation.reason


def test_questions_that_are_not_scored_are_counted() -> None:
    found = compared(questions=[*QUESTIONS, "What burned?"], methods=["HippoRAG"])
    assert str(found).startswith("3 questions (1 of them not scored): yours")
    assert "3 questions (1 of them not scored): yours" in found.html()
    assert str(compared(methods=["HippoRAG"])).startswith("2 questions: yours")


def test_iterators_and_single_texts_are_read_as_lists() -> None:
    given = {"embed_model": HashEmbedding(dim=256), "transformations": SPLIT, "top_k": 2}
    found = compare(iter(documents()), iter(QUESTIONS), methods="HippoRAG", **given)  # type: ignore[arg-type]
    assert found.questions == QUESTIONS
    assert [run.name for run in found.runs] == ["dense", "BM25", "hybrid", "HippoRAG"]
    assert [run.error for run in found.runs] == [""] * 4
    assert compared(questions="What burned?", methods=["HippoRAG", "hipporag"]).questions == [Question("What burned?")]
    assert [method.name for method in installed(["HippoRAG", "hipporag"])] == ["HippoRAG"]


def test_few_chunks_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    warning = "There are only 4 chunks, and an answer has 2"
    compared(methods=["HippoRAG"])
    assert warning in caplog.text
    caplog.clear()
    texts = [Document(text=f"Lamp number {i} burned oil.", id_=f"{i}") for i in range(10)]
    compare(texts, ["What burned?"], embed_model=HashEmbedding(dim=256), top_k=1, methods=["HippoRAG"])
    assert "There are only" not in caplog.text


def test_without_questions_parts_of_the_texts_are_asked_for_and_not_searched() -> None:
    found = compared(questions=None, methods=["mrag"], count=3)
    assert len(found.questions) == 3
    assert "left out of the texts" in found.source
    shown = " ".join(hit.text for run in found.runs for hits in run.hits for hit in hits)
    assert all(question.text not in shown for question in found.questions)
    assert all(len(question.documents) == 1 for question in found.questions)


def test_an_llm_writes_questions_and_builds_the_methods(tmp_path: Path) -> None:
    llm = ScriptedLLM(lambda prompt: "What burned whale oil?")
    found = compared(questions=None, methods=["RAPTOR"], llm=llm, out=tmp_path, count=2)
    assert [question.text for question in found.questions] == ["What burned whale oil?"] * 2
    assert "written by the LLM" in found.source
    asked = len(llm.prompts)
    compared(questions=None, methods=["RAPTOR"], llm=llm, out=tmp_path, count=2)
    assert len(llm.prompts) == asked


def test_a_comparison_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    build = Method.build
    monkeypatch.setattr(Method, "build", lambda self, *rest: (built.append(self.name), build(self, *rest))[1])
    first = compared(methods=["mrag"], out=tmp_path)
    second = compared(methods=["mrag", "hipporag"], out=tmp_path)
    assert built == ["MRAG", "HippoRAG"]
    assert second.runs[:4] == first.runs
    compared(methods=["mrag"], out=tmp_path, top_k=3)
    assert built == ["MRAG", "HippoRAG", "MRAG"]
    (tmp_path / "runs" / "mrag.json").write_text('{"fingerprint"', encoding="utf-8")
    compared(methods=["mrag"], out=tmp_path, top_k=3)
    assert len(built) == 4


def test_a_method_that_fails_is_named_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Method, *rest: Any) -> Any:
        raise RuntimeError("no room")

    monkeypatch.setattr(Method, "build", fails)
    found = compared(methods=["mrag"], out=tmp_path)
    assert found.runs[-1].error == "RuntimeError: no room"
    assert "failed: RuntimeError: no room" in str(found)
    assert not (tmp_path / "runs" / "mrag.json").exists()
    assert found.recommendation.name in ("dense", "BM25", "hybrid")


def test_a_summary_of_several_documents_counts_for_none_of_them() -> None:
    of_one, of_two = Hit("s1", ("lamp",), "text", 1.0), Hit("s2", ("lamp", "hale"), "text", 2.0)
    run = Run("tree", False, [[of_two], [of_two, of_one]])
    found = Comparison(QUESTIONS, "yours", [run], 1, {})
    assert [found.ranking(run, i) for i in range(2)] == [[], ["lamp"]]


def test_the_estimate_comes_first_and_may_end_it() -> None:
    class EndedError(Exception):
        pass

    model = HashEmbedding(dim=256)

    def before(estimates: dict[str, Any]) -> None:
        assert estimates["HippoRAG"].embedded_texts > estimates["dense"].embedded_texts == 4
        raise EndedError

    with pytest.raises(EndedError):
        compared(before=before, embed_model=model)
    assert model.texts == []


def test_the_time_of_each_method_is_told_from_ten_chunks() -> None:
    seconds: dict[str, float] = {}
    model = HashEmbedding(dim=256)
    many = [Document(text=text, id_=f"{name} {i}") for i in range(10) for name, text in TEXTS.items()]

    def timed(measured: dict[str, float]) -> None:
        seconds.update(measured)
        assert len({text for text in model.texts if text in TEXTS.values()}) <= 10
        raise ConfigurationError("enough")

    with pytest.raises(ConfigurationError, match="enough"):
        compare(many, [question.text for question in QUESTIONS], timed=timed, embed_model=model, transformations=SPLIT)
    assert set(seconds) == {method.name for method in METHODS}
    assert min(seconds.values()) > 0


def test_a_named_file_counts_once_and_any_of_its_pages_answers() -> None:
    metadata = {"file_path": "f/story.pdf", "file_name": "story.pdf"}
    pages = [
        Document(text=text, id_=f"{i}", metadata={**metadata, "page_label": f"{i}"})
        for i, text in enumerate(TEXTS.values(), start=1)
    ]
    given = {"embed_model": HashEmbedding(dim=256), "transformations": SPLIT, "methods": ["spRAG"]}
    asked = [Question(QUESTIONS[0].text, ("story.pdf",)), Question(QUESTIONS[0].text, ("story.pdf#4",))]
    found = compare(pages, asked, top_k=1, **given)  # type: ignore[arg-type]
    assert [question.documents for question in found.questions] == [("f/story.pdf",), ("4",)]
    assert found.evaluations["BM25"].scores["recall@1"] == (1.0, 0.0)
    assert re.search(r"story\.pdf, p\. \d ✓", found.html())
    assert "Answered by: story.pdf, p. 4<" in found.html()


def test_a_local_model_is_searched_by_its_heads() -> None:
    class HuggingFaceEmbedding(HashEmbedding):
        max_length: int = 99

    heads: Any = heads_of(HuggingFaceEmbedding(dim=12))
    assert (heads.class_name(), heads.max_length) == ("MultiHeadEmbedding", 99)
    other = HashEmbedding(dim=12)
    assert heads_of(other) is other


def test_the_model_of_heads_is_asked_for_heads_alone() -> None:
    kept: dict[str, Any] = {}
    heads = SplitEmbedding(HashEmbedding(dim=64, model_name="heads"), num_heads=4)
    compared(head_model=heads, methods=["MRAG", "spRAG"], built=lambda *built: kept.update({built[0]: built[1:]}))
    assert kept["MRAG"][0].num_heads == 4
    assert list(kept) == ["MRAG", "spRAG"]
    assert kept["spRAG"][1].retrieve("Who rings the bells?")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"methods": ["HippoRAG2"]}, "Unknown or not installed: HippoRAG2. Installed: RAPTOR, spRAG"),
        ({"questions": [Question("Who?", ("nobody",))]}, "names 'nobody', which is not a document"),
        ({"questions": []}, "There is nothing to compare"),
        ({"top_k": 0}, "top_k must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        compared(**wrong)


def test_methods_are_found_by_any_spelling() -> None:
    assert [method.name for method in installed(["graph-rag", "SPRAG"])] == ["Graph RAG", "spRAG"]


# -- the page and the command ---------------------------------------------------------------------------


def test_the_page_holds_the_answers_and_no_markup_of_the_texts() -> None:
    evil = '<script>alert(1)</script> & "lamp"'
    found = compare(
        [*documents(), Document(text=f"{evil} burned. It burned long. It was warm.", id_="<evil>")],
        [Question(evil, ("<evil>",))],
        embed_model=HashEmbedding(dim=256), transformations=SPLIT, methods=["mrag"],
    )  # fmt: skip
    page = found.html()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;lamp&quot;" in page
    assert html.escape(page) in found._repr_html_()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in TEXTS.items():
        (docs / f"{name}.txt").write_text(text, encoding="utf-8")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    model = HashEmbedding(dim=256)
    monkeypatch.setattr("llama_index.ragkit.compare.command.resolve_embed_model", lambda name: model)
    return main(list(arguments))


def test_the_command_reads_a_folder_and_questions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps({"question": "What did the lamp burn?", "documents": ["lamp.txt"]}), "Who rings the bells?"]
    (folder / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    asked = ("--docs", f"{folder / 'docs'}", "--questions", f"{folder / 'questions.jsonl'}", "--methods", "mrag")
    assert run(monkeypatch, *asked, "--out", f"{folder / 'out'}") == 0
    told = capsys.readouterr().out
    assert "Estimated work:" in told
    assert "| MRAG |" in told
    assert "Recommended: " in told
    assert "lamp.txt" in (folder / "out" / "index.html").read_text(encoding="utf-8")
    monkeypatch.setattr(Method, "build", None)  # nothing is built again
    assert run(monkeypatch, *asked, "--out", f"{folder / 'out'}") == 0
    assert capsys.readouterr().out == told
    # A later version may answer otherwise.
    monkeypatch.setattr("llama_index.ragkit.compare.comparing.version", "99".join)
    assert run(monkeypatch, *asked, "--out", f"{folder / 'out'}") == 0
    assert capsys.readouterr().out != told


def test_the_command_cuts_chunks_of_a_given_size(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "docs" / "long.txt").write_text("The lamp burned oil all night. " * 100, encoding="utf-8")
    where = ("--docs", f"{folder / 'docs'}", "--out", f"{folder / 'out'}", "--methods", "mrag", "--estimate")
    texts = []
    for size in ([], ["--chunk-size", "200"]):
        assert run(monkeypatch, *where, *size) == 0
        texts.append(int(re.findall(r"dense: ([\d,]+) embedded", capsys.readouterr().out)[0]))
    assert texts[0] < texts[1]
    assert run(monkeypatch, *where, "--chunk-size", "0") == 1
    assert "--chunk-size must be" in capsys.readouterr().err


def test_the_command_ends_after_an_estimate_and_says_what_is_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--docs", f"{folder / 'docs'}", "--out", f"{folder / 'out'}", "--methods")
    assert run(monkeypatch, *where, "mrag", "--estimate") == 0
    assert "Recommended" not in capsys.readouterr().out
    assert run(monkeypatch, *where, "mrag", "--estimate", "--prices", "embedding=1000000") == 0
    assert ".00 to pay" in capsys.readouterr().out
    assert run(monkeypatch, *where, "mrag", "--estimate", "--prices", "embedding=0.02") == 0
    assert "below 0.01 to pay" in capsys.readouterr().out
    assert run(monkeypatch, *where, "mrag", "--prices", "tokens=1") == 1
    told = capsys.readouterr()
    assert "prices must have numbers" in told.err
    assert not told.out  # before any work
    with pytest.raises(SystemExit):
        run(monkeypatch, *where, "mrag", "--prices", "prompt")
    assert "'prompt' is not a price: write one as prompt=0.15" in capsys.readouterr().err
    assert run(monkeypatch, *where, "nothing") == 1
    assert "Unknown or not installed: nothing" in capsys.readouterr().err


def test_a_model_that_cannot_be_fetched_and_methods_that_are_not_installed_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(name: str) -> None:
        raise OSError("We couldn't connect to the hub.\nMore.")

    where = ("--docs", f"{folder / 'docs'}", "--out", f"{folder / 'out'}")
    monkeypatch.setattr("llama_index.ragkit.compare.command.resolve_embed_model", offline)
    assert main(list(where)) == 1
    assert "couldn't connect to the hub. Without a connection" in (told := capsys.readouterr().err)
    assert "--embed-model FOLDER" in told
    only = [method for method in METHODS if method.name in ("HippoRAG", "MRAG")]
    without = Method("X", "llama_index.nowhere", "XIndex")
    monkeypatch.setattr("llama_index.ragkit.compare.methods.METHODS", (*only, without))
    assert run(monkeypatch, *where) == 0
    assert "not installed: llama-index-nowhere." in capsys.readouterr().out


def test_a_question_about_a_skipped_file_says_why_before_a_model_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "llama_index.readers.file", None)
    monkeypatch.setattr("llama_index.ragkit.compare.command.resolve_embed_model", None)
    (folder / "docs" / "report.pdf").write_bytes(b"%PDF-1.4 stream")
    for named in ("report.pdf", "report", "report.pdf#2", str(folder / "docs" / "report.pdf")):
        line = json.dumps({"question": "Who chaired it?", "documents": [named]})
        (folder / "questions.jsonl").write_text(line, encoding="utf-8")
        assert main(["--docs", f"{folder / 'docs'}", "--questions", f"{folder / 'questions.jsonl'}"]) == 1
        told = capsys.readouterr().err
        assert f"names {named!r}, which was skipped: " in told
        assert 'pip install "llama-index-ragkit[files]"' in told


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_the_page_fits_the_window_and_asks_for_nothing(tmp_path: Path, width: int, height: int) -> None:
    path = compared(methods=["hipporag", "mrag", "sprag"]).write(tmp_path / "page.html")
    # The page has no script that could say that it is ready.
    path.write_text(path.read_text(encoding="utf-8").replace("<html ", '<html data-ready="true" '), encoding="utf-8")
    with Browser(width, height) as browser:
        browser.open(path)
        browser.screenshot(tmp_path / "page.png")
        assert browser.problems == []
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.querySelectorAll('details[open] section').length") == 6


WITH_ANSWERS = [
    Question("What did the lamp of Tern Rock burn?", ("lamp",), ("whale oil",)),
    Question("Who rings the bells?", answers=("the ringer", "a deaf ringer")),
    Question("What was built again?"),
]


def test_contexts_of_equal_tokens_are_compared_where_answers_are_known(tmp_path: Path) -> None:
    found = compared(questions=WITH_ANSWERS, context_tokens=60, out=tmp_path)
    assert [run.error for run in found.runs] == [""] * len(found.runs)
    assert set(found.answers) == {"dense", "BM25", "hybrid", *(method.name for method in METHODS)}
    for answers in found.answers.values():
        assert answers.ids == ("0", "1")
        assert all(0 < tokens <= 60 for tokens in answers.scores["tokens"])
        assert "EM" not in answers.scores
    assert found.answers["BM25"].scores["contained"] == (1.0, 1.0)
    head, rows = found.rows()
    assert head[3:4] == ["context holds the answer"]
    assert all(len(row) == len(head) for row in rows)
    assert compared(questions=WITH_ANSWERS, context_tokens=60, out=tmp_path).runs == found.runs
    small = compared(questions=WITH_ANSWERS, context_tokens=8, methods=["mrag"], out=tmp_path)
    assert small.answers["BM25"].scores["contained"] == (0.0, 0.0)


def test_without_documents_contexts_decide_and_with_an_llm_its_answers(tmp_path: Path) -> None:
    asked = [Question(f"What did lamp {i} burn?", answers=("whale oil",)) for i in range(20)]
    assert "contained" in compared(questions=asked, methods=["mrag"]).recommendation.reason
    llm = ScriptedLLM(lambda prompt: "Whale oil")
    estimates: dict[str, Any] = {}
    given = {"questions": asked, "methods": ["mrag"], "llm": llm, "out": tmp_path, "before": estimates.update}
    read = compared(**given)
    assert estimates["answers of all systems"].calls == 4 * 20
    assert len(llm.prompts) <= 4 * 20  # equal contexts are read once
    assert read.answers["MRAG"].interval("F1").mean == 1.0
    assert "F1 over 20 questions" in read.recommendation.reason
    assert "Whale oil" in read.html()
    assert "Correct: whale oil" in read.html()
    asked_before = len(llm.prompts)
    compared(**given)
    assert len(llm.prompts) == asked_before


class _WrongKeyError(Exception):
    status_code = 401


@pytest.mark.parametrize(("fault", "is_asked_again"), [(_WrongKeyError("wrong key"), True), ("", False)])
def test_answers_that_a_server_refused_are_told_and_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: Exception | str, is_asked_again: bool
) -> None:
    replies = [fault]

    def reply(prompt: str) -> str:
        if isinstance(replies[-1], Exception):
            raise replies[-1]
        return replies[-1]

    given = {"questions": WITH_ANSWERS[:2], "methods": ["mrag"], "llm": ScriptedLLM(reply), "out": tmp_path}
    found = compared(**given)
    assert found.answers == {}
    assert "dense: 2 of 2 questions have no answer" in caplog.text
    assert "MRAG: 2 of 2 questions have no answer" in caplog.text
    replies.append("whale oil")
    again = compared(**given)
    assert [run.hits for run in again.runs] == [run.hits for run in found.runs]
    assert set(again.answers) == ({"dense", "BM25", "hybrid", "MRAG"} if is_asked_again else set())


def test_an_llm_reads_questions_without_answers_only_when_told() -> None:
    llm = ScriptedLLM(lambda prompt: "Perhaps oil")
    given = {"questions": ["What burned?"], "methods": ["mrag"], "llm": llm}
    assert compared(**given).answers == {}
    assert llm.prompts == []
    read = compared(**given, read=True)
    assert {answers.answers["0"] for answers in read.answers.values()} == {"Perhaps oil"}
    assert read.recommendation.reason.startswith("The questions do not say")
    assert "Perhaps oil" in read.html()
