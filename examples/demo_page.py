"""The front page of the demo: what each method is for, what it found beside plain search, and the table."""

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Answer", "Card", "Passage", "front_page"]

STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #5c6678; --card: #f6f8fa; --good: #dcefdc; --link: #2c5d8f; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a4250; --soft: #a2abba; --card: #1d222b; --good: #234129; --link: #8fb8e8; }
  body { background: #14181f; color: #e6e9ee; }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
h3 { margin: 0 0 .3rem; font-size: 1.05rem; } h4 { font-size: .875rem; margin: 0 0 .4rem; } p { margin: .4rem 0; }
.soft { color: var(--soft); font-size: .9rem; } a { color: var(--link); }
.cards { display: grid; gap: 1rem; grid-auto-rows: 1fr;
  grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.2rem;
  display: flex; flex-direction: column; }
.card img { aspect-ratio: 8 / 5; border: 1px solid var(--line); border-radius: .4rem; display: block; width: 100%; }
.card .last { margin-top: auto; padding-top: .6rem; }
.share { background: var(--line); border-radius: .25rem; display: flex; height: .5rem; margin: .5rem 0;
  overflow: hidden; }
.share .won { background: #4e9a51; } .share .lost { background: #c65b52; margin-left: auto; }
.asked { border-top: 1px solid var(--line); padding: .7rem 0; } summary { cursor: pointer; font-weight: 600; }
.sides { display: grid; gap: 1rem; margin-top: .6rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
ol { margin: 0; padding: 0; list-style: none; }
li { border: 1px solid var(--line); border-radius: .4rem; margin-bottom: .4rem; padding: .35rem .6rem;
  overflow-wrap: anywhere; }
li.hit { background: var(--good); } li p { font-size: .84rem; margin: .1rem 0 0; } li b { font-size: .9rem; }
mark { background: #f5d76e; color: #222; border-radius: .2rem; padding: 0 .1rem; }
svg.chart { display: block; max-width: 46rem; width: 100%; margin: 1rem auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: right; vertical-align: bottom; }
td { font-variant-numeric: tabular-nums; } td.best { background: var(--good); font-weight: 600; }
th:first-child { text-align: left; position: sticky; left: 0; background: Canvas; } .wide { overflow-x: auto; }
@media (prefers-color-scheme: dark) { th:first-child { background: #14181f; } }
@media (max-width: 600px) { body { margin: 1rem auto; padding: 0 1rem; } }
"""
BAR = (
    "The bar of a method: green, the questions for which it finds more than the best of plain search; red, less; grey, "
    "as much."
)


@dataclass(frozen=True)
class Passage:
    """A passage that was found: the name of its text, its beginning, and whether the question needs that text."""

    name: str
    text: str
    is_hit: bool


@dataclass(frozen=True)
class Answer:
    """A question, what is known of its answer, and what plain search and the method found."""

    question: str
    expected: str
    needed: Sequence[str]
    plain: Sequence[Passage]
    found: Sequence[Passage]


@dataclass(frozen=True)
class Card:
    """A method on the front page.

    Attributes
    ----------
    what : the method in one sentence
    kind : its kind of question, in words
    page : the file that shows the index
    picture : of that page, as WebP; None for none
    verdict : what the questions of its kind say
    plain : the name of the plain search that it is compared with
    won, lost, asked : in how many questions it found more and less than that, and of how many
    answers : the questions that are shown
    """

    title: str
    what: str
    kind: str
    page: str
    picture: bytes | None
    plain: str
    verdict: str
    won: int
    lost: int
    asked: int
    answers: Sequence[Answer]


def front_page(
    about: str,
    note: str,
    cards: Sequence[Card],
    heading: str,
    chart: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
    choice: str,
) -> str:
    """The page; it needs no script and no network.

    Parameters
    ----------
    about, note : what was indexed and asked, and how to read it
    heading, chart : an SVG with its heading; empty for none
    head, rows : of the table; the best of a column of figures is marked
    caption : what the figures are
    choice : how the questions that are shown were chosen
    """
    parts = [
        f"<h1>{len(cards)} retrieval methods on one corpus</h1><p class=soft>{_(about)}</p>",
        f"<p>{_(note)}</p>" if note else "",
        f"<p class=soft>{_(BAR)}</p>" if any(card.asked for card in cards) else "",
        f"<div class=cards>{''.join(map(_card, cards))}</div>",
        f"<h2>{_(heading)}, with 95 % intervals</h2>{chart}" if chart else "",
        f"<h2>All systems</h2>{_table(head, rows)}<p class=soft>{_(caption)}</p>",
        f"<h2>Found by plain search, found by the method</h2><p class=soft>{_(choice)}</p>",
        *map(_answers, cards),
    ]
    return (
        "<!doctype html><html lang=en data-ready=true><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        "<meta http-equiv=Content-Security-Policy "
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        f"<link rel=icon href='data:,'><title>Demo</title><style>{STYLE}</style><body>{''.join(parts)}</body></html>"
    )


def _(text: str) -> str:
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def _card(card: Card) -> str:
    bar = ""
    if card.asked:
        bar = (
            f"<div class=share title='{card.won} won, {card.lost} lost, of {card.asked}'>"
            f"<span class=won style='width:{100 * card.won / card.asked:.0f}%'></span>"
            f"<span class=lost style='width:{100 * card.lost / card.asked:.0f}%'></span></div>"
        )
    name = _(card.page.removesuffix(".html"))
    picture = ""
    if card.picture is not None:
        data = base64.b64encode(card.picture).decode("ascii")
        picture = f"<a href='{_(card.page)}'><img alt='Its index' src='data:image/webp;base64,{data}'></a>"
    return (
        f"<section class=card><h3>{_(card.title)}</h3>{picture}<p>{_(card.what)}</p>"
        f"<p class=soft>For {_(card.kind)}</p>{bar}<p>{_(card.verdict)}</p>"
        f"<p class=last><a href='{_(card.page)}'>Its index</a> · <a href='#{name}'>What it found</a></p></section>"
    )


def _answers(card: Card) -> str:
    asked = "".join(_answer(answer, card.plain, place == 0) for place, answer in enumerate(card.answers))
    name = _(card.page.removesuffix(".html"))
    return f"<section id='{name}'><h2>{_(card.title)}</h2><p class=soft>{_(card.verdict)}</p>{asked}</section>"


def _answer(answer: Answer, plain: str, is_open: bool) -> str:
    known = f"<p class=soft>Expected: <mark>{_(answer.expected)}</mark></p>" if answer.expected else ""
    needed = f"<p class=soft>Needs: {_(', '.join(answer.needed))}</p>" if answer.needed else ""
    sides = "".join(
        f"<div><h4>{title}{_count(passages, answer.needed)}</h4>"
        f"<ol>{''.join(_passage(passage, answer.expected) for passage in passages)}</ol></div>"
        for title, passages in ((f"Plain search ({_(plain)})", answer.plain), ("The method", answer.found))
    )
    state = " open" if is_open else ""
    head = f"<summary>{_(answer.question)}</summary>"
    return f"<details class=asked{state}>{head}{known}{needed}<div class=sides>{sides}</div></details>"


def _count(passages: Sequence[Passage], needed: Sequence[str]) -> str:
    hits = len({passage.name for passage in passages if passage.is_hit})
    return f": {hits} of {len(needed)}" if needed else ""


def _passage(passage: Passage, expected: str) -> str:
    mark, said = (" class=hit", " ✓") if passage.is_hit else ("", "")
    text = _(passage.text)
    place = text.casefold().find(_(expected).casefold()) if expected and passage.is_hit else -1
    if place >= 0:
        end = place + len(_(expected))
        text = f"{text[:place]}<mark>{text[place:end]}</mark>{text[end:]}"
    return f"<li{mark}><b>{_(passage.name)}{said}</b><p>{text}</p></li>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    # Equal as they are read.
    best: Mapping[int, str] = {i: max(row[i] for row in rows) for i in range(1, len(head)) if _is_share(rows, i)}
    columns = "".join(f"<th scope=col>{_(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th scope=row>{_(row[0])}</th>"
        + "".join(
            f"<td{' class=best' if best.get(i) == cell else ''}>{_(cell)}</td>" for i, cell in enumerate(row) if i
        )
        + "</tr>"
        for row in rows
    )
    return f"<div class=wide><table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"


def _is_share(rows: Sequence[Sequence[str]], column: int) -> bool:
    return all(row[column][:2] in ("0.", "1.") for row in rows)
