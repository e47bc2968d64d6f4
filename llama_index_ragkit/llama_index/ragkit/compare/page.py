"""The page of a comparison: a table, the recommendation, and for each question the answers side by side.

It holds no script and asks for nothing; every text is escaped, and a content security policy forbids the rest.
"""

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Cell", "QuestionOnPage", "comparison_page"]

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --good: #2e7d3233; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1400px; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .45rem; text-align: right; white-space: nowrap; }
th:first-child { background: Canvas; left: 0; position: sticky; text-align: left; }
td { font-variant-numeric: tabular-nums; } thead th { vertical-align: bottom; white-space: normal; }
.chosen th, .chosen td { background: color-mix(in srgb, #4e79a7 20%, Canvas); }
.advice { border-left: 4px solid #4e79a7; background: var(--soft); padding: .75rem 1rem; }
details { border-top: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; font-weight: 600; } summary .note { font-weight: 400; white-space: nowrap; }
.answers { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); }
.answers h3 { font-size: 1rem; margin: .75rem 0 .25rem; }
ol { margin: 0; padding-left: 1.5rem; }
li { margin-bottom: .5rem; overflow-wrap: anywhere; padding: .25rem .5rem; }
li.right { background: var(--good); } .doc { font-weight: 600; } .text { font-size: .875rem; }
.note { color: color-mix(in srgb, currentColor 70%, transparent); font-size: .875rem; }
"""
_SHOWN = 280  # characters of a passage


class Cell(NamedTuple):
    """A passage of an answer: its document, its text, and whether the question is known to be answered there."""

    document: str
    text: str
    is_right: bool


class QuestionOnPage(NamedTuple):
    """A question of the page."""

    question: str
    wanted: Sequence[str]  # names of the documents that answer it, if they are known
    answers: Sequence[str]  # the correct ones, if they are known
    found: Mapping[str, Sequence[Cell]]  # what each system found
    said: Mapping[str, str]  # what the LLM answered from the context of each system, if it was asked


def comparison_page(
    source: str,
    chosen: str,
    advice: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    heading: str,
    shown: Sequence[QuestionOnPage],
) -> str:
    """The HTML file: where the questions come from, the system that is recommended and why, the table, and under a
    heading what was found for each question.
    """
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    columns = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in head)
    body = "".join(_row(row, row[0] == chosen) for row in rows)
    asked = "\n".join(_answers(i, each) for i, each in enumerate(shown))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Comparison of retrieval methods</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>Comparison of retrieval methods</h1>
<p class="advice"><strong>Recommended: {_text(chosen)}.</strong> {_text(advice)}</p>
<p>{_text(source)}</p>
<div class="wide"><table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>
<p class="note">dense, BM25 and hybrid (both together) are plain search over the same chunks. Brackets are 95 %
bootstrap intervals. "Shared with hybrid" is the share of the passages of both that both found. The time of a
question does not include embedding it, except for its aspects (MRAG). The time of a build does not include embedding
the chunks, which all systems share, but includes embedding other texts, such as chunks with headers (spRAG). For
"Context holds the answer", EM and F1, the contexts of all systems have the same maximum number of tokens, and the LLM
answers. Embedded texts and LLM calls are those of a build.</p>
<h2>{_text(heading)}</h2>
{asked}
</main>
</body>
</html>
"""


def _row(cells: Sequence[str], is_chosen: bool) -> str:
    mark = ' class="chosen"' if is_chosen else ""
    rest = "".join(f"<td>{_text(cell).replace(' [', '<br>[')}</td>" for cell in cells[1:])
    return f'<tr{mark}><th scope="row">{_text(cells[0])}</th>{rest}</tr>'


def _answers(number: int, shown: QuestionOnPage) -> str:
    columns = "".join(_column(name, cells, shown.said.get(name), shown.answers) for name, cells in shown.found.items())
    known = f'<p class="note">Answered by: {_text(", ".join(shown.wanted))}</p>' if shown.wanted else ""
    if shown.answers:
        known += f'<p class="note">Correct: {_text(" / ".join(shown.answers))}</p>'
    state = " open" if number == 0 else ""
    share = f' <span class="note">{_found_by(shown)}</span>' if shown.wanted else ""
    head = f"<summary>{_text(shown.question)}{share}</summary>{known}"
    return f'<details{state}>{head}<div class="answers">{columns}</div></details>'


def _found_by(shown: QuestionOnPage) -> str:
    """How many systems found the documents that answer a question."""
    found = [len({cell.document for cell in cells if cell.is_right}) for cells in shown.found.values()]
    some, every = sum(map(bool, found)), sum(count >= len(shown.wanted) for count in found)
    if len(shown.wanted) == 1:
        return f"found by {some} of {len(found)}"
    return f"all {len(shown.wanted)} found by {every} of {len(found)}, some by {some}"


def _column(name: str, cells: Sequence[Cell], said: str | None, answers: Sequence[str]) -> str:
    listed = f"<ol>{''.join(_cell(cell, answers) for cell in cells)}</ol>" if cells else "<p>nothing</p>"
    answer = "" if said is None else f'<p class="advice">{_text(said)}</p>'
    return f"<section><h3>{_text(name)}</h3>{answer}{listed}</section>"


def _cell(cell: Cell, answers: Sequence[str]) -> str:
    text = _excerpt(cell.text, answers if cell.is_right else ())
    mark, said = (' class="right"', " ✓") if cell.is_right else ("", "")
    document = f'<span class="doc">{_text(cell.document)}{said}</span>'
    return f'<li{mark}>{document}<br><span class="text">{_text(text)}</span></li>'


def _excerpt(text: str, answers: Sequence[str]) -> str:
    """The beginning of a passage, or what surrounds an answer that it has."""
    places = [place for answer in answers if (place := text.casefold().find(answer.casefold())) >= 0]
    start = max(0, min(places) - _SHOWN // 2) if places and min(places) > _SHOWN // 2 else 0
    before = "... " if start else ""
    text = text[start:].split(" ", 1)[-1] if start else text
    return before + (text if len(text) <= _SHOWN else text[:_SHOWN].rsplit(" ", 1)[0] + " ...")


def _text(value: str) -> str:
    return html.escape(value.encode("utf-8", "replace").decode("utf-8"), quote=True)
