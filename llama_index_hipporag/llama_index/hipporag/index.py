"""`HippoRAGIndex`: a knowledge graph over passages (Gutierrez et al., NeurIPS 2024, arXiv 2405.14831)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.ingestion import run_transformations
from llama_index.core.schema import BaseNode, Document, IndexNode, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.storage_context import StorageContext

from llama_index.hipporag.deriving import GraphWriter, Rules
from llama_index.hipporag.openie_extractor import OpenIEExtractor
from llama_index.hipporag.phrases import Normalizer, check_normalizer
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import DerivedIndex, DerivedStruct, Estimate, NodeExtractor, register_index
from llama_index.ragkit.driver import Steps
from llama_index.ragkit.embedding import embed_texts
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.writing import Change

__all__ = ["PUBLISHED", "HippoRAGIndex", "HippoRAGStruct"]

logger = logging.getLogger(__name__)

PUBLISHED: Mapping[str, Any] = MappingProxyType(
    {
        "normalizer": "legacy",
        "entity_nodes": False,
        "synonym_threshold": 0.8,
        "max_synonyms": 101,
        "min_synonym_length": 3,
    }
)
"""Parameters under which an index has the graph that the authors' code builds: `HippoRAGIndex(..., **PUBLISHED)`."""


@dataclass
class HippoRAGStruct(DerivedStruct):
    """The struct of a :class:`HippoRAGIndex`."""

    @classmethod
    def get_type(cls) -> str:  # type: ignore[override]
        """The import path: core's error for an unknown type then names what to import."""
        return "llama_index.hipporag"


class HippoRAGIndex(DerivedIndex[HippoRAGStruct, HippoRAGState]):
    """Passages, the phrases and facts in them, and the graph that joins these across passages.

    A question's phrases are found in the graph, and a walk from there finds passages that no single
    similarity would: those that are reached through other passages.

    Parameters
    ----------
    extractor : reads entities and triples off a passage; default :class:`OpenIEExtractor`, two LLM calls a
        passage. :class:`NounPhraseExtractor` needs no LLM, :class:`RecordedExtractor` takes data of yours
    normalizer : when two phrases are the same. "unicode" keeps all scripts; "legacy" is the published rule
    entity_nodes : whether entities that no triple names are phrases of the graph too [True; published
        code: False]
    fact_vectors : whether facts are embedded, which `linking="facts"` needs
    synonym_threshold : smallest cosine of near phrases, in (0, 1] [0.8, as published]
    max_synonyms : near phrases kept for each phrase, at least 1; an edge needs both to keep the other [100]
    min_synonym_length : letters and digits that a phrase must have to get synonyms [3, as published]
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Parameters of the graph are stored with the index and cannot be changed afterwards. Deviations from
    paper and published code are listed in the documentation of the package.
    """

    index_struct_cls = HippoRAGStruct
    method: ClassVar[str] = "hipporag"
    space_names: ClassVar[tuple[str, ...]] = ("chunks", "phrases", "facts")

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        objects: Sequence[IndexNode] | None = None,
        index_struct: HippoRAGStruct | None = None,
        storage_context: StorageContext | None = None,
        *,
        extractor: NodeExtractor | None = None,
        normalizer: Normalizer | None = None,
        entity_nodes: bool | None = None,
        fact_vectors: bool | None = None,
        synonym_threshold: float | None = None,
        max_synonyms: int | None = None,
        min_synonym_length: int | None = None,
        transformations: list[TransformComponent] | None = None,
        **kwargs: Any,
    ) -> None:
        given = {
            "normalizer": normalizer,
            "entity_nodes": entity_nodes,
            "fact_vectors": fact_vectors,
            "synonym_threshold": synonym_threshold,
            "max_synonyms": max_synonyms,
            "min_synonym_length": min_synonym_length,
        }
        wanted = {name: value for name, value in given.items() if value is not None}
        stored = index_struct.params.get("hipporag", {}) if index_struct is not None else {}
        changed = sorted(name for name, value in wanted.items() if stored.get(name, value) != value)
        if changed:
            raise ConfigurationError(
                f"The graph of this index was built with {({name: stored[name] for name in changed})}; given were "
                f"{({name: wanted[name] for name in changed})}. Leave them out, or build a new index."
            )
        self._rules = Rules(**{**asdict(Rules()), **stored, **wanted})
        _check_rules(self._rules)
        self._last_query: Any = None
        super().__init__(
            nodes=nodes,
            objects=objects,
            index_struct=index_struct,
            storage_context=storage_context,
            extractor=extractor or OpenIEExtractor(),
            transformations=transformations,
            **kwargs,
        )

    # -- what DerivedIndex asks ---------------------------------------------------------------------

    def _read_state(self) -> Steps[HippoRAGState]:
        return (yield from self._writer().load())

    def _derive(self, change: Change) -> Steps[HippoRAGState]:
        self._parts.struct.params["hipporag"] = asdict(self._rules)
        state = yield from self._writer().change(self._state, change)
        passages, phrases, facts = state.memory.shape
        self._parts.struct.counters = {
            "chunks": passages,
            "phrases": phrases,
            "facts": facts,
            "near phrases": state.memory.similar.nnz,
        }
        return state

    def _writer(self) -> GraphWriter:
        return GraphWriter(
            self._parts,
            self._rules,
            embed=lambda texts: embed_texts(self.embed_model, texts, self._show_progress and len(texts) > 1),
        )

    # -- public -------------------------------------------------------------------------------------

    def as_retriever(self, **kwargs: Any) -> BaseRetriever:
        """A :class:`HippoRAGRetriever` over this index."""
        from llama_index.hipporag.retriever import HippoRAGRetriever

        return HippoRAGRetriever(self, **kwargs)

    @classmethod
    def estimate(
        cls,
        documents: Sequence[Document],
        extractor: NodeExtractor | None = None,
        transformations: list[TransformComponent] | None = None,
        llm: Any = None,
    ) -> Estimate:
        """What building over documents would cost in LLM calls and tokens; calls nothing."""
        nodes = run_transformations(list(documents), transformations or Settings.transformations)
        return (extractor or OpenIEExtractor()).estimate(list(nodes), llm)


def _check_rules(rules: Rules) -> None:
    check_normalizer(rules.normalizer)
    if not 0 < rules.synonym_threshold <= 1:
        raise ConfigurationError(f"synonym_threshold must be above 0 and at most 1, not {rules.synonym_threshold!r}.")
    for name, least in {"max_synonyms": 1, "min_synonym_length": 0}.items():
        value = getattr(rules, name)
        if not isinstance(value, int) or value < least:
            raise ConfigurationError(f"{name} must be a whole number of at least {least}, not {value!r}.")


register_index(HippoRAGIndex)
