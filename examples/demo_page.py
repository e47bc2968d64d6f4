"""The page that links the views of the demo: one card per method and a table of results."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Card", "write_front_page"]

STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #5c6678; --card: #f6f8fa; --best: #e4efe4; --link: #2c5d8f; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a4250; --soft: #a2abba; --card: #1d222b; --best: #24402a; --link: #8fb8e8; }
  body { background: #14181f; color: #e6e9ee; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
p.soft, td.soft { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.2rem; }
.card h3 { margin: 0 0 .3rem; font-size: 1.05rem; } .card p { margin: .4rem 0; }
.card q { font-style: italic; } a { color: var(--link); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
td, th { padding: .35rem .7rem; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.best { background: var(--best); font-weight: 600; }
.wide { overflow-x: auto; }
@media (max-width: 600px) { body { padding: 0 1rem; } td, th { padding: .35rem .3rem; } }
"""


@dataclass(frozen=True)
class Card:
    """A method on the front page."""

    title: str
    what: str
    question: str
    answer: str
    sources: Sequence[str]
    page: str
    facts: str


def write_front_page(
    path: Path, about: str, cards: Sequence[Card], table: Mapping[str, Mapping[str, float]], caption: str, advice: str
) -> Path:
    """Write `index.html`.

    Parameters
    ----------
    about : what was indexed, in one line
    cards : one per method
    table : figures by row and column, all in [0, 1], higher is better; empty for no table
    caption : description of the figures
    advice : what to conclude from them, below the table
    """
    parts = [
        f"<h1>{len(cards)} retrieval methods on one corpus</h1><p class=soft>{_(about)}</p>",
        f"<div class=cards>{''.join(map(_card, cards))}</div>",
    ]
    if table:
        parts.append(f"<h2>Comparison</h2><p class=soft>{_(caption)}</p>{_table(table)}<p>{_(advice)}</p>")
    page = (
        '<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Demo</title><style>{STYLE}</style><body>{''.join(parts)}</body></html>"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _(text: str) -> str:
    return html.escape(text)


def _card(card: Card) -> str:
    sources = f"<p class=soft>From: {_(', '.join(card.sources))}</p>" if card.sources else ""
    return (
        f"<div class=card><h3><a href='{_(card.page)}'>{_(card.title)}</a></h3><p>{_(card.what)}</p>"
        f"<p><q>{_(card.question)}</q></p><p>{_(card.answer)}</p>{sources}<p class=soft>{_(card.facts)}</p></div>"
    )


def _table(table: Mapping[str, Mapping[str, float]]) -> str:
    columns = list(next(iter(table.values())))
    # Equal as they are read: two decimals.
    best = {column: f"{max(row[column] for row in table.values()):.2f}" for column in columns}
    head = "<th>retriever</th>" + "".join(f"<th class=number>{_(column)}</th>" for column in columns)
    rows = []
    for name, row in table.items():
        cells = "".join(
            f"<td class='number{' best' if f'{row[column]:.2f}' == best[column] else ''}'>{row[column]:.2f}</td>"
            for column in columns
        )
        rows.append(f"<tr><td>{_(name)}</td>{cells}</tr>")
    return f"<div class=wide><table><tr>{head}</tr>{''.join(rows)}</table></div>"
