"""The subject, phrases and triples of a passage that a spaCy pipeline has parsed.

Phrases are names and noun chunks. Without named entities (`doc.ents`) they are only noun chunks. Without a parse, or in
a language for which spaCy has no noun chunks, they are only names.

Triples are subject, verb and object. Labels of Universal Dependencies, of spaCy's English and Chinese models (ClearNLP)
and of its German ones (TIGER) are known. A verb shares its subject with verbs that are coordinated with it or depend on
it as open complements; a preposition between verb and object is part of the relation ("was bought by", "moved to").
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from llama_index.hipporag.text.normalization import normalise
from llama_index.hipporag.text.noun_phrases import NounPhrases, distinct, sentence_triples, subject_names
from llama_index.ragkit.text.function_words import is_name
from llama_index.ragkit.text.names import Mention

__all__ = ["read_parsed"]

_QUANTITIES = frozenset(("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME"))
"""Labels of entities that are not names: numbers, amounts and dates."""

_FUNCTION = frozenset(("DET", "PRON", "ADP", "AUX", "CCONJ", "SCONJ", "PART", "PUNCT", "SPACE", "NUM", "INTJ", "SYM"))
_NOUNS = frozenset(("NOUN", "PROPN", "X"))
_CONTENT = _NOUNS | {"ADJ"}
_MOST_TOKENS = 8  # of a noun chunk; longer ones are enumerations, or a wrong parse
_RELATIVE_CLAUSES = ("relcl", "acl:relcl", "rc")


def read_parsed(doc: Any, title: str = "") -> NounPhrases:
    """The phrases and triples of a `spacy.tokens.Doc`, the parsed text below a title.

    Triples consist of subject, verb and object, and their ends are phrases. A pronoun of the third person as subject
    stands for the title, a relative pronoun for the word that its clause modifies. A phrase in no such triple gets one
    with the words between it and the phrase before it: see
    :func:`~llama_index.hipporag.text.noun_phrases.read_passage`.
    """
    subject = subject_names(title)
    spans = [*_named_phrases(doc), *_chunk_phrases(doc)]
    longest: dict[int, Any] = {}
    for span in spans:
        for token in span:
            if token.i not in longest or len(span) > len(longest[token.i]):
                longest[token.i] = span

    def name_of(token: Any) -> str:
        if token.pos_ == "PRON":
            if not token.morph.get("Person"):  # "which", "who": the word that the clause modifies
                return name_of(token.head.head) if token.head.dep_ in _RELATIVE_CLAUSES else ""
            stands_for_title = bool(subject) and token.morph.get("Person") == ["3"] and token.dep_ in _SUBJECTS
            return subject[0] if stands_for_title else ""
        return longest[token.i].text if token.i in longest else ""

    mentions = _parsed_phrases(doc)
    triples = _verb_triples(doc, name_of)
    known = {normalise(end) for head, _, tail in triples for end in (head, tail)}
    rest = [t for t in sentence_triples(doc.text, subject, mentions) if normalise(t[2]) not in known]
    return NounPhrases(distinct([*subject, *(mention.text for mention in mentions)]), [*triples, *rest], subject)


def _parsed_phrases(doc: Any) -> list[Mention]:
    """Every phrase of a parsed text with its position; of two that begin together, the longer first."""
    spans = {(span.start_char, span.end_char): span for span in (*_named_phrases(doc), *_chunk_phrases(doc))}
    order = sorted(spans, key=lambda place: (place[0], -place[1]))
    return [Mention(spans[place].text, *place) for place in order]


def _named_phrases(doc: Any) -> Iterator[Any]:
    """The named entities, without articles before them and genitive endings, except numbers, amounts and dates."""
    for entity in doc.ents:
        if entity.label_ in _QUANTITIES:
            continue
        span = _without_article(entity)
        if len(span) and "\n" not in span.text and is_name(span.text):
            yield span


def _chunk_phrases(doc: Any) -> Iterator[Any]:
    """Noun chunks that contain a name or have at least two words: other single words are too common."""
    if not doc.has_annotation("DEP"):
        return
    try:
        chunks = list(doc.noun_chunks)
    except NotImplementedError:  # no noun chunks in this language
        return
    for chunk in chunks:
        span = _trimmed(chunk)
        content = [token for token in span if token.pos_ in _CONTENT and not token.is_stop and not _is_quantity(token)]
        has_noun = any(token.pos_ in _NOUNS for token in content)
        is_specific = len(content) > 1 or any(token.pos_ == "PROPN" for token in content)
        if has_noun and is_specific and len(span) <= _MOST_TOKENS and "\n" not in span.text and is_name(span.text):
            yield span


def _is_quantity(token: Any) -> bool:
    return token.ent_type_ in _QUANTITIES


def _trimmed(span: Any) -> Any:
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


def _labels(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SUBJECTS = _labels("nsubj nsubjpass nsubj:pass nsubj:outer sb sbp")
_OBJECTS = _labels("dobj obj iobj dative attr oprd obl obl:agent obl:arg obl:mod obl:tmod oa oa2 da og pd")
_PREPOSITIONS = _labels("prep agent dative mo op sbp")  # of the verb; the object is theirs
_PREPOSITIONAL = _labels("pobj nk nmod")
_CASE = "case"  # a preposition below the object, in Universal Dependencies
_COPULA = "cop"
_VERBAL = _labels("aux auxpass aux:pass aux:tense neg prt compound:prt svp cop")
_SHARING = _labels("conj cj xcomp oc")  # verbs that share the subject; TIGER has a conjunction ("cd") between
_COORDINATED = _labels("conj cj")
_VERBS = frozenset(("VERB", "AUX"))

Triple = tuple[str, str, str]


def _verb_triples(doc: Any, name_of: Callable[[Any], str]) -> list[Triple]:
    """The triples of a parsed text in its order, each once; none without a parse. `name_of` gives a token's phrase."""
    if not doc.has_annotation("DEP"):
        return []
    found: dict[Triple, None] = {}
    for token in doc:
        subjects = [child for child in token.children if child.dep_ in _SUBJECTS and child.pos_ != "ADP"]
        if not subjects:
            continue
        heads = [name for subject in subjects for part in _with_coordinated(subject) if (name := name_of(part))]
        tails = [
            (relation, name)
            for verb in _verbs(token)
            for relation, argument in _arguments(verb)
            for part in _with_coordinated(argument)
            if (name := name_of(part))
        ]
        for head, (relation, tail) in product(heads, tails):
            if head.casefold() != tail.casefold():
                found.setdefault((head, relation, tail))
    return list(found)


def _verbs(token: Any) -> Iterator[Any]:
    """A predicate, and those that share its subject."""
    yield token
    for child in token.children:
        below = list(child.children) if child.dep_ == "cd" else [child]
        for verb in below:
            if verb.dep_ in _SHARING and verb.pos_ in _VERBS and not any(c.dep_ in _SUBJECTS for c in verb.children):
                yield from _verbs(verb)


def _arguments(verb: Any) -> Iterator[tuple[str, Any]]:
    """(relation, head of the object) for each object of a predicate."""
    copulas = [child for child in verb.children if child.dep_ == _COPULA]
    if copulas:  # in "Paris is the capital" the predicate is the noun
        yield _text(_verbal(verb, with_verb=False)), verb
    elif verb.pos_ not in _VERBS:
        return
    for child in verb.children:
        if child.dep_ in _PREPOSITIONS and child.pos_ == "ADP":
            for argument in child.children:
                if argument.dep_ in _PREPOSITIONAL and argument.pos_ not in ("DET", "ADJ"):
                    yield _text([*_verbal(verb), child]), argument
        elif child.dep_ in _OBJECTS:
            cases = [case for case in child.children if case.dep_ == _CASE and case.i < child.i]
            yield _text([*_verbal(verb), *cases]), child


def _verbal(verb: Any, with_verb: bool = True) -> list[Any]:
    """The verb with its auxiliaries, particles and negations, also those of the verb that it completes."""
    parts = [child for child in verb.children if child.dep_ in _VERBAL]
    if verb.dep_ == "oc":
        parts.append(verb.head)
    return [*parts, verb] if with_verb else parts


def _text(tokens: list[Any]) -> str:
    """The tokens in the order of the text, with its own spaces between neighbours."""
    order = sorted(set(tokens), key=lambda token: token.i)
    pieces = [
        token.text + (" " if following is None or following.i > token.i + 1 else token.whitespace_)
        for token, following in zip(order, [*order[1:], None], strict=True)
    ]
    return " ".join("".join(pieces).split())


def _with_coordinated(token: Any) -> Iterator[Any]:
    yield token
    for child in token.children:
        for part in child.children if child.dep_ == "cd" else (child,):
            if part.dep_ in _COORDINATED and part.pos_ not in _VERBS:
                yield from _with_coordinated(part)
