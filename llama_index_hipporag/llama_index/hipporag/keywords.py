"""The keywords of HippoRAG's index, retriever and postprocessor, for editors and type checkers."""

from llama_index.hipporag.config import Linking, PassageSeeds, PublishedWalk, QuestionEntities
from llama_index.hipporag.text.late_interaction import TokenEncoder
from llama_index.hipporag.text.normalization import Normalizer
from llama_index.ragkit import IndexKeywords, LLMRetrieverKeywords, PostprocessorKeywords

__all__ = ["HippoRAGKeywords", "HippoRAGPostprocessorKeywords", "HippoRAGRetrieverKeywords"]


class HippoRAGKeywords(IndexKeywords, total=False):
    """Keywords of :class:`~llama_index.hipporag.HippoRAGIndex`."""

    normalizer: Normalizer
    entity_nodes: bool
    phrase_vectors: bool
    fact_vectors: bool
    synonym_threshold: float
    max_synonyms: int
    min_synonym_length: int


class HippoRAGRetrieverKeywords(LLMRetrieverKeywords, total=False):
    """Keywords of :class:`~llama_index.hipporag.HippoRAGRetriever`."""

    linking: Linking
    question_entities: QuestionEntities
    phrase_encoder: TokenEncoder | None
    link_threshold: float
    facts_top_k: int
    filter_facts: bool
    damping: float
    synonyms: bool
    subject_weight: float
    max_phrase_share: float
    passage_seeds: PassageSeeds
    passage_seed_weight: float
    walk_weight: float | None
    lexical_weight: float
    num_workers: int
    published: PublishedWalk


class HippoRAGPostprocessorKeywords(PostprocessorKeywords, total=False):
    """Keywords of :class:`~llama_index.hipporag.HippoRAGPostprocessor`."""

    node_weight: float
