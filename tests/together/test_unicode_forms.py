"""The same text in other forms of Unicode gives the same index and the same answers, in every method."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import Document
from tests.cases import CASES, Case, HashHeads, retriever

from llama_index.ragkit.text.characters import normalise, without_unprinted
from llama_index.ragkit.text.known_names import mentions, names_part
from llama_index.ragkit.text.lexical_index import lexical_terms
from llama_index.ragkit.text.names import names

FORMAT = "\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u2068\u2069"
LATIN = ["Jose", "José", "Muñoz", "Nguyễn", "Bình", "Çelik", "Öztürk", "Říčany", "Lyon", "of", "the"]
WORDS = [*LATIN, "한강대교", "서울", "Громов", "Йошкар", "Дунай", "العربية", "שלום", "हिन्दी", "Αθήνα"]
TEXTS = {
    "a": "José Muñoz built the bridge of Říčany for Antonín Dvořák.",
    "b": "Nguyễn Văn Bình taught José Muñoz in Çelik Öztürk.",
    "c": "Ольга Ковальчук родилась в городе Дунай. Позже Громов писал о ней.",
    "d": "Громов жил в городе Вена. 한강대교는 서울에 있다.",
    "e": "The market of Dunmoor is held on Fridays.",
}
QUESTIONS = ("Who taught the builder of the bridge of Říčany?", "Что писал Громов об Ольге Ковальчук?", "한강대교")


def with_format(text: str) -> str:
    """Format characters within words and around them."""
    return "\ufeff" + "".join(f"{letter}\u200d" if i % 3 else f"\u2068{letter}\u2069" for i, letter in enumerate(text))


def with_stress(text: str) -> str:
    for plain, stressed in (("Ковальчук", "Ковальчу\u0301к"), ("Громов", "Гро\u0301мов"), ("Ольга", "О\u0301льга")):
        text = text.replace(plain, stressed)
    return text


FORMS: dict[str, Callable[[str], str]] = {
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFKD": lambda text: unicodedata.normalize("NFKD", text),
    "format": with_format,
    "format-NFD": lambda text: with_format(unicodedata.normalize("NFD", text)),
    "stress": with_stress,
}
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(text=texts, data=st.data())
def test_terms_names_and_mentions_are_those_of_the_composed_text(text: str, data: st.DataObject) -> None:
    other = unicodedata.normalize(data.draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])), text)
    places = sorted(data.draw(st.sets(st.integers(0, len(other)), max_size=5)), reverse=True)
    for place in places:
        other = other[:place] + data.draw(st.sampled_from(FORMAT)) + other[place:]
    known = {normalise(word) for word in WORDS}
    assert without_unprinted(other) == text
    assert normalise(other) == normalise(text)
    assert lexical_terms(other) == lexical_terms(text)
    assert [n.text for n in names(without_unprinted(other))] == [n.text for n in names(text)]
    assert mentions(names_part(other), known) == mentions(text, known)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ковальчук", "Ковальчу\u0301к"),
        ("שלום", "שָׁלוֹם"),
        ("محمد", "مُحَمَّد"),
        ("محمد", "محـــمد"),
        ("کتابی", "كتابي"),
        ("می\u200cخواهم", "میخواهم"),
    ],
)
def test_marks_that_may_be_left_out_and_letters_of_two_alphabets_are_one_word(one: str, other: str) -> None:
    assert lexical_terms(one) == lexical_terms(other)


def test_marks_that_tell_letters_apart_stay() -> None:
    distinct = ["é e", "й и", "ё е", "ñ n", "が か", "ä a", "ạ a", "ά α"]
    assert all(len(lexical_terms(pair)) == 2 for pair in distinct)


def test_a_letter_without_a_composed_form_keeps_its_mark() -> None:
    assert [n.text for n in names("The chief Ọ\u0301lanrewaju Adé\u0323bayo\u0300 came.")] == [
        "Ọ\u0301lanrewaju Adé\u0323bayo\u0300"
    ]


class Bare(HashHeads):
    """Knows no marks, so that only what the index does with text is tested."""

    def vector(self, text: str) -> list[float]:
        parts = unicodedata.normalize("NFKD", text)
        return super().vector("".join(c for c in parts if unicodedata.category(c) not in ("Mn", "Cf")))


def build(case: Case, form: Callable[[str], str]) -> Callable[[str], list[tuple[str, float]]]:
    documents = [Document(text=form(text), id_=name) for name, text in TEXTS.items()]
    index = case.from_documents(documents, embed_model=Bare())

    def ask(question: str) -> list[tuple[str, float]]:
        found = retriever(index, similarity_top_k=5).retrieve(form(question))
        return [(each.node.ref_doc_id or "", round(each.get_score(), 6)) for each in found]

    return ask


@pytest.mark.parametrize("case", [case for case in CASES if case.name != "toy"], ids=lambda case: case.name)
def test_an_index_of_another_form_answers_alike(case: Case) -> None:
    plain = build(case, str)
    wanted = [sorted(plain(question)) for question in QUESTIONS]
    assert all(wanted)
    for name, form in FORMS.items():
        ask = build(case, form)
        assert [sorted(ask(question)) for question in QUESTIONS] == wanted, name
