"""What a GEM-RAG index keeps in the index store."""

from dataclasses import dataclass

from llama_index.ragkit import DerivedStruct

__all__ = ["GEMRAGStruct"]


@dataclass
class GEMRAGStruct(DerivedStruct):
    """The struct of a :class:`~llama_index.gemrag.GEMRAGIndex`."""

    type_name = "llama_index.gemrag"
