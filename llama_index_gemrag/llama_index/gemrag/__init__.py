"""GEM-RAG for LlamaIndex: retrieval by the questions that chunks answer and the themes of their memory graph.

See :class:`GEMRAGIndex`.
"""

from llama_index.gemrag.config import PublishedThemes
from llama_index.gemrag.explanation import GEMRAGExplanation
from llama_index.gemrag.extraction.question_extractor import KeyphraseQuestionExtractor, UtilityQuestionExtractor
from llama_index.gemrag.index import GEMRAGIndex
from llama_index.gemrag.postprocessor import GEMRAGPostprocessor
from llama_index.gemrag.retriever import GEMRAGRetriever
from llama_index.gemrag.themes.eigenthemes import Spectrum

__all__ = [
    "GEMRAGExplanation",
    "GEMRAGIndex",
    "GEMRAGPostprocessor",
    "GEMRAGRetriever",
    "KeyphraseQuestionExtractor",
    "PublishedThemes",
    "Spectrum",
    "UtilityQuestionExtractor",
]

__version__ = "0.1.0"
