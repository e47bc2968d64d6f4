"""Questions read from a file, held out of texts, or written by a model."""

from pathlib import Path

import pytest
from llama_index.core.schema import Document

from llama_index.ragkit.compare.questions import Question, held_out, read_questions, with_documents, written
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, LanguageModelError
from llama_index.ragkit.testing import ScriptedLLM

STORY = "# The lamp of Tern Rock\n\n" + " ".join(
    f"In the year {1800 + i} the keeper wrote about the weather and the ships." for i in range(6)
)


def test_lines_and_objects_are_questions(tmp_path: Path) -> None:
    path = tmp_path / "questions"
    path.write_text('Who?\n\n{"question": "Where?", "documents": "a"}\n{"question": "When?", "gold": ["a", "b"]}\n')
    assert read_questions(path) == [Question("Who?"), Question("Where?", ("a",)), Question("When?", ("a", "b"))]


@pytest.mark.parametrize(
    "line", ['"answers": ["whale oil", "oil"]', '"answers": ["whale oil", "oil"], "answer": "oil"']
)
def test_an_object_has_correct_answers_too(tmp_path: Path, line: str) -> None:
    path = tmp_path / "questions"
    path.write_text(f'{{"question": "What?", {line}}}\n{{"question": "Who?", "answer": "Ada"}}\n')
    assert read_questions(path) == [Question("What?", (), ("whale oil", "oil")), Question("Who?", (), ("Ada",))]
    document = Document(text="", id_="a")
    assert with_documents([Question("?", ("a",), ("oil",))], [document]) == [Question("?", ("a",), ("oil",))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no questions"),
        ("Who?\n{broken", "line 2 is not a question"),
        ("{}", "line 1"),
        ('[{"question": "Who?"}, {"question": "Where?"}]', "line 1 is not a question.*one per line"),
        ('["Who?", "Where?"]', "line 1 is not a question"),
        ('[\n{"question": "Who?"}\n]', "line 1 is not a question"),
        ('{"question": null}', "line 1 is not a question"),
        ('{"question": " "}', "line 1 is not a question"),
        ('{"question": ["Who?"]}', "line 1 is not a question"),
        ('{"question": "Who?", "answers": [{"text": "Ada"}]}', "line 1 is not a question"),
        ('{"question": "Who?", "documents": {"a": 1}}', "line 1 is not a question"),
        ("Wer war K\N{LATIN SMALL LETTER O WITH DIAERESIS}nig?", "q is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "q").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match=message):
        read_questions(tmp_path / "q")


def test_null_is_for_none_and_numbers_are_texts(tmp_path: Path) -> None:
    (tmp_path / "q").write_text('{"question": "When?", "documents": null, "answers": 1871}\n[sic] Who?\u2028Where?\n')
    assert read_questions(tmp_path / "q") == [Question("When?", (), ("1871",)), Question("[sic] Who?\u2028Where?")]


def test_one_document_and_one_answer_may_be_given_as_a_text() -> None:
    assert Question("What?", "lamp.txt", "whale oil") == Question("What?", ("lamp.txt",), ("whale oil",))
    assert Question("What?", ["a"], None).documents == ("a",)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="are texts, not"):
        Question("What?", answers=({"text": "oil"},))  # type: ignore[arg-type]


def test_documents_are_known_by_id_and_by_file() -> None:
    file = {"file_name": "a.pdf", "file_path": "f/a.pdf"}
    pages = [Document(text="x", id_=f"id{i}", metadata={**file, "page_label": i}) for i in "12"]
    named = [Question("?", (name,)) for name in ("a", "a.pdf", "f/a.pdf")]
    assert with_documents(named, pages) == [Question("?", ("f/a.pdf",))] * 3
    assert with_documents(named, pages[:1]) == [Question("?", ("id1",))] * 3
    for name in ("id2", "a.pdf#2"):
        assert with_documents([Question("?", (name,))], pages) == [Question("?", ("id2",))]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_held_out_is_no_longer_in_the_text(seed: int) -> None:
    documents = [Document(text=STORY.replace("18", f"{18 + i}"), id_=f"d{i}") for i in range(6)]
    before = [document.text for document in documents]
    texts, questions = held_out(documents, 4, seed)
    assert len(questions) == 4
    assert len({question.documents for question in questions}) == 4
    assert any(question.text == "The lamp of Tern Rock" for question in questions)
    left = {document.id_: document.text for document in texts}
    for question in questions:
        (name,) = question.documents
        assert question.text not in left[name]
        assert len(left[name]) < len(STORY)
    assert [document.text for document in documents] == before
    assert held_out(documents, 4, seed)[1] == questions


def test_a_row_of_a_table_is_no_question() -> None:
    rows = "\n\n\n".join(f"mission: Apollo {i}\nlaunch: 19{i}-04-16\ncommander: John Young" for i in range(60, 70))
    told = "The rocket left on time. It carried three men and a small car to the moon. They drove for hours there."
    _, made = held_out([Document(text=rows, id_="rows"), Document(text=told, id_="told")], 10, 0)
    assert [question.documents for question in made] == [("told",)]


def test_short_texts_are_left_whole() -> None:
    documents = [Document(text="One sentence. And another."), Document(text="")]
    assert held_out(documents, 4, 0) == (documents, [])


def test_a_model_writes_one_question_a_document_and_those_that_fail_are_left_out() -> None:
    def reply(prompt: str) -> str:
        return "" if "1801 " in prompt and "1900 " in prompt else "Sure:\n- What did the keeper write?"

    documents = [Document(text=STORY, id_="a"), Document(text="", id_="empty"), Document(text="Tea is hot.", id_="b")]
    questions = written(documents, ScriptedLLM(reply), None, 10, 0)
    assert {question.documents for question in questions} == {("a",), ("b",)}
    assert {question.text for question in questions} == {"What did the keeper write?"}


@pytest.mark.parametrize(
    "reply",
    [
        "Sure! Here is a question:\n\n1. What burned?\n\nI hope this helps!",
        "What burned?\n\nThis question is answered by the passage.",
        '"What burned?"',
    ],
)
def test_what_a_model_says_beside_its_question_is_not_asked(reply: str) -> None:
    (question,) = written([Document(text=STORY, id_="a")], ScriptedLLM(lambda prompt: reply), None, 1, 0)
    assert question.text == "What burned?"


def test_a_model_that_writes_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(ExtractionError):
        written([Document(text=STORY)], ScriptedLLM(lambda prompt: ""), None, 2, 0)


def test_a_server_that_refuses_every_call_is_asked_once() -> None:
    class WrongKeyError(Exception):
        status_code = 401

    def refuse(prompt: str) -> str:
        raise WrongKeyError("wrong key")

    llm = ScriptedLLM(refuse)
    with pytest.raises(LanguageModelError, match="wrong key"):
        written([Document(text=STORY, id_=name) for name in "abc"], llm, None, 3, 0)
    assert len(llm.prompts) == 1
