"""Sentence splitting: what must be cut, what must not, and that nothing is lost."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llama_index.ragkit.text.sentences import language_of, sentence_spans, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("今天天气很好。我们去公园吧！你来吗？", ["今天天气很好。", "我们去公园吧！", "你来吗？"]),
        ("これはペンです。すごい！", ["これはペンです。", "すごい！"]),
        ("이것은 문장입니다. 네!", ["이것은 문장입니다.", "네!"]),
        ("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("هذه جملة. هل أنت بخير؟ نعم!", ["هذه جملة.", "هل أنت بخير؟", "نعم!"]),
        ("Սա առաջինն է։ Սա երկրորդն է։", ["Սա առաջինն է։", "Սա երկրորդն է։"]),
        ("ይህ አንድ ነው። ይህ ሁለት ነው።", ["ይህ አንድ ነው።", "ይህ ሁለት ነው።"]),
        ("Τι κάνεις; Είμαι καλά.", ["Τι κάνεις;", "Είμαι καλά."]),
        ("នេះជាប្រយោគ។ នេះជាប្រយោគទីពីរ។", ["នេះជាប្រយោគ។", "នេះជាប្រយោគទីពីរ។"]),
        ("བོད་ཡིག་རེད། དེ་ཡག་པོ་རེད།", ["བོད་ཡིག་རེད།", "དེ་ཡག་པོ་རེད།"]),
        ("วันนี้อากาศดี เราไปเที่ยว", ["วันนี้อากาศดี", "เราไปเที่ยว"]),
        ("The sign said 很好。走吧！ Then he left.", ["The sign said 很好。", "走吧！", "Then he left."]),
        ("灯塔高三十米。1937年起火！“好。”2004年重建。", ["灯塔高三十米。", "1937年起火！", "“好。”", "2004年重建。"]),
        ("他说：“灯塔建成。1937年起火。”", ["他说：“灯塔建成。1937年起火。”"]),
        ("Er kam 1931. Mai war kalt.", ["Er kam 1931.", "Mai war kalt."]),
    ],
)
def test_every_script_is_cut_at_its_marks(text, sentences):
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith met Mr. Jones at 3.14 p.m. on Jan. 5.",
        "They paid $2.50, i.e. too much, for 1,000.50 of it.",
        "J. R. R. Tolkien, e.g., wrote v. 2.0.1 of it.",
        "See https://example.com/a.b?c=1.5 or 192.168.1.1 now.",
        "Он жил в г. Москве в 1990 г. и работал.",
        "А. С. Пушкин писал стихи.",
        "Э. Хемингуэй, Е. Шварц и др., т.е. Иванов, писали стихи.",
        "É. Zola met Ö. Bilgin and Κ. Π. Καβάφης of Marconi Gmb., a firm.",
        "价格为3.14元。",
        "U.S. officials agreed.",
        "a line that is\nwrapped in the middle.",
        "Our lawyer, Ms. Ferreira, wrote approx. 40 of them for Wm. Moffat.",
        "See Eqs. (4) and (5) in Vol. Three.",
        "J.-P. Martin met the non-U.S. governments and non-U.S. Companies.",
        "Am 1. Januar und 3. April 1904 bzw. im 18. und 19. Jahrhundert, vgl. Abs. 3 und Nr. 4.",
        "La Sra. Ortega pagó aprox. 3 euros.",
        "เร็วๆ นี้",  # the repetition sign takes a space within its sentence
    ],
)
def test_abbreviations_decimals_and_wrapped_lines_are_not_cut(sentence):
    assert split_sentences(sentence) == [sentence]


def test_the_language_can_be_told():
    text = "Am 3. Oktober kam z. B. Dr. Maier. Er ging."
    assert split_sentences(text, language="de") == ["Am 3. Oktober kam z. B. Dr. Maier.", "Er ging."]


def test_blank_lines_list_items_and_headings_end_a_sentence():
    text = "# A heading\nThe first\n\nThe second. And\n- one\n- two"
    assert split_sentences(text) == ["# A heading", "The first", "The second.", "And", "- one", "- two"]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t", "\u3000", "\u2028\u00a0"])
def test_no_text_no_sentences(text):
    assert split_sentences(text) == []


def test_text_without_any_mark_is_one_sentence():
    assert split_sentences("  no end here ") == ["no end here"]


# What the library below cannot read as it is (spaces of more than one byte after an initial, lone surrogates)
# and what rules are made of.
PIECES = [
    "A.",
    "Dr.",
    "z. B.",
    "1.",
    "3.14",
    ".",
    "?",
    "。",
    "”",
    "“",
    '"',
    "(",
    ")",
    "「",
    "」",
    "•",
    "- ",
    "# ",
    "a",
    "B",
]
SPACES = [" ", "\n", "\n\n", "\u00a0", "\u3000", "\u0085", "\u2028", "\u202f", "\r\n", "\t"]
SCRIPTS = ["и", "г.", "中", "ก", "ๆ", "།", "។", "ا", "؟", "한", "e\u0301", "😀", "\ud800", "\u200b", "\ufeff"]
TEXTS = st.lists(st.sampled_from(PIECES + SPACES + SCRIPTS), max_size=25).map("".join)


@given(TEXTS | st.text())
@example("A.\u00a0B")
@example("A.\u0085B")
@example("a\ud800b. c")
def test_spans_cover_all_but_white_space_in_order(text):
    spans = sentence_spans(text)
    rest, end = [], 0
    for start, stop in spans:
        assert end <= start < stop
        assert text[start:stop] == text[start:stop].strip()
        rest.append(text[end:start])
        end = stop
    assert not "".join([*rest, text[end:]]).strip()


@given(st.lists(st.sampled_from(["Tea is hot.", "Rice is white!", "Is salt dear?"]), min_size=1, max_size=6))
def test_sentences_put_together_come_apart_again(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


def test_a_long_text_is_cut_throughout():
    sentences = split_sentences("The tea is hot. " * 20_000)
    assert len(sentences) == 20_000
    assert all(re.fullmatch(r"The tea is hot\.", sentence) for sentence in sentences)


@pytest.mark.parametrize("length", [1, 30, 300, 3_000])
def test_a_paragraph_that_is_read_in_windows_is_cut_as_a_short_one(length):
    """The windows end within sentences, and most sentences stand there more than once."""
    sentences = [f"The lamp of Mr. {'x' * (number % length)} Hale burned." for number in range(30_000 // length)]
    text = " ".join(sentences)
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The tower.", "en"),
        ("Башня стоит.", "ru"),
        ("塔がある。", "ja"),
        ("塔在这里。", "zh"),
        ("", "en"),
        ("12.5 %", "en"),
    ],
)
def test_the_script_tells_the_language(text, language):
    assert language_of(text) == language
