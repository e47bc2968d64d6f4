"""Mind maps from headings, key phrases and sentences, without a language model.

The topic is the title of the passage, given or its heading, else its key phrases. The facts are its sentences, each
under the headings above it and under a key phrase that it shares with another sentence of its section, so that
sentences on the same subject form a branch. The fields of a record ("yard: Alder yard") are one fact. Lines of code,
table cells, page numbers and other lines that say nothing by themselves are not facts, unless the passage has nothing
else.

Key phrases are names and repeated phrases, in any script. Candidates are runs of up to four words, or of up to eight
characters in scripts without spaces, that do not begin or end with a function word: a word of at most three lower-case
letters, a function word of the language of the text, or a word of a short English list. A run counts if it occurs
twice, or is capitalised like a name. Of nested runs that occur equally often, the longest is kept. Interjections, words
of code and abbreviated titles ("Mrs") are not phrases. The weight is the number of occurrences times the logarithm of
the length. This is implemented here because the maintained libraries have a copyleft licence, download word lists, or
do not support Chinese.
"""

import re
from collections import Counter
from collections.abc import Set
from math import log

from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.name_links import PHRASES
from llama_index.ragkit.text.characters import MARKS, UNSPACED
from llama_index.ragkit.text.function_words import function_words, is_filler, written_language
from llama_index.ragkit.text.names import ABBREVIATED
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose
from llama_index.ragkit.text.sentences import LINE_END
from llama_index.ragkit.text.statements import is_statement, line_sentences, without_marker

__all__ = ["key_phrases", "outline"]

_MARKDOWN = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_FIELD = re.compile(r"([^\W\d_][^:.!?]{0,39}):[ \t]+\S.*")
_LONGEST_TOPIC, _LONGEST_NAME = 160, 500  # characters; every fact below a heading repeats it
_TOPIC_PHRASES, _ROUTE_PHRASES = 3, 8
# Function characters of Chinese and Japanese; a phrase does not extend across them.
_JOINING = "的了在是和与及对为将从被把也都就而或其这那有等于以并中上下不个一二三年月日时の、はがをにでともへや"
_JOINT = re.compile(f"[{_JOINING}]")
_WIDE_RUN = re.compile(f"[{UNSPACED}]+")
_LETTERS = f"(?:[^\\W{UNSPACED}]|[{MARKS}])+"
_WORD = f"{_LETTERS}(?:['’.-]{_LETTERS})*"
_SEGMENT = re.compile(f"{_WORD}(?: {_WORD})*")
_MOST_WORDS, _MOST_CHARACTERS, _LONGEST = 4, 8, 20_000
_MOST_CANDIDATES = 300  # to compare pairwise, which is the only quadratic step
_ENGLISH = """
a about above according after again against all along also although among an and another any are around as at be
because been before being below between both but by came can come could did do does doing done down during each
either even ever every few first for from further gave get give given goes going gone had has have having he her
here hers herself him himself his how however i if in into is it its itself just keep kept known last later
least less like made make many may me might more most much must my never next no nor not now of off often on
once one only onto or other others our ours out over own quite rather said same saw second see seen several
shall she should since so some soon still such take taken than that the their theirs them then there these they
this those though three through thus to together told too took toward two under until up upon us used using very
was we well went were what when where whether which while who whole whom whose why will with within without
would yet you your yours
"""
_FUNCTION_WORDS = frozenset(_ENGLISH.split())
_TITLES = frozenset(map(str.casefold, ABBREVIATED))


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
    facts = [fact for fact in facts if is_statement(fact[1]) or _is_record(fact[1])] or facts
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
            sections.append((tuple(name for _, name in open_), "\n".join(_with_records(lines))))
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


def _with_records(lines: list[str]) -> list[str]:
    """Lines in which the fields of a record are one line: one field alone does not say what it is about.

    A field is "key: value" and ends no sentence, so turns of a talk are none. A record ends before a key that it has.

    >>> _with_records(["boat: Petrel", "", "yard: Marsh", "", "boat: Heron", "Ada: Who knows more?"])
    ['boat: Petrel; yard: Marsh', '', '', 'boat: Heron', 'Ada: Who knows more?']
    """
    found: list[str] = []
    keys: set[str] = set()  # of the record in the line at `place`
    place = 0
    for line in lines:
        field = None if LINE_END.search(line) else _FIELD.fullmatch(line)
        if field and keys and field[1] not in keys:
            found[place] += f"; {line}"
            keys.add(field[1])
            continue
        found.append(line)
        if line.strip():
            keys, place = {field[1]} if field else set(), len(found) - 1
    return found


def _is_record(fact: str) -> bool:
    return sum(_FIELD.fullmatch(part) is not None for part in fact.split("; ")) > 1


def _branches(facts: list[tuple[Path, str]], phrases: list[str]) -> list[Path]:
    """For each fact, the phrase of greatest weight that it shares with another fact of its section; () if none."""
    within = [[p for p in phrases if p.casefold() in fact.casefold() and p != fact] for _, fact in facts]
    sharing = Counter((routes, p) for (routes, _), found in zip(facts, within, strict=True) for p in found)
    shared = [[p for p in found if sharing[routes, p] > 1] for (routes, _), found in zip(facts, within, strict=True)]
    return [tuple(found[:1]) for found in shared]


def key_phrases(text: str, count: int) -> list[str]:
    """The `count` phrases with the greatest weight in the first 20,000 characters, best first, as first spelled.

    A text may have fewer phrases, or none.

    >>> key_phrases("Ada Byron met Babbage. Later Ada Byron wrote of the Analytical Engine.", 2)
    ['Ada Byron', 'Analytical Engine']
    """
    seen: Counter[str] = Counter()
    written: dict[str, str] = {}
    named: set[str] = set()
    text = text[:_LONGEST]
    small = _FUNCTION_WORDS | function_words(written_language(text))
    for segment in _SEGMENT.finditer(text):
        words = segment.group().split(" ")
        begins = _begins_sentence(text, segment.start())
        for i in range(len(words)):
            for j in range(i + 1, min(i + _MOST_WORDS, len(words)) + 1):
                run = words[i:j]
                if not (_has_content(run[0], small) and _has_content(run[-1], small)):
                    continue
                key = " ".join(run).casefold()
                seen[key] += 1
                written.setdefault(key, " ".join(run))
                if all(word[0].isupper() for word in run) and not (begins and i == 0 and len(run) == 1):
                    named.add(key)
    for match in _WIDE_RUN.finditer(text):
        for run_ in _JOINT.split(match.group()):
            for i in range(len(run_)):
                for j in range(i + 2, min(i + _MOST_CHARACTERS, len(run_)) + 1):
                    seen[run_[i:j]] += 1
                    written.setdefault(run_[i:j], run_[i:j])
    place = {key: i for i, key in enumerate(written)}

    def rank(key: str) -> tuple[float, int]:
        return -seen[key] * log(1 + _length(key)), place[key]

    said = (key for key, times in seen.items() if times > 1 or key in named)
    candidates = sorted((key for key in said if _is_about_something(key)), key=rank)
    whole: list[str] = []
    for key in sorted(candidates[:_MOST_CANDIDATES], key=lambda key: (-len(key), key)):
        if not any(key in longer and seen[longer] >= seen[key] for longer in whole):
            whole.append(key)
    whole.sort(key=rank)
    chosen: list[str] = []
    for key in whole:  # skip parts of phrases that are already chosen
        if not any(key in other or other in key for other in chosen):
            chosen.append(key)
        if len(chosen) == count:
            break
    return [written[key] for key in chosen]


def _has_content(word: str, small: Set[str]) -> bool:
    """Whether a word can begin or end a phrase."""
    return word.casefold() not in small and (len(word) > 3 or word[0].isupper() or word[0].isdigit())


def _is_about_something(key: str) -> bool:
    return any(map(str.isalpha, key)) and not all(is_filler(word) or word in _TITLES for word in key.split())


def _begins_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip()[-1:]
    return before == "" or before in '.!?…"”:\n'


def _length(phrase: str) -> int:
    """The number of letters; letters of wide scripts count double."""
    return sum(2 if _WIDE_RUN.match(character) else 1 for character in phrase)
