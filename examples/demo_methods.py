"""The methods of the demo: how each index is built, with or without an LLM."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.embedding import minilm_folder

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.mrag import MRAGIndex, MultiHeadEmbedding
from llama_index.pgrag import OutlineExtractor, PGRAGIndex
from llama_index.ragkit import DerivedIndex, ExtractiveSummarizer
from llama_index.raptor import RaptorIndex
from llama_index.sprag import RuleContext, SpRAGIndex

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    """A method and its description in the demo.

    Attributes
    ----------
    what : one sentence for readers who do not know the method
    kind : the kind of question of the sample archive used for it
    offline : components that need no LLM; with an LLM the defaults of the index are used
    counts : statistics of the built index, by name
    models : components that it needs in both cases, such as its own embedding model
    settings : parameters of the build
    passages : parameters of a retriever that returns chunks of the documents, where the default returns other nodes
    """

    name: str
    title: str
    what: str
    kind: str
    cls: type[DerivedIndex[Any, Any]]
    offline: Callable[[], Mapping[str, Any]]
    counts: Callable[[Any], Mapping[str, int]]
    models: Callable[[], Mapping[str, Any]] = dict
    settings: Mapping[str, Any] = field(default_factory=dict)
    passages: Mapping[str, Any] = field(default_factory=dict)


METHODS = (
    Method(
        name="raptor",
        title="RAPTOR: a tree of summaries",
        what="Clusters of chunks are summarised, the summaries are clustered and summarised, and so on up to a root.",
        kind="theme",
        cls=RaptorIndex,
        offline=lambda: {"summarizer": ExtractiveSummarizer()},
        counts=lambda index: {"summaries": index.index_struct.counters["summaries"], "layers": index.tree.height},
    ),
    Method(
        name="gemrag",
        title="GEM-RAG: questions and the themes of a memory graph",
        what="Every chunk is tagged with the questions it answers; eigenvectors of the graph of chunks are its themes.",
        kind="aspects",
        cls=GEMRAGIndex,
        offline=lambda: {"extractor": KeyphraseQuestionExtractor(), "summarizer": ExtractiveSummarizer()},
        counts=lambda index: {"themes": len(index.themes)},
        settings={"group_by": None},
    ),
    Method(
        name="hipporag",
        title="HippoRAG: a knowledge graph with personalised PageRank",
        what="Personalised PageRank spreads from the names in a question along facts to the passages with the answer.",
        kind="chain",
        cls=HippoRAGIndex,
        offline=lambda: {"extractor": NounPhraseExtractor()},
        counts=lambda index: dict(index.index_struct.counters),
    ),
    Method(
        name="graphrag",
        title="Graph RAG: communities and their reports",
        what="Communities of a knowledge graph are the topics of the corpus; reports about them answer for the whole.",
        kind="theme",
        cls=GraphRAGIndex,
        offline=lambda: {"extractor": CooccurrenceExtractor(), "summarizer": ExtractiveSummarizer()},
        counts=lambda index: {"entities": len(index.state.graph.entities), "communities": len(index.communities)},
    ),
    Method(
        name="pgrag",
        title="PG-RAG: mind maps of facts",
        what="Documents become mind maps, linked where their content is the same; results are structured facts.",
        kind="fact",
        cls=PGRAGIndex,
        offline=lambda: {"extractor": OutlineExtractor()},
        counts=lambda index: dict(index.index_struct.counters),
        passages={"return_source": True},
    ),
    Method(
        name="mrag",
        title="Multi-Head RAG: attention heads as embedding spaces",
        what="A question is split into its aspects, and every head of the embedding model votes for every aspect.",
        kind="aspects",
        cls=MRAGIndex,
        offline=dict,
        counts=lambda index: {"heads": index.num_heads},
        models=lambda: {"embed_model": MultiHeadEmbedding(minilm_folder(), max_length=256)},
    ),
    Method(
        name="sprag",
        title="spRAG: context for every chunk, and segments",
        what="Each chunk is searched under a header about its document; neighbouring relevant chunks form one result.",
        kind="fact",
        cls=SpRAGIndex,
        offline=lambda: {"extractor": RuleContext()},
        counts=lambda index: {"chunks with a header": index.index_struct.counters["contexts"]},
        passages={"mode": "chunks"},
    ),
)
