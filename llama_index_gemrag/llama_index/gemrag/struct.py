"""What a GEM-RAG index keeps in the index store."""

from dataclasses import dataclass

from llama_index.ragkit import DerivedStruct

__all__ = ["GEMRAGStruct"]


@dataclass
class GEMRAGStruct(DerivedStruct):
    """The struct of a :class:`~llama_index.gemrag.GEMRAGIndex`."""

    @classmethod
    def get_type(cls) -> str:  # type: ignore[override]
        """The import path: core's error for an unknown type then names what to import."""
        return "llama_index.gemrag"
