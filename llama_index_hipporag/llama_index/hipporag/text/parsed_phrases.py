"""Phrases of a text that a spaCy pipeline has parsed: names and noun chunks.

Without named entities (`doc.ents`) the phrases are only noun chunks. Without a parse, or in a language for which spaCy
has no noun chunks, they are only names.
"""

from collections.abc import Iterator
from typing import Any

from llama_index.ragkit.text.mentions import is_name
from llama_index.ragkit.text.names import Mention

__all__ = ["QUANTITIES", "chunk_phrases", "named_phrases", "parsed_phrases", "trimmed"]

QUANTITIES = frozenset(("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME"))
"""Labels of entities that are not names: numbers, amounts and dates."""

_FUNCTION = frozenset(("DET", "PRON", "ADP", "AUX", "CCONJ", "SCONJ", "PART", "PUNCT", "SPACE", "NUM", "INTJ", "SYM"))
_NOUNS = frozenset(("NOUN", "PROPN", "X"))
_CONTENT = _NOUNS | {"ADJ"}
_MOST_TOKENS = 8  # of a noun chunk; longer ones are enumerations, or a wrong parse


def parsed_phrases(doc: Any) -> list[Mention]:
    """Every phrase of a parsed text with its position; of two that begin together, the longer first.

    Parameters
    ----------
    doc : a `spacy.tokens.Doc`
    """
    spans = {(span.start_char, span.end_char): span for span in (*named_phrases(doc), *chunk_phrases(doc))}
    order = sorted(spans, key=lambda place: (place[0], -place[1]))
    return [Mention(spans[place].text, *place) for place in order]


def named_phrases(doc: Any) -> Iterator[Any]:
    """The named entities, without articles before them and genitive endings, except numbers, amounts and dates."""
    for entity in doc.ents:
        if entity.label_ in QUANTITIES:
            continue
        span = _without_article(entity)
        if len(span) and "\n" not in span.text and is_name(span.text):
            yield span


def chunk_phrases(doc: Any) -> Iterator[Any]:
    """Noun chunks that contain a name or have at least two words: other single words are too common."""
    if not doc.has_annotation("DEP"):
        return
    try:
        chunks = list(doc.noun_chunks)
    except NotImplementedError:  # no noun chunks in this language
        return
    for chunk in chunks:
        span = trimmed(chunk)
        content = [token for token in span if token.pos_ in _CONTENT and not token.is_stop and not _is_quantity(token)]
        has_noun = any(token.pos_ in _NOUNS for token in content)
        is_specific = len(content) > 1 or any(token.pos_ == "PROPN" for token in content)
        if has_noun and is_specific and len(span) <= _MOST_TOKENS and "\n" not in span.text and is_name(span.text):
            yield span


def _is_quantity(token: Any) -> bool:
    return token.ent_type_ in QUANTITIES


def trimmed(span: Any) -> Any:
    """A span without function words, numbers and punctuation at its ends."""
    start, end = span.start, span.end
    while start < end and (span.doc[start].pos_ in _FUNCTION or not span.doc[start].text.strip()):
        start += 1
    while start < end and (span.doc[end - 1].pos_ in _FUNCTION - {"NUM"} or not span.doc[end - 1].text.strip()):
        end -= 1
    return span.doc[start:end]


def _without_article(entity: Any) -> Any:
    """A name without an article, unless a capital within a sentence shows that it is part of the name."""
    start, end = entity.start, entity.end
    while start < end and entity.doc[start].pos_ == "DET":
        token = entity.doc[start]
        if token.text[0].isupper() and not token.is_sent_start:
            break
        start += 1
    while start < end and entity.doc[end - 1].pos_ in ("PART", "PUNCT") and not entity.doc[end - 1].text.endswith("."):
        end -= 1
    return entity.doc[start:end]
