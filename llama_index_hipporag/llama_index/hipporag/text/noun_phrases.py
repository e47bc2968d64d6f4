"""The subject, phrases and triples of a passage, extracted without a model; and terms.

Terms are noun phrases in lower case, such as "chronic lymphocytic leukemia", in scripts with capitals. A run of 2 to 4
words between function words, verbs or punctuation is a term, and so are its last 2 words and more, since the last word
is the head: "lymphocytic leukemia". A single word is a term if it mixes letters and digits, "p53"; other single words
are too common. Verbs and adverbs are recognised by a list of the commonest in English and by their endings, without a
tagger; in other languages terms are longer and rarer.

Coordinated terms state a shared head once, at the end: "B and T cells". Each gets the head, "B cells", if the head is
a plural and the word before it is not: "cats and wild birds" does not give "cat birds".
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from llama_index.hipporag.text.normalization import normalise
from llama_index.ragkit.text.function_words import FUNCTION_WORDS
from llama_index.ragkit.text.names import WORD, Mention, names, uncased_phrases
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose
from llama_index.ragkit.text.sentences import sentence_spans

__all__ = [
    "NounPhrases", "distinct", "noun_phrases", "read_passage", "read_question", "sentence_triples", "shared_heads",
    "subject_names", "terms",
]  # fmt: skip

_LONGEST_RELATION = 12  # words
_BRACKETED = re.compile(r"(?<!\s)\s*[(\[（【][^()\[\]（）【】]*[)\]）】]\s*$")


_MOST_WORDS = 4
_ENDINGS = re.compile(r".{3,}ed|.{4,}ing|.{2,}ly")

# Words besides function words that separate terms: common verbs without a typical ending, numerals and pointers.
_PARTING_TEXT = """
being use uses make makes made become becomes became include includes know known knows work works won win found find
led lead play plays show shows shown called give gave given take took taken begin began begun go goes went gone come
comes came get got say said see seen saw write wrote written treat treats help helps hold held keep kept bring brought
build built about into over under between such more other others than very own same out up down off only just any few
above below again further once within without among through per via like well new first last second third three four
five many much often early later neither next due
"""
_PARTING = FUNCTION_WORDS | frozenset(_PARTING_TEXT.split())

_BETWEEN = re.compile(r",\s+|,?\s+(and|or)\s+")
_PLURAL = re.compile(r".+[^s]s")


def terms(text: str) -> list[Mention]:
    """The terms of a text by position; of two that begin together, the longer first.

    >>> [term.text for term in terms("It is used to treat chronic lymphocytic leukemia by cytosolic p53.")]
    ['chronic lymphocytic leukemia', 'lymphocytic leukemia', 'cytosolic p53', 'p53']
    >>> [term.text for term in terms("It is by the English author Mark Haddon.")]
    ['English author']
    >>> terms("He was born in Rome."), terms("北京大学在北京。")
    ([], [])
    """
    runs = _runs(text)
    spans = sorted({span for run in runs for span in _readings(run)}, key=lambda span: (span[0], -span[1]))
    found = [Mention(text[start:end], start, end) for start, end in spans]
    return sorted([*found, *_shared(text, runs)], key=lambda mention: mention.start)


def shared_heads(text: str) -> list[Mention]:
    """The terms of a text that share the head of a later one, each with that head, at their own positions.

    >>> [term.text for term in shared_heads("best known for the science fiction, crime and historical drama genres")]
    ['science fiction genres', 'crime genres']
    >>> shared_heads("cats and wild birds"), shared_heads("a film and a book")
    ([], [])
    """
    return _shared(text, _runs(text))


def _runs(text: str) -> list[list[re.Match[str]]]:
    """Runs of consecutive words that may be a term, by position."""
    runs: list[list[re.Match[str]]] = [[]]
    for word in WORD.finditer(text):
        run = runs[-1]
        gap = text[run[-1].end() : word.start()] if run else ""
        if gap.strip() or gap.count("\n") > 1 or (run and _begins_name(run[-1].group(), word.group())):
            runs.append([])
        if not _parts(word.group()):
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _shared(text: str, runs: list[list[re.Match[str]]]) -> list[Mention]:
    """From the end: "and" or "or" begins a list at the stated head, commas continue it."""
    found = []
    head = ""
    for run, after in zip(runs[-2::-1], runs[:0:-1], strict=True):
        between = _BETWEEN.fullmatch(text, run[-1].end(), after[0].start())
        if between and between.group(1):
            head = after[-1].group() if len(after) > 1 and _PLURAL.fullmatch(after[-1].group()) else ""
        if not between or run[-1].group()[0].isupper() or len(run) >= _MOST_WORDS or _PLURAL.fullmatch(run[-1].group()):
            head = ""
        if head:
            start, end = run[0].start(), run[-1].end()
            found.append(Mention(f"{text[start:end]} {head}", start, end))
    return found[::-1]


def _parts(word: str) -> bool:
    """Whether a word separates terms: small, a number, a verb by its ending, or of a script without capitals."""
    small = word.casefold()
    return small in _PARTING or word.isdigit() or word.lower() == word.upper() or _ENDINGS.fullmatch(small) is not None


def _begins_name(before: str, word: str) -> bool:
    """Whether a name follows a description of the person: "the English author Mark Haddon"."""
    return before[0].islower() and word[0].isupper()


def _readings(run: list[re.Match[str]]) -> set[tuple[int, int]]:
    """The last words of a run together, if it is not a name, and the words that are terms by themselves."""
    tails = {(word.start(), run[-1].end()) for word in run[-_MOST_WORDS:-1] if run[-1].group()[0].islower()}
    alone = {word.span() for word in run if _is_mixed(word.group())}
    return tails | alone


def _is_mixed(word: str) -> bool:
    return any(char.isdigit() for char in word) and any(char.isalpha() for char in word)


class NounPhrases(NamedTuple):
    """The phrases of a passage, as written there.

    Attributes
    ----------
    entities : the phrases in order of first mention, each once
    triples : (subject, the words before the mention, mention), one for each phrase except the subject
    subject : the names of the passage's subject, the fullest first; empty if it has no title
    """

    entities: list[str]
    triples: list[tuple[str, str, str]]
    subject: list[str]

    def record(self) -> dict[str, Any]:
        """The record of an extractor."""
        return {"entities": self.entities, "triples": [list(t) for t in self.triples], "subject": self.subject}


def read_passage(passage: PassageText, lower_case: bool = False) -> NounPhrases:
    """Extract from the prose of a passage; with `lower_case`, terms are entities too, but have no triples.

    >>> read_passage(PassageText("Waking the Dead (film)", "Waking the Dead was directed by Keith Gordon.")).triples
    [('Waking the Dead (film)', 'was directed by', 'Keith Gordon')]
    """
    subject, text = subject_names(passage.title), prose(passage.body)
    mentions = noun_phrases(text)
    found = [*mentions, *(terms(text) if lower_case else ())]
    return NounPhrases(
        distinct([*subject, *(m.text for m in found)]), sentence_triples(text, subject, mentions), subject
    )


def read_question(question: str) -> list[str]:
    """The phrases of a question, each once, without those within a longer one."""
    kept: list[Mention] = []
    for mention in noun_phrases(question):
        if not kept or mention.end > kept[-1].end:
            kept.append(mention)
    return distinct([mention.text for mention in kept])


def noun_phrases(text: str) -> list[Mention]:
    """Every phrase of a text with its position; of two that begin together, the longer first."""
    # A phrase of characters that this Python's Unicode does not know has no normal form.
    found = {mention for mention in (*names(text), *uncased_phrases(text)) if normalise(mention.text)}
    return sorted(found, key=lambda mention: (mention.start, -mention.end))


def subject_names(title: str) -> list[str]:
    """A title, and the title without brackets at its end; none for "".

    >>> subject_names("Heat (1995 film)")
    ['Heat (1995 film)', 'Heat']
    """
    return distinct([title, _BRACKETED.sub("", title)])


def distinct(phrases: Sequence[str]) -> list[str]:
    """Phrases that differ after normalisation, in their first spelling."""
    spelling: dict[str, str] = {}
    for phrase in phrases:
        spelling.setdefault(normalise(phrase), phrase)
    return [phrase for key, phrase in spelling.items() if key]


def sentence_triples(text: str, subject: Sequence[str], mentions: Sequence[Mention]) -> list[tuple[str, str, str]]:
    """One triple per mention: the words between it and the name before it are the relation."""
    known = {normalise(form) for form in subject}
    triples: dict[tuple[str, str, str], tuple[str, str, str]] = {}
    spans = iter(sentence_spans(text))
    start, end = next(spans, (0, len(text)))
    title = (subject[0], normalise(subject[0])) if subject else ("", "")
    (head, key), relation, place = title, "", start
    for mention in mentions:
        while mention.start >= end:
            start, end = next(spans, (end, len(text) + 1))
            (head, key), relation, place = title, "", start
        words = text[place : mention.start].split()[-_LONGEST_RELATION:]
        between = " ".join(words).strip(' ,;:()[]"“”')
        relation = between if any(character.isalpha() for character in between) else relation
        place = max(place, mention.end)
        tail = normalise(mention.text)
        if tail in known:
            relation = ""
        elif head and tail != key:
            triples.setdefault((head, relation, tail), (head, relation, mention.text))
        elif not head:
            head, key = mention.text, tail
    return list(triples.values())
