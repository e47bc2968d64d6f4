"""Extracted triples beside annotated ones: HippoRAG's table 9."""

import json
import re
from pathlib import Path

import pytest
from benchmarks.papers.carb import Agreement, agreement
from benchmarks.papers.hipporag import EXPERIMENTS
from tests.benchmarks.made import two_hops, write
from tests.benchmarks.test_papers import rows, run
from tests.llm_server import Asked, LLMServer

__all__ = ["run"]  # the fixture

GOLD = [("Ada Hale", "was born in", "Port Ellis"), ("Ada Hale", "kept", "Lamp 1")]


@pytest.mark.parametrize("name", EXPERIMENTS["table 9"].printed)
def test_area_and_f1_follow_from_precision_and_recall_as_in_the_paper(name: str):
    area, precision, recall, f1 = EXPERIMENTS["table 9"].printed[name]
    found = Agreement(precision / 100, recall / 100)
    assert found.auc == pytest.approx(area / 100, abs=0.0008)
    assert found.f1 == pytest.approx(f1 / 100, abs=0.0008)


@pytest.mark.parametrize(
    ("extracted", "precision", "recall"),
    [
        (GOLD, 1, 1),
        ([("ada hale", "Was Born In", "port ellis"), GOLD[1]], 1, 1),
        (GOLD[:1], 1, 1 / 2),
        ([*GOLD, ("The sea", "is", "calm")], 2 / 3, 1),
        ([*GOLD, GOLD[0]], 2 / 3, 1),  # a gold triple is paired once
        ([("Ada Hale", "saw", "Port Ellis")], 0, 0),  # no word of the relation
        ([("Hale", "was born in", "the Port")], 5 / 6, (5 / 7) / 2),
        ([("Ada Hale", "be born in", "Port Ellis")], 1, 1 / 2),  # "be" stands for its forms
        ([("Port Ellis", "was born in", "Ada Hale")], 3 / 7, (3 / 7) / 2),
        ([], 0, 0),
    ],
)
def test_triples_agree_by_the_words_of_each_place(extracted, precision: float, recall: float):
    found = agreement([(GOLD, extracted)])
    assert (found.precision, found.recall) == (pytest.approx(precision), pytest.approx(recall))


def test_who_is_said_to_say_something_may_stand_last():
    gold = [("Ada Hale", "said", "the lamp is out")]
    assert agreement([(gold, [("the lamp is out", "said", "Ada Hale")])]).f1 == 1


def test_passages_count_by_their_triples():
    found = agreement([(GOLD, GOLD), ([("Tarn", "is", "calm")], [])])
    assert (found.precision, found.recall) == (1, pytest.approx(2 / 3))


def read(asked: Asked) -> str:
    """The entities of a passage of two hops, and its triple, which lamps with an odd number have not."""
    head, relation, tail = re.findall(r"^(.+) (was kept by|was born in) (.+)\.$", asked.prompt, flags=re.MULTILINE)[-1]
    if "triples" not in asked.prompt:
        return json.dumps({"named_entities": [head, tail]})
    return json.dumps({"triples": [] if re.search(r"[1357]$", head) else [[head, relation, tail]]})


def test_extractors_are_held_against_annotated_passages(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two_hops(tmp_path / "data" / "openie")
    with LLMServer(read) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        text = run("hipporag", "--table", "9", "--llm", "scripted")
        asked = len(server.asked)
        assert run("hipporag", "--table", "9", "--llm", "scripted").endswith(text[-200:])
        assert len(server.asked) == asked
    for name in ("OpenIEExtractor.paper()", "OpenIEExtractor"):
        assert rows(text, name)[0][1:] == ["75", "100", "75", "85.7"]
        assert rows(text, name)[1][4] == "32"  # calls: two a passage
    assert rows(text, "GPT-3.5 Turbo (1106), as printed")[0][1:] == ["46.5", "68.4", "55.2", "61.1"]


def test_short_and_long_passages_have_scores_of_their_own(run, tmp_path: Path):
    def row(name: str, text: str, read: bool) -> dict[str, object]:
        triple = ["Ada Hale", "kept", f"lamp {name}"]
        return {"id": name, "text": text, "triples": [triple], "rebel": [triple] if read else []}

    short = [row(f"s{i}", "Ada Hale kept a lamp.", read=True) for i in range(10)]
    long = [row(f"l{i}", "Ada Hale kept a lamp. " * 9, read=i < 5) for i in range(10)]
    write(tmp_path / "data" / "openie" / "corpus.jsonl.gz", [*long, *short])
    (found, _) = rows(run("hipporag", "--table", "16"), "REBEL")
    assert found[1:] == ["100", "100", "100", "100", "50", "100", "50", "66.7"]
    assert rows(run("hipporag", "--table", "9"), "REBEL")[0][1:] == ["75", "100", "75", "85.7"]


def test_rules_are_held_against_annotated_passages_without_a_language_model(run, tmp_path: Path):
    two_hops(tmp_path / "data" / "openie")
    text = run("hipporag", "--table", "9")
    assert 0 < float(rows(text, "NounPhraseExtractor")[0][4]) <= 100
    assert rows(text, "OpenIEExtractor") == []
