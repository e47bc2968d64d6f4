"""`CooccurrenceExtractor`: the statements of a chunk, read without a language model.

Entities are the names in it, relations are pairs of names in a sentence, and the sentence is the statement.

Source: the "fast" pipeline joins every two noun phrases of a chunk, weighs pairs by pointwise mutual information and
drops the lightest. Here a pair needs a sentence that names both, so each edge has a text. Nothing is dropped: weights
are counts of chunks.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from llama_index.core.schema import BaseNode

from llama_index.graphrag.graph.statement import ChunkStatements, EntityStatement, RelationStatement
from llama_index.ragkit import ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.text.names import Mention, names, uncased_phrases
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose_lines
from llama_index.ragkit.text.sentences import sentence_spans
from llama_index.ragkit.text.statements import without_marker

__all__ = ["MOST_NAMES", "CooccurrenceExtractor", "NameReader", "cooccurrences"]

# Reads the names of a text: (name, start, end), in order of place; they may overlap.
NameReader = Callable[[str], Iterable[tuple[str, int, int]]]

_COMMAS = re.compile(r"(?:(?<!\s)\s+)?,(?:\s*,)+")  # around code that was left out
MOST_NAMES = 12  # names of a sentence that are all joined; a longer list is not a statement about each pair
_MOST_PAIRS = 1_200  # pairs of a sentence, each of which has the sentence as its text
_DIGIT = re.compile(r"\d")
_QUOTED = re.compile(r"[?!？！]")


def cooccurrences(
    text: str, names: NameReader, subject: str = "", shown: Sequence[str] | None = None
) -> tuple[tuple[EntityStatement, ...], tuple[RelationStatement, ...]]:
    """Entities and relations of a text.

    A name inside a longer name is left out, unless two names divide the longer one between them, as in "Romeo and
    Juliet". A sentence with one name is a statement only about it. A sentence with more than 12 names joins each with
    the next 12. One with more than 100 joins each with fewer of the next, so that there are 1,200 pairs, but at least
    with the next one.

    Parameters
    ----------
    names : reads the names
    subject : the subject of the whole text, for example from its title; a sentence that names one other entity is about
        both
    shown : the lines of the text as statements show them, for example with code, which is not searched for names; None
        for the text itself
    """
    spelling: dict[str, str] = {normalise(subject): subject} if normalise(subject) else {}
    about = list(spelling)
    alone: dict[tuple[str, str], None] = {}
    together: dict[tuple[str, str, str], None] = {}
    found = _outermost(names(text))
    begins = [first for _, first, _ in found]
    spans = sentence_spans(text)
    for (start, end), statement in zip(spans, _statements(text, spans, shown), strict=True):
        sentence = " ".join(without_marker(statement).split())
        within = found[bisect_left(begins, start) : bisect_left(begins, end)]
        here = {normalise(name): name for name, _, last in within if last <= end}
        here.pop("", None)
        for key, name in here.items():
            spelling.setdefault(key, name)
        keys = list(here) if len(here) > 1 else list(dict.fromkeys([*about, *here])) if here else []
        if len(keys) == 1 and normalise(sentence) != keys[0]:  # a heading that is a name says nothing about it
            alone[keys[0], sentence] = None
        reach = max(1, min(MOST_NAMES, _MOST_PAIRS // max(1, len(keys))))
        for i, key in enumerate(keys):
            for following in keys[i + 1 : i + 1 + reach]:
                one, other = sorted((key, following))
                together[one, other, sentence] = None
    described = {key for key, _ in alone}
    bare = (EntityStatement(name) for key, name in spelling.items() if key not in described)
    return (
        (*bare, *(EntityStatement(spelling[key], "", sentence) for key, sentence in alone)),
        tuple(RelationStatement(spelling[a], spelling[b], sentence) for a, b, sentence in together),
    )


def _statements(text: str, spans: Sequence[tuple[int, int]], shown: Sequence[str] | None) -> list[str]:
    """Each sentence as it is shown: the sentence at the same place in its line, if the line has as many."""
    plain = [_COMMAS.sub(",", text[start:end]) for start, end in spans]
    if shown is None:
        return plain
    of_line: dict[int, list[int]] = {}  # line -> its sentences
    breaks = [i for i, character in enumerate(text) if character == "\n"]
    for i, (start, end) in enumerate(spans):
        if "\n" not in text[start:end]:
            of_line.setdefault(bisect_left(breaks, start), []).append(i)
    for line, sentences in of_line.items():
        written = [shown[line][start:end] for start, end in sentence_spans(shown[line])]
        if len(written) == len(sentences):
            for i, sentence in zip(sentences, written, strict=True):
                plain[i] = sentence
    return plain


def _outermost(names: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The names that are not inside a longer one, in order of place; a name that two others divide does not count."""
    given = list(names)
    first_end: dict[int, int] = {}  # end of the shortest name that begins there
    last_start: dict[int, int] = {}  # start of the shortest name that ends there
    for _, start, end in given:
        first_end[start] = min(end, first_end.get(start, end))
        last_start[end] = max(start, last_start.get(end, start))
    found: list[tuple[str, int, int]] = []
    for name in sorted(given, key=lambda name: (name[1], -name[2])):
        divided = first_end[name[1]] <= last_start[name[2]]
        if not divided and (not found or name[2] > found[-1][2]):
            found.append(name)
    return found


class CooccurrenceExtractor(NodeExtractor):
    """Reads the names of a text by rules, in scripts with and without capitals.

    It needs no LLM: indexing is free and offline. Two names in a sentence are a relation, and the sentence is the
    statement about it. Entities have no types. Code gives no names, each cell of a table is read by itself, and lines
    that repeat in the chunks of a document that are written together (headers, footers, legal lines) are ignored.

    Parameters
    ----------
    title_key : the metadata key of a title, which is an entity of the whole text: a sentence with one other name is a
        statement about both. For a node without it, a heading at the beginning of its text is the title
        (:mod:`llama_index.ragkit.text.headings`). None for no titles
    """

    method: ClassVar[str] = "graphrag"
    needs_llm: ClassVar[bool] = False

    title_key: str | None = "title"

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node, without an LLM call."""
        passage = yield from context.passage(node, self.title_key)
        entities, relations = yield from offload(_read, passage)
        return ChunkStatements("", "", entities=entities, relations=relations).record()


def _read(passage: PassageText) -> tuple[tuple[EntityStatement, ...], tuple[RelationStatement, ...]]:
    lines = prose_lines(passage.body)
    text = "\n".join(plain for plain, _ in lines)
    return cooccurrences(text, _phrases, passage.title, [shown for _, shown in lines])


def _phrases(text: str) -> list[Mention]:
    return [mention for mention in (*names(text), *uncased_phrases(text)) if _is_entity(mention.text)]


def _is_entity(name: str) -> bool:
    """Whether a name is more than a number, and not a quoted question or exclamation."""
    return not _QUOTED.search(name) and any(not _DIGIT.search(word) for word in name.split())
