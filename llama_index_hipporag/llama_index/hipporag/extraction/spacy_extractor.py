"""`SpacyExtractor`: entities and triples of a passage by a spaCy pipeline, in any language that has one."""

import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from pydantic import field_serializer

from llama_index.hipporag.text.noun_phrases import NounPhrases
from llama_index.hipporag.text.parsed_passages import read_parsed
from llama_index.ragkit import Extraction, ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.context import passages_of
from llama_index.ragkit.extras import need
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.passages import PassageText
from llama_index.ragkit.text.prose import prose

__all__ = ["BatchReader", "SpacyExtractor", "identity", "loaded", "name_of"]

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
