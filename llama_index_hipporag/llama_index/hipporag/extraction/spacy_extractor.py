"""`SpacyExtractor`: entities and triples of a passage by a spaCy pipeline, in any language that has one."""

from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from pydantic import field_serializer

from llama_index.hipporag.extraction.spacy_pipeline import BatchReader, identity, loaded, name_of
from llama_index.ragkit import Extraction, ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.extraction.context import passages_of
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.passages import PassageText

__all__ = ["SpacyExtractor"]


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
        triples = [list(triple) for triple in reading.triples]
        return {"entities": list(reading.entities), "triples": triples, "subject": list(reading.subject)}

    def question_entities(self, question: str) -> list[str]:
        """The entities of a question, for `question_entities=` of :class:`~llama_index.hipporag.HippoRAGRetriever`."""
        return BatchReader(self.pipeline).read(PassageText("", question)).entities
