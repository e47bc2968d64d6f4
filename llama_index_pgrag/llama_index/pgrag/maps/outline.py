"""Mind maps from headings, key phrases and sentences, without a language model.

The topic is the title of the passage, given or its heading, else its key phrases. The facts are its sentences, each
under the headings above it and under a key phrase that it shares with another sentence of its section, so that
sentences on the same subject form a branch. Lines of code, table cells, page numbers and other lines that say nothing
by themselves are not facts, unless the passage has nothing else.
"""

import re
from collections import Counter

from llama_index.pgrag.maps.key_phrases import key_phrases
from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.name_links import PHRASES
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose
from llama_index.ragkit.text.statements import is_statement, line_sentences, without_marker

__all__ = ["outline"]

_MARKDOWN = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_LONGEST_TOPIC, _LONGEST_NAME = 160, 500  # characters; every fact below a heading repeats it
_TOPIC_PHRASES, _ROUTE_PHRASES = 3, 8


def outline(passage: PassageText, language: str | None = None) -> tuple[str, list[Path]]:
    """The topic of a passage and its fact paths, in the order of the text, each once.

    Parameters
    ----------
    language : ISO 639-1 code for the sentence rules; None to choose them by the script

    Returns
    -------
    topic, paths : every path begins with the topic; a passage without a letter or digit has no paths

    >>> outline(PassageText("The lamp", "It burned oil. Ada lit it."))
    ('The lamp', [('The lamp', 'It burned oil.'), ('The lamp', 'Ada lit it.')])
    """
    title, text = passage
    sections = _sections(prose(text, keep_code=True) or text)
    text = prose(text) or text  # no phrase is made of code
    facts = [(routes, sentence) for routes, body in sections for sentence in line_sentences(body, language)]
    facts = [fact for fact in facts if is_statement(fact[1])] or facts
    if not facts and any(character.isalnum() for character in title):
        facts = [((), title)]
    if not facts:
        return title, []
    topic = (title or PHRASES.join(key_phrases(text, _TOPIC_PHRASES)) or facts[0][1])[:_LONGEST_TOPIC]
    branches = _branches(facts, [p for p in key_phrases(text, _ROUTE_PHRASES) if p.casefold() not in topic.casefold()])
    paths = [(topic, *routes, *branch, fact) for (routes, fact), branch in zip(facts, branches, strict=True)]
    return topic, list(dict.fromkeys(paths))


def _sections(text: str) -> list[tuple[Path, str]]:
    """The sections of a text with the headings above each."""
    open_: list[tuple[int, str]] = []
    sections: list[tuple[Path, str]] = []
    lines: list[str] = []

    def close() -> None:
        if any(character.isalnum() for line in lines for character in line):
            sections.append((tuple(name for _, name in open_), "\n".join(lines)))
        lines.clear()

    for line in text.splitlines():
        marked = _MARKDOWN.fullmatch(line)
        if marked is None:
            lines.append(without_marker(line))
            continue
        close()
        depth, name = len(marked[1]), " ".join(marked[2].rstrip("# \t").split())
        while open_ and open_[-1][0] >= depth:
            open_.pop()
        if name:
            open_.append((depth, name[:_LONGEST_NAME]))
    close()
    return sections


def _branches(facts: list[tuple[Path, str]], phrases: list[str]) -> list[Path]:
    """For each fact, the phrase of greatest weight that it shares with another fact of its section; () if none."""
    within = [[p for p in phrases if p.casefold() in fact.casefold() and p != fact] for _, fact in facts]
    sharing = Counter((routes, p) for (routes, _), found in zip(facts, within, strict=True) for p in found)
    shared = [[p for p in found if sharing[routes, p] > 1] for (routes, _), found in zip(facts, within, strict=True)]
    return [tuple(found[:1]) for found in shared]
