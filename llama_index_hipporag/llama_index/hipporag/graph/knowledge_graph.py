"""The knowledge graph as sparse matrices: the phrases and facts of each passage, and the graphs derived from them.

The contributions of single passages (`named`, `statements`) and the lists of similar phrases are stored. Every graph is
a sum over passages, so removing a passage is an exact subtraction. Rows of `named` and `statements` are passages, in
the order of the chunks' rows; columns are phrases and facts, in the order of their rows.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, diags, hstack, vstack

from llama_index.hipporag.config import Edges, PhraseCount, SearchConfig
from llama_index.hipporag.graph.synonym_search import mutual
from llama_index.hipporag.pagerank.forward_push import PUSH_FROM
from llama_index.hipporag.pagerank.power_iteration import Ordered, Walk
from llama_index.ragkit.nested_arrays import Arrays, nested
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["GraphPart", "KnowledgeGraph", "give_back", "sparse_rows"]

Rows = NDArray[np.int64]
T = TypeVar("T")

_MATRICES = ("named", "about", "statements", "synonym_lists")
_PARTS = ("data", "indices", "indptr")
_FEWEST = 20  # passages below which no phrase counts as common


def sparse_rows(rows: Sequence[dict[int, int]], columns: int) -> csr_matrix:
    """Rows given as column -> value, shape (len(rows), columns)."""
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.fromiter((column for row in rows for column in row), np.int64, indptr[-1])
    data = np.fromiter((value for row in rows for value in row.values()), np.float64, indptr[-1])
    matrix = csr_matrix((data, indices, indptr), shape=(len(rows), columns))
    matrix.sort_indices()
    return matrix


@dataclass(frozen=True)
class KnowledgeGraph:
    """p passages, n phrases, f facts, and the matrices derived from them; immutable."""

    named: csr_matrix  # (p, n), how often a passage lists a phrase as an entity
    about: csr_matrix  # (p, n), 1 if a phrase is the subject of a passage
    statements: csr_matrix  # (p, f), how often a passage states a fact
    # (f,), the phrases of each fact
    heads: Rows
    tails: Rows
    synonym_lists: csr_matrix  # (n, n), row i is the list of phrases similar to phrase i, with cosines; not symmetric

    @classmethod
    def empty(cls) -> "KnowledgeGraph":
        """No passages."""
        none = np.empty(0, np.int64)
        blank = csr_matrix((0, 0))
        return cls(blank, blank, blank, none, none, blank)

    @property
    def arrays(self) -> Arrays:
        """The stored data, as arrays."""
        matrices = {name: getattr(self, name) for name in _MATRICES}
        parts = {name: {part: getattr(matrix, part) for part in _PARTS} for name, matrix in matrices.items()}
        return {**nested(parts), "heads": self.heads, "tails": self.tails}

    @classmethod
    def of_arrays(cls, arrays: Arrays, passages: int, phrases: int) -> "KnowledgeGraph":
        """The graph of :attr:`arrays`, over the same memory."""
        heads, tails = arrays["heads"], arrays["tails"]
        shapes = ((passages, phrases), (passages, phrases), (passages, len(heads)), (phrases, phrases))
        named, about, statements, synonym_lists = (
            csr_matrix(tuple(arrays[f"{name}/{part}"] for part in _PARTS), shape=shape, copy=False)
            for name, shape in zip(_MATRICES, shapes, strict=True)
        )
        return cls(named, about, statements, heads, tails, synonym_lists)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of passages, phrases and facts."""
        return self.named.shape[0], self.named.shape[1], self.statements.shape[1]

    def phrases_of(self, passage: int) -> Rows:
        """The phrases of a passage, as rows."""
        start, end = self.contains.indptr[passage : passage + 2]
        return np.asarray(self.contains.indices[start:end], np.int64)

    # -- changes ------------------------------------------------------------------------------------

    def extended(
        self,
        named: Sequence[dict[int, int]],
        about: Sequence[dict[int, int]],
        statements: Sequence[dict[int, int]],
        heads: Sequence[int],
        tails: Sequence[int],
        synonym_lists: csr_matrix,
    ) -> "KnowledgeGraph":
        """The graph with further passages; `heads` and `tails` are of new facts, `synonym_lists` of all phrases."""
        n, f = synonym_lists.shape[0], len(self.heads) + len(heads)
        return KnowledgeGraph(
            named=_stacked(self.named, sparse_rows(named, n)),
            about=_stacked(self.about, sparse_rows(about, n)),
            statements=_stacked(self.statements, sparse_rows(statements, f)),
            heads=np.concatenate([self.heads, np.asarray(heads, np.int64)]),
            tails=np.concatenate([self.tails, np.asarray(tails, np.int64)]),
            synonym_lists=synonym_lists,
        )

    def without(self, passages: Rows) -> tuple["KnowledgeGraph", Rows, Rows]:
        """The graph without these passages, and the phrases and facts that only they had; and the columns of these."""
        keep = np.ones(self.shape[0], np.bool_)
        keep[passages] = False
        left = replace(self, named=self.named[keep], about=self.about[keep], statements=self.statements[keep])
        facts = _columns_used(left.statements)
        phrases = _columns_used(left.named) | _columns_used(left.about)
        phrases[left.heads[facts]] = True
        phrases[left.tails[facts]] = True
        number = np.cumsum(phrases) - 1
        rest = KnowledgeGraph(
            named=left.named[:, phrases],
            about=left.about[:, phrases],
            statements=left.statements[:, facts],
            heads=number[left.heads[facts]],
            tails=number[left.tails[facts]],
            synonym_lists=left.synonym_lists[phrases][:, phrases],
        )
        return rest, np.flatnonzero(~phrases), np.flatnonzero(~facts)

    def restricted(self, allowed: Mask) -> "KnowledgeGraph":
        """The graph of only the allowed passages, with the same rows and columns.

        A phrase that no allowed passage has gets no edges.
        """
        chosen = diags(allowed.astype(np.float64))
        named, about, statements = ((chosen @ part).tocsr() for part in (self.named, self.about, self.statements))
        for part in (named, about, statements):
            part.eliminate_zeros()
        seen = replace(self, named=named, about=about, statements=statements)
        known = diags((seen.frequency > 0).astype(np.float64))
        lists = (known @ self.synonym_lists @ known).tocsr()
        lists.eliminate_zeros()
        return replace(seen, synonym_lists=lists)

    # -- derived matrices: those that only others are made from are not kept ----------------------------

    @cached_property
    def mentioned(self) -> Mask:
        """(n,), whether a passage names a phrase as an entity, without being about it."""
        named = self.named.sign()
        counts = (named - named.multiply(self.about.sign())).sum(axis=0)
        used: Mask = np.asarray(counts).ravel() > 0
        return used

    @property
    def fact_phrases(self) -> csr_matrix:
        """(f, n), 1 if a phrase is an end of a fact."""
        f = len(self.heads)
        rows = np.concatenate([np.arange(f), np.arange(f)])
        ends = csr_matrix((np.ones(2 * f), (rows, np.concatenate([self.heads, self.tails]))), shape=(f, self.shape[1]))
        ends.data[:] = 1.0  # a fact whose head is its tail has one end
        return ends

    @cached_property
    def phrase_facts(self) -> csr_matrix:
        """(n, f), the transpose of `fact_phrases`."""
        return self.fact_phrases.T.tocsr()

    @cached_property
    def stated(self) -> Mask:
        """(f,), whether a passage states the fact."""
        return _columns_used(self.statements)

    @cached_property
    def facts_with_phrase(self) -> csr_matrix:
        """(p, n), how many different facts of a passage contain a phrase (the published code's matrix P)."""
        counts: csr_matrix = (self.statements.sign() @ self.fact_phrases).tocsr()
        return counts

    @property
    def mentions(self) -> csr_matrix:
        """(p, n), how often a passage mentions a phrase, as an entity or in a fact (the paper's matrix P)."""
        return (self.named + self.statements @ self.fact_phrases).tocsr()

    @cached_property
    def contains(self) -> csr_matrix:
        """(p, n), 1 if a passage contains a phrase, or is about it."""
        return (self.mentions + self.about).sign().tocsr()

    @cached_property
    def frequency(self) -> NDArray[np.float64]:
        """(n,), the number of passages with a phrase."""
        return np.bincount(self.contains.indices, minlength=self.shape[1]).astype(np.float64)

    @property
    def triples(self) -> csr_matrix:
        """(n, n), symmetric: how often two phrases are head and tail of a stated fact; no loops."""
        times = np.asarray(self.statements.sum(axis=0)).ravel()
        use = (self.heads != self.tails) & (times > 0)
        n = self.shape[1]
        one_way = coo_matrix((times[use], (self.heads[use], self.tails[use])), shape=(n, n)).tocsr()
        return (one_way + one_way.T).tocsr()

    @cached_property
    def synonym_edges(self) -> csr_matrix:
        """(n, n), symmetric cosines of phrases that are on each other's lists."""
        return mutual(self.synonym_lists)

    def adjacency(self, edges: Edges = "added", synonyms: bool = False) -> csr_matrix:
        """Weights of the edges between phrases, shape (n, n), symmetric.

        "added": how often facts join the two, plus the cosine of mutual synonyms.

        "published": the weights of the authors' code. It stores one weight per direction: the number of facts,
        overwritten by the cosine if the target is on the list of the source. Its graph is undirected with parallel
        edges, so both directions are added.
        """
        if edges == "added":
            return (self.triples + self.synonym_edges).tocsr() if synonyms else self.triples
        one_way = self.triples
        if synonyms:
            one_way = one_way - one_way.multiply(self.synonym_lists.sign()) + self.synonym_lists
        both: csr_matrix = (one_way + one_way.T).tocsr()
        both.eliminate_zeros()
        return both

    def for_search(self, config: SearchConfig) -> tuple[Walk | Ordered, csr_matrix]:
        """The graph prepared for the walks of a search, and the projection of their scores on passages, (p, nodes).

        A large graph has its nodes by strength, unless walks have few steps.
        """
        published, graph = config.published, self.without_common(config.max_phrase_share)
        walked = published.edges, config.synonyms, config.subject_weight if published.passage_nodes else None
        counted = published.counted, published.length_normalization, published.passage_nodes
        projection = graph.projection(*counted)
        if projection.shape[1] < PUSH_FROM or published.max_steps is not None:
            return graph.walk(*walked), projection
        ordered = graph.ordered(*walked)

        def by_strength() -> csr_matrix:
            places = ordered.place[projection.indices]
            return csr_matrix((projection.data, places, projection.indptr), shape=projection.shape)

        return ordered, graph.once(("by strength", *walked, *counted), by_strength)

    def walk(self, edges: Edges = "added", synonyms: bool = False, subject_weight: float | None = None) -> Walk:
        """The graph prepared for walks; cached for later queries.

        Parameters
        ----------
        edges, synonyms : see :meth:`adjacency`
        subject_weight : weight of the edges from passages, which become nodes n, n + 1, ..., to the phrases that they
            are about; edges to their other phrases have weight 1. None for a graph of only phrases
        """
        return self.once((edges, synonyms, subject_weight), lambda: self._walk(edges, synonyms, subject_weight))

    def ordered(self, edges: Edges, synonyms: bool, subject_weight: float | None) -> Ordered:
        """The same for walks of a large graph, without a second copy of the edges in the order of this graph."""

        def make() -> Ordered:
            found = self._walk(edges, synonyms, subject_weight).ordered
            give_back()
            return found

        return self.once(("ordered", edges, synonyms, subject_weight), make)

    def _walk(self, edges: Edges, synonyms: bool, subject_weight: float | None) -> Walk:
        weights = self.adjacency(edges, synonyms)
        if subject_weight is not None:
            bridge = (self.contains + (subject_weight - 1.0) * self.about).tocsr()
            weights = vstack([hstack([weights, bridge.T]), hstack([bridge, csr_matrix((self.shape[0],) * 2)])]).tocsr()
        return Walk.of(weights)

    def without_common(self, share: float) -> "KnowledgeGraph":
        """The same graph, in which phrases of more than this share of the passages, in (0, 1], join nothing.

        A phrase that is nearly everywhere, such as the header of every page, joins all passages and does not tell them
        apart. The rows and columns stay, and passages keep their other phrases, as phrases that they name.
        """

        def make() -> "KnowledgeGraph":
            common = self.frequency > most_passages(share, self.shape[0])
            return self.without_phrases(common) if common.any() else self

        return self if share >= 1 else self.once(("without_common", share), make)

    def without_phrases(self, left_out: Mask) -> "KnowledgeGraph":
        """The same graph, in which some phrases, shape (n,), join nothing."""
        rare = diags((~left_out).astype(np.float64))
        joining = diags((~(left_out[self.heads] | left_out[self.tails])).astype(np.float64))
        statements = self.statements @ joining
        # The passage keeps the other phrase of a fact with one of these.
        named = (self.mentions - statements @ self.fact_phrases) @ rare
        parts = [named, self.about @ rare, statements, rare @ self.synonym_lists @ rare]
        named, about, statements, lists = (matrix.tocsr() for matrix in parts)
        for matrix in (named, about, statements, lists):
            matrix.eliminate_zeros()
        return replace(self, named=named, about=about, statements=statements, synonym_lists=lists)

    def projection(
        self, counted: PhraseCount = "contains", length_normalization: float = 0.0, passage_nodes: bool = False
    ) -> csr_matrix:
        """The matrix from scores of nodes to scores of passages, shape (p, n), or (p, n + p) with passage nodes.

        Parameters
        ----------
        counted : "contains" counts each phrase of a passage once (this package's default), "mentions" as often as
            the passage mentions it (the paper, section 2.3), "facts" once for each different fact that has it
            (the published code)
        length_normalization : a in [0, 1]; the sum is divided by (phrases of the passage) ** a, so that passages with
            many phrases are not favoured
        passage_nodes : a passage has the score of its own node instead; these nodes follow the phrases
        """

        def make() -> csr_matrix:
            p, n, _ = self.shape
            if passage_nodes:
                counts = csr_matrix((np.ones(p), np.arange(n, n + p), np.arange(p + 1)), shape=(p, n + p))
            elif counted == "contains":
                counts = self.contains
            else:
                counts = self.mentions if counted == "mentions" else self.facts_with_phrase
            if not length_normalization:
                return counts
            lengths = np.maximum(np.diff(self.contains.indptr), 1)
            return csr_matrix(diags(lengths**-length_normalization) @ counts)

        return self.once(("projection", counted, length_normalization, passage_nodes), make)

    def once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """A value derived from this graph for some options; computed on first use and cached."""
        if key not in self._made:
            self._made[key] = make()
        found: T = self._made[key]
        return found

    @cached_property
    def _made(self) -> dict[tuple[Any, ...], Any]:
        return {}


def most_passages(share: float, passages: int) -> float:
    """How many passages may have a phrase before it is common, for a largest share in (0, 1] of them.

    In a graph of fewer than 20 passages no phrase is common.
    """
    return share * passages if passages >= _FEWEST else float("inf")


def _stacked(old: csr_matrix, new: csr_matrix) -> csr_matrix:
    """`old` above `new`, whose columns begin with those of `old`."""
    return csr_matrix(
        (
            np.concatenate([old.data, new.data]),
            np.concatenate([old.indices, new.indices]),
            np.concatenate([old.indptr, new.indptr[1:] + old.indptr[-1]]),
        ),
        shape=(old.shape[0] + new.shape[0], new.shape[1]),
    )


def _columns_used(matrix: csr_matrix) -> Mask:
    used = np.zeros(matrix.shape[1], np.bool_)
    used[matrix.indices] = True
    return used


def give_back() -> None:
    """Give the memory that was freed back to the system; nothing where the C library is not glibc.

    glibc keeps freed memory that lies between memory in use. After a large graph is made, that is what the matrices on
    the way to it took: 66 MB of 316 for 100,000 chunks.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


@dataclass(frozen=True)
class GraphPart:
    """n phrases that have been read, then p passages, then the other nodes that the walk has reached."""

    phrases: Sequence[str]  # (n,)
    edges: csr_matrix  # weights, shape (nodes, nodes); no edge leaves a node whose row was not read
    counts: csr_matrix  # from scores of nodes to scores of passages, shape (p, nodes)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of passages and phrases."""
        return self.counts.shape[0], len(self.phrases)

    def for_search(self, config: SearchConfig) -> tuple[Walk, csr_matrix]:
        """See :meth:`KnowledgeGraph.for_search`; the options were applied when the part was read."""
        return Walk.of(self.edges, undirected=False), self.counts

    def walk(self, edges: Edges, synonyms: bool, subject_weight: float | None) -> Walk:
        """The part prepared for walks; the options were applied when it was read."""
        return Walk.of(self.edges, undirected=False)
