"""Decides which names are the same entity: by rules on names, and by pairs that were judged to be the same.

1. Names that are equal after :func:`~llama_index.ragkit.text.characters.normalise` are one entity, even if their types
   differ.
2. Within one document, the name of a person inside exactly one longer name of a person is a short form of it:
   "Scrooge" of "Ebenezer Scrooge", unless the document also names "Uncle Scrooge". A longer name that adds a function
   word or a genitive is about another entity: "Scrooge's nephew", "Mother of Scrooge". The rule is not for other types:
   a "door" is not a "street door", and "Project Gutenberg" not a "Project Gutenberg Literary Archive Foundation".
3. Further pairs of one document, judged by vectors or by a language model, are given as data
   (:func:`representatives`).

Source: the published pipeline joins only names that are equal in upper case. The assumption that communities unite the
names of one entity does not hold on its own recorded run.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from llama_index.ragkit.text.function_words import FUNCTION_WORDS, is_name

__all__ = ["representative", "representatives", "short_forms"]

_MOST_WORDS = 12  # words of a name that may have short forms
_PERSON = frozenset(("person", "per", "people"))  # as extractors and taggers name the type
_GENITIVE = "s"  # the form of 's after `normalise`
_APART = FUNCTION_WORDS | {_GENITIVE}


def short_forms(types: Mapping[str, str]) -> dict[str, str]:
    """The names of one document that are short forms, each with the name that it stands for.

    Parameters
    ----------
    types : normalised name -> type in lower case, for every entity that the document names

    Returns
    -------
    short -> longest name; names that stand for themselves are left out. The result depends on the mapping's content,
    not on its order.

    >>> short_forms({"scrooge": "person", "ebenezer scrooge": "person", "scrooge s nephew": "person"})
    {'scrooge': 'ebenezer scrooge'}
    >>> short_forms({"cratchit": "person", "bob cratchit": "person", "peter cratchit": "person"})
    {}
    """
    longer: dict[str, list[str]] = defaultdict(list)
    people = {name for name, kind in types.items() if kind in _PERSON}
    for name in sorted(people):
        for part in _parts(name.split()) & people:
            longer[part].append(name)
    stands_for: dict[str, str] = {}
    for short in sorted(longer, key=lambda name: (-len(name.split()), name)):
        full = {stands_for.get(name, name) for name in longer[short]}
        if len(full) == 1 and is_name(short):
            stands_for[short] = full.pop()
    return dict(sorted(stands_for.items()))


def _parts(words: list[str]) -> set[str]:
    """Runs of words inside a name to which the name adds only words of a name."""
    if not 1 < len(words) <= _MOST_WORDS:
        return set()
    apart = [word in _APART for word in words]
    runs = ((first, last) for first in range(len(words)) for last in range(first + 1, len(words) + 1))
    return {
        " ".join(words[first:last])
        for first, last in runs
        if last - first < len(words) and not any(apart[:first]) and not any(apart[last:])
    }


def representative(names: Iterable[str]) -> str:
    """The name that stands for several: the one with the most words, then the most characters, then the first."""
    return min(names, key=lambda name: (-len(name.split()), -len(name), name))


def representatives(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The name that stands for each name, given pairs of names of the same entity; pairs are transitive.

    Parameters
    ----------
    pairs : normalised names

    Returns
    -------
    name -> its representative; names that stand for themselves are left out

    >>> representatives([("tim", "tiny tim"), ("tiny tim", "timothy cratchit")])
    {'tim': 'timothy cratchit', 'tiny tim': 'timothy cratchit'}
    """
    groups: dict[str, list[str]] = {}
    for pair in pairs:
        small, large = sorted((groups.setdefault(name, [name]) for name in pair), key=len)
        if small is not large:
            large.extend(small)
            groups.update((name, large) for name in small)
    distinct = {id(group): group for group in groups.values()}.values()
    stands_for = {name: best for group in distinct for best in [representative(group)] for name in group}
    return {name: best for name, best in sorted(stands_for.items()) if name != best}
