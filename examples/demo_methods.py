"""The methods of the demo: what each is for, and how its index is built without an LLM."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from examples.minilm import MiniLM, MiniLMHeads

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.mrag import MRAGIndex
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
    title : its name, as `llama_index.ragkit.compare` has it
    what : one sentence for readers who do not know the method
    kind : the kind of question of the sample archive that it is for
    offline : components that need no LLM; with an LLM the defaults of the index are used
    without : what it lacks without an LLM, where that decides
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
    without: str = ""
    models: Callable[[], Mapping[str, Any]] = dict
    settings: Mapping[str, Any] = field(default_factory=dict)
    passages: Mapping[str, Any] = field(default_factory=dict)


METHODS = (
    Method(
        name="hipporag",
        title="HippoRAG",
        what="Personalised PageRank spreads over a knowledge graph, from the names in a question to the answer.",
        kind="chain",
        cls=HippoRAGIndex,
        offline=lambda: {"extractor": NounPhraseExtractor()},
    ),
    Method(
        name="pgrag",
        title="PG-RAG",
        what="Mind maps of linked facts: a question walks from fact to fact. Here their passages are listed.",
        kind="chain",
        cls=PGRAGIndex,
        offline=lambda: {"extractor": OutlineExtractor()},
        passages={"return_source": True},
    ),
    Method(
        name="graphrag",
        title="Graph RAG",
        what="Communities of a knowledge graph are the topics; what is linked to an entity is found with it.",
        kind="network",
        cls=GraphRAGIndex,
        offline=lambda: {"extractor": CooccurrenceExtractor(), "summarizer": ExtractiveSummarizer()},
    ),
    Method(
        name="mrag",
        title="MRAG",
        what="A question is split into aspects, and every attention head of the embedding model votes on each.",
        kind="subjects",
        cls=MRAGIndex,
        offline=dict,
        models=lambda: {"embed_model": MiniLMHeads(MiniLM())},
    ),
    Method(
        name="sprag",
        title="spRAG",
        what="Each chunk is searched under a header about its document; neighbouring relevant chunks form one result.",
        kind="report",
        cls=SpRAGIndex,
        offline=lambda: {"extractor": RuleContext()},
        passages={"mode": "chunks"},
    ),
    Method(
        name="gemrag",
        title="GEM-RAG",
        what="Chunks are tagged with the questions that they answer; eigenvectors of their graph are its themes.",
        kind="theme",
        cls=GEMRAGIndex,
        offline=lambda: {"extractor": KeyphraseQuestionExtractor(), "summarizer": ExtractiveSummarizer()},
        without="Its gain comes from questions that an LLM writes: without one it has key phrases.",
        settings={"group_by": None},
    ),
    Method(
        name="raptor",
        title="RAPTOR",
        what="Clusters of chunks are summarised, the summaries are clustered and summarised, and so on up to a root.",
        kind="theme",
        cls=RaptorIndex,
        offline=lambda: {"summarizer": ExtractiveSummarizer()},
        without="Its gain comes from summaries that an LLM writes: without one they are sentences of the texts.",
    ),
)
