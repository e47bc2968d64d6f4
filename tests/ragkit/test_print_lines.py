"""What a browser prints around a page."""

import pytest

from llama_index.ragkit.text.passages import read_passage, without_print_lines

TEXT = "The lamp burned whale oil.\nAda Hale lit it at dusk."

PRINTED = {
    "Chromium, as pypdf reads it": f"{TEXT}\n11/22/26, 9:59 PM The lamp - Coast history\n\ufb01le:///ada/lamp.html 1/3",
    "Chromium, as it is seen": f"11/22/26, 9:59 PM    The lamp - Coast\n\n{TEXT}\n\nhttps://coast.example/a?b=1 12/12",
    "Firefox": f"The lamp - Coast history    https://coast.example/lamp\n{TEXT}\n1 of 3    22/11/2026, 21:59",
    "Chromium in German, without a title": f"22.11.26, 21:59\n{TEXT}\nhttps://coast.example/lamp 1 von 3",
    "without a title": f"{TEXT}\n2026-11-22 21:59\nabout:blank 2/3",
    "two pages in one text": "\n".join(
        f"{line}\n11/22/26, 9:59 PM The lamp\nhttps://coast.example/lamp {i}/2"
        for i, line in enumerate(TEXT.split("\n"), 1)
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_headers_and_footers_are_left_out_even_of_a_single_page(name):
    assert without_print_lines(PRINTED[name]).strip() == TEXT
    assert read_passage(PRINTED[name]).body.split() == TEXT.split()


KEPT = {
    "a chat": "11/22/26, 9:59 PM - Ada: The lamp is lit.\n11/22/26, 10:02 PM - Ben: I see it.",
    "a log that ends with a link": "2026-11-22 21:59:01 started\n2026-11-22 21:59:02 see\nhttps://coast.example/lamp",
    "a reference": "The lamp, see\nhttps://coast.example/lamp\n1/3 of the oil was left.",
    "a fraction": "He drank 1/3 of it on 11/22/26, 9:59 PM.",
    "nothing else": "11/22/26, 9:59 PM The lamp\nhttps://coast.example/lamp 1/3",
}


@pytest.mark.parametrize("name", KEPT)
def test_dates_addresses_and_fractions_of_a_text_stay(name):
    assert without_print_lines(KEPT[name]) == KEPT[name]


def test_a_message_far_from_the_footer_stays():
    text = "\n".join(["A chat", KEPT["a chat"], "The end.", "https://coast.example/lamp 1/3"])
    assert KEPT["a chat"] in without_print_lines(text)
