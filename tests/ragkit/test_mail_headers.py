"""The headers of mails."""

import pytest

from llama_index.ragkit.text.passages import read_passage, without_mail_headers

BODY = "Dear Ben,\n\nthe lens from Strake and Sons arrived on Friday."

HEADERS = {
    "as it is sent": "From: Ann Hale <ann@coast.example>\nTo: ben@coast.example\nDate: Fri, 1 Mar 2024 10:00:00 +0100\n"
    "Subject: Re: The lens",
    "with folded lines": "Received: from mail.coast.example\n\tby mx.coast.example; Fri, 1 Mar 2024\n"
    "From: ann@coast.example\nX-Mailer: Lamp 3\nSubject: The lens",
    "in German": "Von: Ann Hale\nGesendet: Freitag, 1. März 2024 10:00\nAn: Ben Thorne\nBetreff: AW: The lens",
    "in Chinese": "发件人：Ann Hale\n收件人：Ben Thorne\n主题：回复：The lens",
}


@pytest.mark.parametrize("name", HEADERS)
def test_of_a_header_the_subject_remains(name):
    text = f"{HEADERS[name]}\n\n{BODY}"
    assert without_mail_headers(text) == f"The lens\n\n{BODY}"
    passage = read_passage(text)
    assert passage.title == "The lens"
    assert "coast.example" not in passage.body


@pytest.mark.parametrize("above", ["", "-----Original Message-----\n", "> "])
def test_the_header_of_a_quoted_mail_too(above):
    quoted = f"{above}From: Ann Hale\n{'> ' if above == '> ' else ''}Subject: Re: Fwd: The lens\n\nIt came."
    text = without_mail_headers(f"It is here.\n\n{quoted}")
    assert "From" not in text
    assert "The lens" in text
    assert "Fwd" not in text


def test_a_subject_keeps_its_signs():
    text = "From: ann@coast.example\nSubject: Oil > 3 tons\n\nIt came."
    assert without_mail_headers(text) == "Oil > 3 tons\n\nIt came."


KEPT = {
    "a timetable": "From: Rome\nTo: Ostia\nDate: 3 May\n\nThe boat leaves at noon.",
    "a talk": "From: the beginning.\nAda: It was dark.",
    "one line": "Subject: the lens of the lamp.\n\nIt burned oil.",
    "within a paragraph": "He wrote:\nFrom: ann@coast.example\nSubject: The lens",
    "nothing else": "From: ann@coast.example\nSubject: The lens",
}


@pytest.mark.parametrize("name", KEPT)
def test_other_lines_with_a_colon_stay(name):
    assert without_mail_headers(KEPT[name]) == KEPT[name]
