"""The subject, phrases and triples of a passage, extracted without a model."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from llama_index.hipporag.text.normalization import normalise
from llama_index.hipporag.text.terms import terms
from llama_index.ragkit.text.names import Mention, names
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose
from llama_index.ragkit.text.sentences import sentence_spans
from llama_index.ragkit.text.uncased import uncased_phrases

__all__ = [
    "NounPhrases",
    "distinct",
    "noun_phrases",
    "read_passage",
    "read_question",
    "sentence_triples",
    "subject_names",
]

_LONGEST_RELATION = 12  # words
_BRACKETED = re.compile(r"(?<!\s)\s*[(\[（【][^()\[\]（）【】]*[)\]）】]\s*$")


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
