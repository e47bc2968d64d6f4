"""Names of a text without a model, in many scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.hipporag.text.normalization import normalise
from llama_index.hipporag.text.noun_phrases import (
    noun_phrases,
    read_passage,
    read_question,
    shared_heads,
    subject_names,
    terms,
)
from llama_index.ragkit.text import passages
from llama_index.ragkit.text.names import names


def texts(found):
    return [mention.text for mention in found]


def read_text(text, title="", lower_case=False):
    return read_passage(passages.read_passage(text, title), lower_case)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was directed by Keith Gordon.", ["Keith Gordon"]),
        ("The film stars Billy Crudup and Jennifer Connelly.", ["Billy Crudup", "Jennifer Connelly"]),
        ("He met the Duke of Saxe-Eisenach in St. Moritz.", ["Duke of Saxe-Eisenach", "St. Moritz"]),
        ("We saw Apollo 11 and J. R. R. Tolkien there.", ["Apollo 11", "J. R. R. Tolkien"]),
        ("She won at the 2018 Winter Games in 2019.", ["2018 Winter Games"]),
        ("He read “Of Human Bondage” twice.", ["Of Human Bondage"]),
        ("Musicians of the district played.", []),
        ("Guy's widow was rich.", ["Guy"]),
        ("It rained. The king, Lothair II. She left.", ["Lothair II"]),
        ("Þórdís Åkerløv lived on Vinterøy.", ["Þórdís Åkerløv", "Vinterøy"]),
        ("Встреча прошла в Нижнем Новгороде.", ["Нижнем Новгороде"]),
        ("in 1944, 1945 and 1946", []),
        ("It grew between 2022 and June 30.", []),
        ("We met Ross: Oh, Yeah! And I'm fine, Sooo Well.", ["Ross"]),
        ("He said “I have never seen so much of it” of “Of Ships”.", ["Of Ships"]),
        ("1. Ada Hale came. 2. Guy Orde left.", ["Ada Hale", "Guy Orde"]),
        ("She left AT&T. He joined P&G Austria.", ["AT&T", "P&G Austria"]),
        (
            "Marl Head, Inc., and Orde Holdings, LLC, pay; see Art. 12 Abs. 3 and Fig. 3.",
            ["Marl Head", "Orde Holdings"],
        ),
        ("as Orde, A. J., and Hale, E. M., wrote", ["Orde", "Hale"]),
        ("He likes Art Deco, and Art. She wrote to Dr. Hale.", ["Art Deco", "Dr. Hale"]),
        (
            "Hi Ada,\n\nI saw Guy.\n\nDear Mr. Orde,\n\nHello Kitty is a brand.",
            ["Ada", "Guy", "Mr. Orde", "Hello Kitty"],
        ),
        ('[{"keeper": "Ada Hale", "built": 1871}] and "Heat": it burned', ["Ada Hale", "Heat"]),
        ("Habló con la Dra. Ortega, la Sra. Ruiz.", ["Dra. Ortega", "Sra. Ruiz"]),
        ("no name at all", []),
    ],
)
def test_names(text, expected):
    found = texts(names(text))
    assert [name for name in found if " and " not in name and " in " not in name] == expected


def test_where_a_small_word_may_part_two_names_all_readings_are_given():
    assert texts(names("The film is Trainer and Temptress.")) == ["Trainer and Temptress", "Trainer", "Temptress"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ross: Look, it's Ada! Rachel: Hey Monica, I met Ada and I told Joey.", ["Ada", "Monica", "Ada", "Joey"]),
        ("He bowed. 'Nay, Ahti! Just go to Orkney,' said the king. \"Just so,\" said Ian.", ["Ahti", "Orkney", "Ian"]),
        ('"Come in," said the Old Fisher, "Yes, indeed."', ["Old Fisher"]),
        ("Charles I was a king, and so was Elizabeth I of England.", ["Charles I", "Elizabeth I of England"]),
        (
            "The Lease\n\n2 Governing Law\n\n2.1 The Recipient may ask for 2.5 litres.",
            ["Lease", "Governing Law", "Recipient"],
        ),
        ("It runs Python 2.7 Release.", ["Python 2.7 Release"]),
        ("NOTHING SHALL BE DEEMED A WAIVER BY UNICEF.", []),
        ("We read the Privacy Notice This explains, or The Kinks.", ["Privacy Notice", "The Kinks"]),
        ('def f(x):\n    """add dots."""\n    return "%s = [1]"', []),
    ],
)
def test_speech_sections_and_code(text, expected):
    assert texts(names(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was printed by Strake and Sons.", ["Strake and Sons"]),
        ("It was built by Smith and Company in Ulm.", ["Smith and Company in Ulm", "Smith and Company", "Ulm"]),
        ("Sie ist von Vogel und Söhne.", ["Vogel und Söhne"]),
        ("They met Bell and Brothers Grimm.", ["Bell and Brothers Grimm", "Bell", "Brothers Grimm"]),
        ("He read Sons and Lovers.", ["Sons and Lovers", "Sons", "Lovers"]),
    ],
)
def test_a_firm_is_one_name(text, expected):
    assert texts(names(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("东京是日本的首都。", {"东京", "日本", "首都"}),
        ("東京タワーは日本の電波塔です。", {"東京", "タワー", "日本", "電波塔"}),
        ("中华人民共和国的首都是北京。", {"中华人民共和国", "首都", "北京"}),
        ("서울은 한국의 수도이다.", {"서울", "한국", "수도"}),
        ("تقع القاهرة في مصر", {"القاهرة"}),
        ("दिल्ली भारत की राजधानी है", {"दिल्ली भारत", "राजधानी"}),
        ("กรุงเทพมหานคร เป็นเมืองหลวง", {"กรุงเทพมหานคร", "เป็นเมืองหลวง"}),
    ],
)
def test_scripts_without_capitals(text, expected):
    assert expected <= set(texts(noun_phrases(text)))


@given(st.text(max_size=200))
def test_every_mention_stands_where_it_says(text):
    for mention in noun_phrases(text):
        assert text[mention.start : mention.end] == mention.text != ""


@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_can_be_read(text, title):
    read = read_text(text, title)
    keys = [normalise(entity) for entity in read.entities]
    assert all(keys)
    assert len(set(keys)) == len(keys)
    assert {normalise(form) for form in read.subject} <= set(keys)
    assert all(normalise(head) and normalise(tail) for head, _, tail in read.triples)


def test_a_passage_with_its_title():
    read = read_text("Waking the Dead (film)\nWaking the Dead is a drama. It was directed by Keith Gordon.")
    assert read.subject == ["Waking the Dead (film)", "Waking the Dead"]
    assert read.entities == ["Waking the Dead (film)", "Waking the Dead", "Keith Gordon"]
    assert read.triples == [("Waking the Dead (film)", "It was directed by", "Keith Gordon")]


def test_without_a_title_the_first_name_of_a_sentence_is_what_it_is_about():
    read = read_text("In 1833 young Ada Byron met Charles Babbage.")
    assert read.subject == []
    assert read.triples == [("Ada Byron", "met", "Charles Babbage")]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Heat (1995 film)", ["Heat (1995 film)", "Heat"]),
        ("東京（曖昧さ回避）", ["東京（曖昧さ回避）", "東京"]),
        ("Where Does It Hurt?", ["Where Does It Hurt?"]),
        ("", []),
    ],
)
def test_the_names_of_a_subject(title, expected):
    assert subject_names(title) == expected


def test_a_question_gives_its_longest_phrases_once():
    assert read_question("Did Ann Lee of York meet Ann Lee of York or Guy's son?") == ["Ann Lee of York", "Guy"]
    assert read_question("what is this?") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("which war film based on a non-fiction book", ["war film", "non-fiction book"]),
        ("It was used to treat acute lymphocytic leukemia.", ["acute lymphocytic leukemia", "lymphocytic leukemia"]),
        ("by cytosolic p53, once", ["cytosolic p53", "p53"]),
        ("by the English author Mark Haddon", ["English author"]),  # the name is for `names`
        ("Mark Haddon and Ridley Scott", []),
        ("net revenue, cost of sales", ["net revenue"]),  # marks and small words part
        ("one two three four five six seven", ["six seven"]),
        ("in 2023 rose 12 percent", []),
        ("a b c d e f words", ["d e f words", "e f words", "f words"]),  # "a" parts; no more than four
        ("北京大学在北京。", []),
        ("", []),
    ],
)
def test_terms_in_lower_case(text, expected):
    assert texts(terms(text)) == expected


@given(st.text(max_size=200) | st.text("ab Cd3-,'. ", max_size=60))
def test_every_term_stands_where_it_says_and_is_short(text):
    shared = set(shared_heads(text))
    found = [term for term in terms(text) if term not in shared]
    assert len(found) + len(shared) == len(terms(text))
    assert [(term.start, -term.end) for term in found] == sorted({(term.start, -term.end) for term in found})
    for term in found:
        assert text[term.start : term.end] == term.text
        assert 1 <= len(term.text.split()) <= 4
    for term in shared:
        begin, _, head = term.text.rpartition(" ")
        assert text[term.start : term.end] == begin
        assert head in text[term.end :]
        assert 2 <= len(term.text.split()) <= 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("of B and T cells", []),  # a capital may begin a name
        ("helper or killer cells", ["helper cells"]),
        ("the science fiction, crime and historical drama genres", ["science fiction genres", "crime genres"]),
        ("science fiction, crime, and drama genres", ["science fiction genres", "crime genres"]),
        ("research and development expenses, and a house", ["research expenses"]),
        ("cats and wild birds", []),  # a plural stands for itself
        ("land and a house", []),  # one thing of each kind
        ("land, wild horses", []),  # nothing says that the list ends
        ("land and horses", []),  # a head with nothing before it is shared by nobody
        ("glass and grass roofs of oak and pine woods", ["glass roofs", "oak woods"]),
        ("land and grass or pine woods", ["grass woods"]),  # two lists
        ("one two three four and five big dogs", []),  # too long with a head
        ("", []),
    ],
)
def test_terms_that_share_a_head(text, expected):
    assert texts(shared_heads(text)) == expected
    assert set(expected) <= set(texts(terms(text)))


def test_terms_are_entities_without_facts_where_they_are_asked_for():
    text = "Leukemia\nChlorambucil is known for cytosolic p53 in the United States."
    with_terms, without = read_text(text, lower_case=True), read_text(text)
    assert set(with_terms.entities) - set(without.entities) == {"cytosolic p53", "p53"}
    assert with_terms.triples == without.triples
    assert with_terms.subject == without.subject == ["Leukemia"]
