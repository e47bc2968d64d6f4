"""Names looked up in a database are those that `KnownNames` finds among all of them."""

import re
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from llama_index.ragkit.sql import reading
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.sql.names import candidates, name_edges
from llama_index.ragkit.storage.graph.edges import EdgeChange, content_number
from llama_index.ragkit.text.characters import UNSPACED, normalise
from llama_index.ragkit.text.known_names import MOST_PHRASES, KnownNames, lookups
from llama_index.ragkit.text.stems import all_stems, language_bit, stems

NAMES = [
    "physiker max planck", "max planck institut", "москва", "города москвы", "paris", "new york city", "the who",
    "university of göttingen", "albert einstein", "einsteins", "서울", "서울 대학교", "東京", "東京大学",
    "北京大学医学院",
    "مدينة القاهرة", "القاهرة", "ירושלים", "עיר הקודש ירושלים", "दिल्ली", "नई दिल्ली विश्वविद्यालय",
    "maxwell shane", "the glass wall", "glass walls",
]  # fmt: skip
QUESTIONS = [
    "Wo wurde Max Planck geboren?", "Wo wohnte Planck?", "Who was Max?", "Что стоит в Москве?",
    "is paris in new york?", "Did The Who play in Göttingen?", "Was sind Einsteins Bücher?", "서울은 어디인가?",
    "서울대학교는 어디에 있습니까?", "東京大学はどこにありますか?", "北京大学在哪里?", "أين تقع القاهرة؟",
    "איפה ירושלים?",
    "दिल्ली कहाँ है?", "Who directed Maxwell Shane's film The Glass Wall?", "who broke glass walls?", "", "?!",
]  # fmt: skip


@pytest.fixture
def graph(engine: Engine) -> SQLGraphRows:
    rows = SQLGraphRows(engine, "one")
    rows.create()
    return rows


def store(graph, names, count=1):
    edges = [edge for name in names for edge in name_edges(name, content_number(0, name), count)]
    graph.change(EdgeChange.of(edges), {})


def found(known, question, names, **options):
    return [
        (name.start, name.end, {names[row] for row in name.rows}, name.lower_case)
        for name in known.find(question, **options)
    ]


def looked_up(graph, question, names, seen=None):
    """What is found among the candidates, as :func:`found` has it."""
    of = {content_number(0, name): name for name in names}
    calls = []
    with graph.reader() as reader:
        counted = SimpleNamespace(fetch=lambda *asked: calls.append(1) or reader.fetch(*asked))
        given = candidates(counted, lookups(question), seen is not None)
    assert len(calls) == 2
    chosen = [of[node] for node in given.nodes.tolist()]
    allowed = {} if seen is None else {"seen": lambda row: chosen[row] in seen}
    return found(KnownNames(chosen), question, chosen, unspecific=given.unspecific, **allowed)


def test_names_in_all_scripts(graph):
    store(graph, NAMES)
    known, hits = KnownNames(NAMES), 0
    for question in QUESTIONS:
        wanted = found(known, question, NAMES)
        assert looked_up(graph, question, NAMES) == wanted, question
        hits += len(wanted)
    assert hits >= 18


WORDS = st.sampled_from(
    ["max", "planck", "plancks", "york", "new", "of", "the", "москва", "москве", "東", "京", "東京", "서울", "서울은",
     "القاهرة", "בית", "दिल्ली", "x1", "b", "walls", "wall", "é", "stadt", "städte"]
)  # fmt: skip


def of_one_kind(name: str) -> bool:
    """Whether all of a name is in scripts with spaces, or all of it in scripts without."""
    return not re.search(f"[{UNSPACED}]", name) or not re.search(f"[^\\s{UNSPACED}]", name)


SOME_NAMES = st.lists(
    st.lists(WORDS, min_size=1, max_size=6).map(" ".join).map(normalise).filter(of_one_kind), max_size=12, unique=True
)


@given(SOME_NAMES, st.lists(st.tuples(WORDS, st.booleans()), max_size=9), st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_names_in_random_questions(graph, names, words, data):
    graph.drop()
    store(graph, names)
    question = " ".join(word.title() if is_capital else word for word, is_capital in words)
    known = KnownNames(names)
    assert looked_up(graph, question, names) == found(known, question, names)
    seen = set(data.draw(st.lists(st.sampled_from(names)))) if names else set()
    wanted = found(known, question, names, seen=lambda row: names[row] in seen)
    assert looked_up(graph, question, names, seen) == wanted


@given(
    st.lists(st.text("aB Яя東", max_size=8).map(normalise).filter(bool).filter(of_one_kind), max_size=6, unique=True),
    st.text("aB Яя東?"),
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_characters(graph, names, question):
    graph.drop()
    store(graph, names)
    assert looked_up(graph, question, names) == found(KnownNames(names), question, names)


def test_a_part_of_many_names_is_not_specific(graph):
    many = [f"john {chr(97 + i)}{chr(97 + j)}x" for i in range(8) for j in range(8)]
    few = ["anna smith", "anna jones"]
    assert len(many) > MOST_PHRASES
    store(graph, [*many, *few])
    names = [*many, *few]
    for question in ("Where did John meet John Aax?", "Where did Anna live?"):
        assert looked_up(graph, question, names) == found(KnownNames(names), question, names)
    seen = {*many[:5], *few}
    wanted = found(KnownNames(names), "Where did John live?", names, seen=lambda row: names[row] in seen)
    assert looked_up(graph, "Where did John live?", names, seen) == wanted
    assert wanted


def test_names_leave_nothing_behind(graph, engine):
    store(graph, NAMES[:3])
    with reading(engine, single=True) as connection:
        before = connection.execute(text("SELECT * FROM ragkit_graph_rows ORDER BY node")).all()
    store(graph, NAMES[3:])
    store(graph, NAMES[3:], -1)
    with reading(engine, single=True) as connection:
        assert connection.execute(text("SELECT * FROM ragkit_graph_rows ORDER BY node")).all() == before
    assert len(before) > 10


@given(st.text(max_size=12).map(normalise).filter(lambda text: text and " " not in text))
def test_stems_carry_their_languages(word):
    by_stem = all_stems(word)
    for language in ("en", "de", "ru", "uk", "ar", "hi", "zh", "ko", "pl"):
        (stem,) = stems([word], language)
        assert by_stem[stem] & language_bit(word, language)
        assert not any(mask & language_bit(word, language) for other, mask in by_stem.items() if other != stem)


def test_lookups_hold_whatever_is_found():
    for question in QUESTIONS:
        asked = lookups(question)
        part = {text for text, _ in asked.parts}
        for name in KnownNames(NAMES).find(question):
            assert normalise(question[name.start : name.end]) in {*asked.phrases, *part}
