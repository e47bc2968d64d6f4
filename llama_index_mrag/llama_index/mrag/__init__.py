"""Multi-Head RAG for LlamaIndex: one embedding space per attention head, for questions with several aspects.

See :class:`MRAGIndex`.
"""

from llama_index.mrag.embedding import HeadEmbedding, SplitEmbedding
from llama_index.mrag.evaluation import multi_aspect_table, random_baseline
from llama_index.mrag.explanation import MRAGExplanation
from llama_index.mrag.generation import Generated, MultiAspectGenerator
from llama_index.mrag.index import MRAGIndex
from llama_index.mrag.multi_head_embedding import MultiHeadEmbedding
from llama_index.mrag.postprocessor import MRAGPostprocessor
from llama_index.mrag.retriever import MRAGRetriever
from llama_index.mrag.voting.vote_result import VoteFor

__all__ = [
    "Generated",
    "HeadEmbedding",
    "MRAGExplanation",
    "MRAGIndex",
    "MRAGPostprocessor",
    "MRAGRetriever",
    "MultiAspectGenerator",
    "MultiHeadEmbedding",
    "SplitEmbedding",
    "VoteFor",
    "multi_aspect_table",
    "random_baseline",
]

__version__ = "0.1.0"
