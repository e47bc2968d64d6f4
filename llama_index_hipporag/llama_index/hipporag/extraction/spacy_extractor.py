"""`SpacyExtractor`: entities and triples of a passage by a spaCy pipeline, in any language that has one.

Phrases are names and noun chunks. Without named entities (`doc.ents`) they are only noun chunks. Without a parse, or in
a language for which spaCy has no noun chunks, they are only names.

Triples are subject, verb and object. Labels of Universal Dependencies, of spaCy's English and Chinese models (ClearNLP)
and of its German ones (TIGER) are known. A verb shares its subject with verbs that are coordinated with it or depend on
it as open complements; a preposition between verb and object is part of the relation ("was bought by", "moved to").
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from pydantic import field_serializer

from llama_index.hipporag.text.normalization import normalise
from llama_index.hipporag.text.noun_phrases import NounPhrases, distinct, sentence_triples, subject_names
from llama_index.ragkit import Extraction, ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.context import passages_of
from llama_index.ragkit.extras import need
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.function_words import is_name
from llama_index.ragkit.text.names import Mention
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose

__all__ = ["BatchReader", "SpacyExtractor", "identity", "loaded", "name_of", "read_parsed"]

_BATCH = 32  # passages that are parsed together
_LOCKS: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


def loaded(model: Any) -> Any:
    """The `spacy.Language` of a name, or the given one.

    Raises an `ImportError` without the extra `spacy`, and a `ConfigurationError` if there is no such pipeline, the
    model is neither, or the pipeline is empty.
    """
    spacy = need("spacy", "SpacyExtractor", "llama-index-hipporag[spacy]")
    pipeline = _by_name(model) if isinstance(model, str) else model
    if not isinstance(pipeline, spacy.Language):
        given = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ConfigurationError(
            f"model must be a loaded spaCy pipeline (spacy.load(...)) or the name of an installed one, not {given}."
        )
    if not pipeline.pipe_names:
        raise ConfigurationError(
            f"The spaCy pipeline {name_of(pipeline)!r} has no components, so it finds neither names nor noun chunks. "
            "Load one with a parser or named entities, or add an entity ruler."
        )
    return pipeline


@lru_cache(maxsize=8)
def _by_name(name: str) -> Any:
    spacy = need("spacy", "SpacyExtractor", "llama-index-hipporag[spacy]")
    try:
        return spacy.load(name)
    except OSError as error:
        raise ConfigurationError(
            f"There is no spaCy pipeline {name!r} in this environment, nor at this path: install it, for example by "
            f"`python -m spacy download {name}`, or pass a loaded one."
        ) from error


def name_of(pipeline: Any) -> str:
    """The name under which a pipeline is installed, such as "en_core_web_sm"."""
    return f"{pipeline.meta['lang']}_{pipeline.meta['name']}"


def identity(pipeline: Any) -> str:
    """The identity of a pipeline: its language, name and components, not its version."""
    return f"{name_of(pipeline)}: {', '.join(pipeline.pipe_names)}"


def parsed(pipeline: Any, passages: Sequence[PassageText]) -> list[NounPhrases | Exception]:
    """The phrases of each passage, or the exception of that passage.

    One thread at a time uses a pipeline, since spaCy does not promise that several may.
    """
    with _LOCKS_LOCK:
        lock = _LOCKS.setdefault(pipeline, threading.Lock())
    with lock:
        try:
            pairs = pipeline.pipe([(prose(passage.body), passage.title) for passage in passages], as_tuples=True)
            return [read_parsed(doc, title) for doc, title in pairs]
        except Exception as error:  # of one passage: find which
            if len(passages) == 1:
                return [error]
    return [found for passage in passages for found in parsed(pipeline, [passage])]


class BatchReader:
    """Reads passages in batches, each on the first request for a passage of it; roughly in their order. Thread-safe."""

    def __init__(self, pipeline: Any, passages: Iterable[PassageText] = ()) -> None:
        self._pipeline = pipeline
        self._left = dict.fromkeys(passages)
        self._found: dict[PassageText, NounPhrases | Exception] = {}
        self._lock = threading.Lock()

    def read(self, passage: PassageText) -> NounPhrases:
        """The phrases of a passage; the exception if parsing failed."""
        with self._lock:
            if passage not in self._found:
                self._left.pop(passage, None)
                batch = [passage, *islice(self._left, _BATCH - 1)]
                for other in batch[1:]:
                    del self._left[other]
                self._found.update(zip(batch, parsed(self._pipeline, batch), strict=True))
            found = self._found[passage]
        if isinstance(found, Exception):
            raise found
        return found


class SpacyExtractor(NodeExtractor):
    """Extracts names, noun chunks, and triples of subject, verb and object by a spaCy pipeline.

    It needs no LLM, but the extra `spacy`. The record is that of :class:`NounPhraseExtractor`, which also treats
    titles, line breaks and repeated lines in this way. Entities are the names that the pipeline recognises, except
    numbers, amounts and dates, and noun chunks of at least two words. Both ends of a triple are entities or the title
    of the passage. An entity that is neither subject nor object of a verb gets a triple like those of
    :class:`NounPhraseExtractor`.

    A pipeline without a parser, or in a language for which spaCy has no noun chunks, gives only names. Without a parser
    all triples are like those of :class:`NounPhraseExtractor`. Without named entities there are only noun chunks.

    Passages are parsed in batches by `Language.pipe`, in one thread: `num_workers` has no influence.

    Parameters
    ----------
    model : a loaded `spacy.Language`, or the name or path of an installed one. Its language, name and components are
        part of the fingerprint, so that an index refuses records of another pipeline
    title_key : the metadata key of a title; for a node without one, a heading at the beginning of its text is the title
        (:mod:`llama_index.ragkit.text.headings`). None for no titles at all
    kwargs : see :class:`~llama_index.ragkit.NodeExtractor`

    Raises
    ------
    ImportError
        Without the extra `spacy`.
    ConfigurationError
        If there is no such pipeline, or it has no components.
    """

    method: ClassVar[str] = "hipporag"
    needs_llm: ClassVar[bool] = False

    model: Any
    title_key: str | None = "title"

    _reader: BatchReader | None = PrivateAttr(default=None)

    def __init__(self, model: Any, **kwargs: Any) -> None:
        loaded(model)
        super().__init__(model=model, **kwargs)

    @property
    def pipeline(self) -> Any:
        """The loaded `spacy.Language`."""
        return loaded(self.model)

    @field_serializer("model")
    def _model_name(self, model: Any) -> str:
        return model if isinstance(model, str) else name_of(model)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class, parameters, and the language, name and components of the pipeline."""
        return {**super().fingerprint, "model": identity(self.pipeline)}

    def extract(
        self, nodes: Sequence[BaseNode], *, siblings: Sequence[BaseNode] = (), **kwargs: Any
    ) -> Steps[list[Extraction]]:
        """As :meth:`~llama_index.ragkit.NodeExtractor.extract`, in batches of passages."""
        passages = yield from passages_of(nodes, siblings, self.title_key)
        batched = self.model_copy()
        batched._reader = BatchReader(self.pipeline, passages)
        return (yield from NodeExtractor.extract(batched, nodes, siblings=siblings, **kwargs))

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Extract from one node, without an LLM call."""
        passage = yield from context.passage(node, self.title_key)
        reader = self._reader or BatchReader(self.pipeline)
        reading = yield from offload(reader.read, passage)
        return reading.record()

    def question_entities(self, question: str) -> list[str]:
        """The entities of a question, for `question_entities=` of :class:`~llama_index.hipporag.HippoRAGRetriever`."""
        return BatchReader(self.pipeline).read(PassageText("", question)).entities


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
