"""The parameters of graph and search, and the published values of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from llama_index.hipporag.text.late_interaction import TokenEncoder
from llama_index.hipporag.text.normalization import Normalizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import (
    CheckedFields,
    Count,
    Share,
    ShareOrNone,
    check_choice,
    check_component,
    count,
    number,
)
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT

__all__ = [
    "PAPER_GRAPHS", "PAPER_SEARCHES", "Edges", "GraphConfig", "Linking", "PassageSeeds", "PhraseCount", "PublishedWalk",
    "QuestionEntities", "SearchConfig", "Version",
]  # fmt: skip

Edges = Literal["added", "published"]
Linking = Literal["entities", "facts", "text"]
Ensemble = Literal["none", "uncertainty", "average", "trust"]
PassageSeeds = Literal["none", "each", "nearest"]
PhraseCount = Literal["contains", "mentions", "facts"]
QuestionEntities = Literal["llm", "rules"] | Mapping[str, Sequence[str]] | Callable[[str], Sequence[str]]

Version = Literal["v1", "v1_ensemble", "v1_nodes", "v1_neighbors", "v1_code", "v2"]

_AVERAGED_WEIGHT = 0.8  # default of walk_weight for ensemble="average" and "uncertainty"


@dataclass(frozen=True)
class GraphConfig(CheckedFields):
    """Parameters of the knowledge graph, stored with the index; see :class:`~llama_index.hipporag.HippoRAGIndex`."""

    normalizer: Normalizer = "unicode"
    entity_nodes: bool = True
    phrase_vectors: bool = False
    fact_vectors: bool = False
    synonym_threshold: Annotated[float, number(0, 1, above=True)] = 0.8
    max_synonyms: Count = 100
    min_synonym_length: Annotated[int, count(0)] = 3


@dataclass(frozen=True)
class PublishedWalk(CheckedFields):
    """Parameters that only the published searches and their ablations need, as `published=` of a retriever.

    Attributes
    ----------
    ensemble : "trust": nearness and the walk, see `walk_weight` of the retriever; "average": both scaled to [0, 1],
        with weight `walk_weight` for the walk and the rest for nearness; "uncertainty": that average if a link has a
        cosine of at most `recognition_threshold` (paper, appendix F.2); "none": only the walk ["trust"]
    passage_nodes : whether passages are nodes of the graph, scored by the probability of their nodes; otherwise their
        score is the sum over their phrases, as set by `counted` [True]
    min_in_text : least share of the words of an entity that the question must have, for `question_entities="llm"`, in
        [0, 1]; 0 for no check [0.5]
    links_per_entity : number of phrases to which an entity of the question is linked, at least 1 [1]
    node_specificity : whether the initial weight of a phrase is 1 / (number of passages with it), or 1 [True]
    max_steps : how many edges the walk follows: 0 scores only the linked phrases, 1 also their neighbours; None for as
        many as change anything [None]
    edges : see :meth:`graph.knowledge_graph.KnowledgeGraph.adjacency` ["added"]
    counted : without `passage_nodes`, how phrase scores are added to passages, see
        :meth:`graph.knowledge_graph.KnowledgeGraph.projection` ["contains"]
    length_normalization : a in [0, 1]: scores of the walk are divided by (phrases of the passage) ** a [0]
    conjunction : in [0, 1]: 0 uses one walk from all linked phrases, so that a passage must be close to only one of
        them; 1 uses the geometric mean of a walk from each, so that it must be close to all; between, the weighted
        geometric mean of the two. For questions about what several phrases have in common; it costs one walk per
        phrase [0]
    recognition_threshold : in [-1, 1]: for `ensemble="uncertainty"`, the cosine of a link up to which it is uncertain
        [0.9]

    Raises
    ------
    ConfigurationError
        If a parameter has a value that it cannot have.
    """

    ensemble: Ensemble = "trust"
    passage_nodes: bool = True
    min_in_text: Share = 0.5
    links_per_entity: Count = 1
    node_specificity: bool = True
    max_steps: Annotated[int | None, count(0, none_ok=True)] = None
    edges: Edges = "added"
    counted: PhraseCount = "contains"
    length_normalization: Share = 0.0
    conjunction: Share = 0.0
    recognition_threshold: Annotated[float, number(-1, 1)] = 0.9


@dataclass(frozen=True)
class SearchConfig(CheckedFields):
    """Parameters of a search; see :class:`~llama_index.hipporag.HippoRAGRetriever`."""

    linking: Linking = "text"
    question_entities: QuestionEntities = "rules"
    phrase_encoder: TokenEncoder | None = None
    link_threshold: Annotated[float, number(-1, 1)] = 0.0
    facts_top_k: Count = 5
    filter_facts: bool = False
    damping: Annotated[float, number(0, 1, below=True)] = 0.5
    synonyms: bool = False
    subject_weight: Annotated[float, number(0, above=True)] = 10.0
    max_phrase_share: Annotated[float, number(0, 1, above=True)] = 0.5
    passage_seeds: PassageSeeds = "nearest"
    passage_seed_weight: Share = 0.01
    walk_weight: ShareOrNone = None
    lexical_weight: Share = LEXICAL_WEIGHT
    num_workers: Count = 4
    published: PublishedWalk = PublishedWalk()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.question_entities, Mapping) or callable(self.question_entities)):
            check_choice(
                "question_entities, unless it is a mapping or a function,", self.question_entities, ("llm", "rules")
            )
        if self.phrase_encoder is not None:
            wanted = "an object with encode_query(text) and encode_document(texts), or None"
            check_component("phrase_encoder", self.phrase_encoder, ("encode_query", "encode_document"), wanted)
        check_component("published", self.published, PublishedWalk, "PublishedWalk(...)")
        if self.passage_seeds != "none" and not self.published.passage_nodes:
            raise ConfigurationError(
                f"passage_seeds={self.passage_seeds!r} starts walks from passages: it needs "
                "published=PublishedWalk(passage_nodes=True)."
            )

    def check_reading(self, is_whole: bool) -> None:
        """Raise a `ConfigurationError` if an index is not whole in memory, and an option needs it."""
        if not is_whole and self.passage_seeds == "each":
            raise ConfigurationError(
                "passage_seeds='each' starts a walk from every passage, so the whole index must be in memory: "
                "choose 'nearest' or 'none', or build the index in a storage context of this process."
            )

    @cached_property
    def walk_share(self) -> float:
        """The weight of the walk, as set or the default of the ensemble; 0 for only nearness."""
        if self.walk_weight is not None:
            return self.walk_weight
        return 1.0 if self.published.ensemble == "trust" else _AVERAGED_WEIGHT


_PUBLISHED_GRAPH: Mapping[str, Any] = MappingProxyType(
    {
        "normalizer": "legacy", "entity_nodes": False, "phrase_vectors": True,
        "synonym_threshold": 0.8, "max_synonyms": 101, "min_synonym_length": 3,
    }
)  # fmt: skip

_V1_WALK = PublishedWalk(ensemble="none", passage_nodes=False, min_in_text=0, counted="mentions")

_V1: Mapping[str, Any] = MappingProxyType(
    {
        "linking": "entities", "question_entities": "llm", "link_threshold": -1.0,
        "passage_seeds": "none", "synonyms": True, "lexical_weight": 0.0, "max_phrase_share": 1.0,
        "published": _V1_WALK,
    }
)  # fmt: skip

PAPER_GRAPHS: Mapping[Version, Mapping[str, Any]] = MappingProxyType(
    dict.fromkeys(get_args(Version), _PUBLISHED_GRAPH)
    | {"v2": MappingProxyType({**_PUBLISHED_GRAPH, "fact_vectors": True})}
)
"""Parameters of the published graphs: those of the authors' code, since the paper leaves them open."""

PAPER_SEARCHES: Mapping[Version, Mapping[str, Any]] = MappingProxyType(
    {
        # The paper: sections 2.3 and 3.4; appendix F.2; section 5.1, table 5, rows 5 and 6.
        "v1": _V1,
        "v1_ensemble": {**_V1, "published": replace(_V1_WALK, ensemble="uncertainty"), "walk_weight": 0.5},
        "v1_nodes": {**_V1, "published": replace(_V1_WALK, max_steps=0)},
        "v1_neighbors": {**_V1, "published": replace(_V1_WALK, max_steps=1), "damping": 0.1},
        # The authors' code, branch `legacy`, with the defaults of its class.
        "v1_code": {**_V1, "published": replace(_V1_WALK, counted="facts", edges="published"), "damping": 0.1},
        # HippoRAG 2: the authors' code, branch `main`.
        "v2": {
            "linking": "facts", "filter_facts": True,
            "published": PublishedWalk(ensemble="none", min_in_text=0, edges="published"),
            "subject_weight": 1.0, "passage_seeds": "each", "passage_seed_weight": 0.05,
            "lexical_weight": 0.0, "synonyms": True, "max_phrase_share": 1.0,
        },
    }
)  # fmt: skip
"""Parameters of the published searches."""
