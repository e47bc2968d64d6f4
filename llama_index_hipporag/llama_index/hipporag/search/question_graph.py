"""`QuestionGraph`: the part of a stored graph that one question needs, read as it is needed."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import inf

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.passage_edges import FACT, NAMED, SUBJECT, is_passage, phrase_number
from llama_index.hipporag.pagerank.frontier import EPSILON, FetchedRows, FrontierEstimate, frontiers
from llama_index.hipporag.search.query_seeds import Link, NamedPhrases, links_of_named
from llama_index.hipporag.text.normalization import Normalizer, normalise
from llama_index.hipporag.text.terms import shared_heads, terms
from llama_index.ragkit.sql.names import candidates
from llama_index.ragkit.storage.graph.edges import joined
from llama_index.ragkit.storage.graph.interface import GraphReader, NodeRows
from llama_index.ragkit.text.known_names import KnownNames, lookups
from llama_index.ragkit.text.mentions import names_part

__all__ = ["Allowed", "QuestionGraph"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Allowed = Callable[[Ints], Mask]
"""Numbers of passages, distinct -> whether they may be returned."""


class QuestionGraph:
    """Reads rows for one question, each once.

    Parameters
    ----------
    reader : of the graph
    allowed : which passages may be returned: others are not walked to, nor what is known from them alone; None for all
    subject_weight : of the edge between a passage and a phrase that it is about; others have 1
    most : passages that a phrase may be in for it to join them
    supposed : phrases that are perhaps in more

    Attributes
    ----------
    labels : node -> phrase or id of a passage, of all rows that were read
    common : phrases in more passages than `most`, of all rows that were read
    """

    def __init__(
        self,
        reader: GraphReader,
        allowed: Allowed | None = None,
        subject_weight: float = 10.0,
        most: float = inf,
        supposed: Collection[int] = (),
    ) -> None:
        self.labels: dict[int, str] = {}
        self.common: set[int] = set()
        self._most = most
        self._supposed = supposed if most < inf else ()
        self._reader = reader
        self._allowed = allowed
        self._known: dict[int, bool] = {}  # passages, whether they are allowed
        self._weights = np.ones(256)
        self._weights[SUBJECT] = subject_weight
        self._read: dict[int, NodeRows] = {}  # first rows that the walk has not asked for yet

    @property
    def calls(self) -> int:
        """Number of statements that were sent."""
        return self._reader.calls

    def links(self, question: str, normalizer: Normalizer, by_specificity: bool, by_terms: bool) -> list[Link]:
        """The phrases that a question names, as :func:`~llama_index.hipporag.search.query_seeds.links_of_text` finds
        them in the whole graph; their rows are numbers of nodes.
        """
        question = names_part(question)
        normal = partial(normalise, mode=normalizer)
        found = candidates(self._reader, lookups(question, normal), self._allowed is not None)
        exact = [*terms(question), *shared_heads(question)] if by_terms else []
        numbers = np.array([phrase_number(normal(term.text)) for term in exact], np.int64)
        rows = self._reader.fetch(np.union1d(found.nodes, numbers))
        named, nodes = self._named(rows, normalizer, found.unspecific)
        links = links_of_named(named, question, normalizer, by_specificity, by_terms)
        return [Link(link.asked, link.phrase, nodes[link.row], link.cosine, link.weight) for link in links]

    def walk(self, nodes: Ints, weights: Floats, damping: float, epsilon: float = EPSILON) -> FrontierEstimate:
        """Personalised PageRank from some nodes, see :func:`~llama_index.hipporag.pagerank.frontier.frontiers`.

        A walk that meets a common phrase begins again without it: the edges of what it came from were weighed with it.
        """
        if self._supposed:
            self._allowed_part(self._reader.fetch(np.array(sorted(self._supposed), np.int64)))
        while True:
            known = len(self.common)
            *_, estimate = frontiers(self.fetch, nodes, weights, damping=damping, epsilon=epsilon)
            if len(self.common) == known:
                return estimate

    def fetch(self, unknown: Ints, hubs: Ints) -> FetchedRows:
        """Rows for the walk, see :data:`~llama_index.hipporag.pagerank.frontier.Fetch`."""
        at_hand = np.array([node in self._read for node in unknown.tolist()], np.bool_)
        new = unknown[~at_hand]
        parts = [self._read.pop(node) for node in unknown[at_hand].tolist()]
        if len(new) + len(hubs):
            parts.append(self._allowed_part(self._reader.fetch(new, hubs)))
        nodes, further = (np.concatenate(column) for column in zip(*(part[:2] for part in parts), strict=True))
        degrees = np.concatenate([np.diff(part.indptr) for part in parts])
        records = joined([part.records for part in parts])
        if self.common:
            common = np.array(sorted(self.common), np.int64)
            is_common = np.isin(nodes, common)
            further = np.where(is_common, 0, further)
            owners = np.repeat(np.arange(len(nodes)), degrees)
            kept = ~(is_common[owners] | np.isin(records["neighbor"], common))
            degrees, records = np.bincount(owners[kept], minlength=len(nodes)), records[kept]
        return FetchedRows(
            nodes=nodes,
            further=further,
            indptr=np.concatenate([[0], np.cumsum(degrees)]),
            neighbors=records["neighbor"],
            weights=self._weights[records["kind"]] * records["count"],
        )

    def labels_of(self, nodes: Ints) -> list[str]:
        """Labels of nodes, read where they are not known."""
        unknown = np.array([node for node in nodes.tolist() if node not in self.labels], np.int64)
        if len(unknown):
            self._allowed_part(self._reader.fetch(unknown))
        return [self.labels[node] for node in nodes.tolist()]

    def _named(
        self, rows: NodeRows, normalizer: Normalizer, unspecific: frozenset[str]
    ) -> tuple[NamedPhrases, Sequence[int]]:
        """The phrases of rows as a selection to be found in a question, and their nodes."""
        heads = {int(part.nodes[0]): part for part in _split(self._allowed_part(rows))}
        cut = np.array([node for node, part in heads.items() if part.further[0]], np.int64)
        # The totals of a hub count passages that may not be returned, too.
        whole = {} if self._allowed is None or not len(cut) else self._whole(cut)
        nodes = [node for node in heads if self.labels[node] or len(heads[node].records)]
        frequency, mentioned = np.zeros(len(nodes)), np.zeros(len(nodes), np.bool_)
        for i, node in enumerate(nodes):
            if node in rows.totals and node not in whole:
                totals = rows.totals[node]
                frequency[i] = totals["records"][totals["kind"] != FACT].sum()
                mentioned[i] = NAMED in totals["kind"]
            else:
                kinds = whole.get(node, heads[node]).records["kind"]
                frequency[i], mentioned[i] = (kinds != FACT).sum(), NAMED in kinds
        self._read |= heads
        phrases = [self.labels[node] for node in nodes]
        known = KnownNames(phrases, partial(normalise, mode=normalizer))
        return NamedPhrases(known, phrases.__getitem__, frequency, mentioned, unspecific), nodes

    def _whole(self, hubs: Ints) -> dict[int, NodeRows]:
        rows = self._reader.fetch(hubs[:0], hubs)
        return {int(part.nodes[0]): part for part in _split(self._allowed_part(rows))}

    def _allowed_part(self, rows: NodeRows) -> NodeRows:
        """Rows without edges from passages that may not be returned; their labels are kept."""
        for node, label in zip(rows.nodes.tolist(), rows.labels, strict=True):
            if label or node not in self.labels:
                self.labels[node] = label
        if self._allowed is None:
            self._note_common(rows)
            return rows
        seen = self._seen(self._allowed, rows.records["source"])
        owners = np.repeat(np.arange(len(rows.nodes)), np.diff(rows.indptr))[seen]
        indptr = np.searchsorted(owners, np.arange(len(rows.nodes) + 1))
        return rows._replace(indptr=indptr, records=rows.records[seen])

    def _note_common(self, rows: NodeRows) -> None:
        """Remember the phrases of rows that are in too many passages."""
        degrees = np.diff(rows.indptr)
        large = (degrees > self._most) | (rows.further > 0)
        for i in np.flatnonzero(large & ~is_passage(rows.nodes)).tolist():
            if _passages_of(rows, i) > self._most:
                self.common.add(int(rows.nodes[i]))

    def _seen(self, allowed: Allowed, sources: Ints) -> Mask:
        """Which of some passages are allowed; each is asked for once."""
        distinct, inverse = np.unique(sources, return_inverse=True)
        new = np.array([passage for passage in distinct.tolist() if passage not in self._known], np.int64)
        if len(new):
            self._known.update(zip(new.tolist(), allowed(new).tolist(), strict=True))
        known: Mask = np.array([self._known[passage] for passage in distinct.tolist()], np.bool_)[inverse]
        return known


def _passages_of(rows: NodeRows, i: int) -> int:
    """In how many passages the phrase of a row is."""
    if rows.further[i]:
        totals = rows.totals[int(rows.nodes[i])]
        return int(totals["records"][totals["kind"] != FACT].sum())
    return int(np.count_nonzero(rows.records["kind"][rows.indptr[i] : rows.indptr[i + 1]] != FACT))


def _split(rows: NodeRows) -> list[NodeRows]:
    """The rows of each node."""
    ends = rows.indptr.tolist()
    return [
        rows._replace(
            nodes=rows.nodes[i : i + 1],
            further=rows.further[i : i + 1],
            indptr=np.array([0, ends[i + 1] - ends[i]]),
            records=rows.records[ends[i] : ends[i + 1]],
        )
        for i in range(len(rows.nodes))
    ]
