"""HippoRAG for LlamaIndex: retrieval by personalised PageRank on a knowledge graph of passages.

See :class:`HippoRAGIndex`.
"""

from llama_index.hipporag.config import PublishedWalk
from llama_index.hipporag.explanation import HippoRAGExplanation
from llama_index.hipporag.extraction.noun_phrase_extractor import NounPhraseExtractor, RecordedExtractor
from llama_index.hipporag.extraction.openie_extractor import OpenIEExtractor
from llama_index.hipporag.extraction.spacy_extractor import SpacyExtractor
from llama_index.hipporag.index import HippoRAGIndex
from llama_index.hipporag.ircot import Demonstration, IRCoTRetriever
from llama_index.hipporag.late_interaction_retriever import LateInteractionRetriever
from llama_index.hipporag.postprocessor import HippoRAGPostprocessor
from llama_index.hipporag.retriever import HippoRAGRetrievalEvent, HippoRAGRetriever
from llama_index.hipporag.search.query_seeds import Link
from llama_index.hipporag.text.late_interaction import TokenEncoder

__all__ = [
    "Demonstration",
    "HippoRAGExplanation",
    "HippoRAGIndex",
    "HippoRAGPostprocessor",
    "HippoRAGRetrievalEvent",
    "HippoRAGRetriever",
    "IRCoTRetriever",
    "LateInteractionRetriever",
    "Link",
    "NounPhraseExtractor",
    "OpenIEExtractor",
    "PublishedWalk",
    "RecordedExtractor",
    "SpacyExtractor",
    "TokenEncoder",
]

__version__ = "0.1.0"
