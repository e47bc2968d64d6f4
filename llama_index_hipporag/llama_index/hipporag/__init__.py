"""HippoRAG for LlamaIndex: retrieval by personalised PageRank on a knowledge graph of passages.

See :class:`HippoRAGIndex`.
"""

from llama_index.hipporag.explanation import HippoRAGExplanation
from llama_index.hipporag.extraction.noun_phrase_extractor import NounPhraseExtractor
from llama_index.hipporag.extraction.openie_extractor import OpenIEExtractor
from llama_index.hipporag.extraction.recorded_extractor import RecordedExtractor
from llama_index.hipporag.extraction.spacy_extractor import SpacyExtractor
from llama_index.hipporag.index import HippoRAGIndex
from llama_index.hipporag.ircot import IRCoTRetriever
from llama_index.hipporag.postprocessor import HippoRAGPostprocessor
from llama_index.hipporag.retriever import HippoRAGRetrievalEvent, HippoRAGRetriever
from llama_index.hipporag.search.query_seeds import Link

__all__ = [
    "HippoRAGExplanation",
    "HippoRAGIndex",
    "HippoRAGPostprocessor",
    "HippoRAGRetrievalEvent",
    "HippoRAGRetriever",
    "IRCoTRetriever",
    "Link",
    "NounPhraseExtractor",
    "OpenIEExtractor",
    "RecordedExtractor",
    "SpacyExtractor",
]

__version__ = "0.1.0"
