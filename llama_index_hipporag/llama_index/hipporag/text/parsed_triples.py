"""Triples of subject, verb and object from a dependency parse.

Labels of Universal Dependencies, of spaCy's English and Chinese models (ClearNLP) and of its German ones (TIGER) are
known. A verb shares its subject with verbs that are coordinated with it or depend on it as open complements; a
preposition between verb and object is part of the relation ("was bought by", "moved to").
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

__all__ = ["SUBJECTS", "verb_triples"]


def _labels(text: str) -> frozenset[str]:
    return frozenset(text.split())


SUBJECTS = _labels("nsubj nsubjpass nsubj:pass nsubj:outer sb sbp")
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


def verb_triples(doc: Any, name_of: Callable[[Any], str]) -> list[Triple]:
    """The triples of a parsed text, in its order, each once; none without a parse.

    Parameters
    ----------
    doc : a `spacy.tokens.Doc`
    name_of : returns the phrase of a token that is the head of a subject or object; "" if there is none
    """
    if not doc.has_annotation("DEP"):
        return []
    found: dict[Triple, None] = {}
    for token in doc:
        subjects = [child for child in token.children if child.dep_ in SUBJECTS and child.pos_ != "ADP"]
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
            if verb.dep_ in _SHARING and verb.pos_ in _VERBS and not any(c.dep_ in SUBJECTS for c in verb.children):
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
