"""`QuestionGraph`: the part of a graph that one question needs, read from its rows on demand."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.knowledge_graph import GraphPart, most_passages
from llama_index.hipporag.graph.passage import (
    FACT,
    LISTED,
    LISTS,
    NAMED,
    SUBJECT,
    Fact,
    cosine_of,
    is_passage,
    passage_number,
    phrase_number,
)
from llama_index.hipporag.pagerank.frontier import EPSILON, FetchedRows, Frontier
from llama_index.hipporag.search.query_seeds import Link, NamedPhrases, links_of_named
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.text.noun_phrases import shared_heads, terms
from llama_index.ragkit.sql.names import candidates
from llama_index.ragkit.storage.graph.edges import Records, joined
from llama_index.ragkit.storage.graph.interface import GraphReader, NodeRows, asked_once
from llama_index.ragkit.text.known_names import KnownNames, lookups, names_part

__all__ = ["SMALL", "Allowed", "QuestionGraph", "Reset"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Reset = tuple[Ints, Floats]
Allowed = Callable[[Ints], Mask]
"""Numbers of passages, distinct -> whether they may be returned."""

SMALL = 500
"""A graph of up to this many passages is read as far as a walk leads, for an exact answer."""

_EXACT = 1e-13  # epsilon of such a graph
_LARGE = 10_000  # passages from which epsilon no longer grows: a smaller graph is read further


class QuestionGraph:
    """Reads rows for one question, each once; its methods wait for a database.

    Parameters
    ----------
    allowed : which passages may be returned; the walk reaches neither others nor nodes known only from others
    supposed : phrases that may be too common to join passages
    epsilon : see :class:`~llama_index.hipporag.pagerank.frontier.Frontier`; None for one that depends on `passages`
    """

    def __init__(
        self,
        open_reader: Callable[[], AbstractContextManager[GraphReader]],
        allowed: Allowed | None,
        passages: int,
        config: SearchConfig,
        supposed: Collection[int] = (),
        epsilon: float | None = None,
    ) -> None:
        self.labels: dict[int, str] = {}  # node -> phrase or id of a passage, of all rows that were read
        self.common: set[int] = set()  # phrases in too many passages, of all rows that were read
        self.frontier = Frontier(self._fetch)
        self._open, self._allowed, self._config = open_reader, allowed, config
        self._most = most_passages(config.max_phrase_share, passages)
        self._supposed = supposed if np.isfinite(self._most) else ()
        self._epsilon = epsilon or (_EXACT if passages <= SMALL else EPSILON * min(1.0, passages / _LARGE))
        self._reader: GraphReader  # while a method reads
        self._seen_passages: dict[int, bool] = {}
        self._seen_phrases: dict[int, bool] = {}
        self._read: dict[int, NodeRows] = {}  # first rows that the walk has not asked for yet
        self._in_passages: list[tuple[Ints, Ints]] = []  # phrases, and passages that have them
        self._by_kind = np.zeros(256)
        self._by_kind[FACT] = 2.0 if config.published.edges == "published" else 1.0
        if config.published.passage_nodes:
            self._by_kind[FACT + 1 : SUBJECT] = 1.0
            self._by_kind[SUBJECT] = config.subject_weight

    # -- phrases ------------------------------------------------------------------------------------

    def links(self, question: str, normal: Callable[[str], str], by_specificity: bool, by_terms: bool) -> list[Link]:
        """The phrases that a question names, as :func:`~llama_index.hipporag.search.query_seeds.links_of_named` would
        find them in the whole graph; their rows are numbers of nodes.
        """
        question = names_part(question)
        with self._open() as self._reader:
            found = candidates(self._reader, lookups(question, normal), self._allowed is not None)
            exact = [*terms(question), *shared_heads(question)] if by_terms else []
            numbers = np.array([phrase_number(normal(term.text)) for term in exact], np.int64)
            nodes, frequency, mentioned = self._counted(np.union1d(found.nodes, numbers))
        phrases = [self.labels[node] for node in nodes]
        named = NamedPhrases(KnownNames(phrases, normal), phrases.__getitem__, frequency, mentioned, found.unspecific)
        links = links_of_named(named, question, by_specificity, by_terms)
        return [Link(link.asked, link.phrase, nodes[link.row], link.cosine, link.weight) for link in links]

    def frequencies(self, phrases: Sequence[str]) -> Mapping[str, float]:
        """For each of some phrases, the number of returnable passages with it, without phrases that none has."""
        with self._open() as self._reader:
            nodes, frequency, _ = self._counted(
                np.unique(np.array([phrase_number(each) for each in phrases], np.int64))
            )
        found = dict(zip(nodes, frequency.tolist(), strict=True))
        return {each: count for each in phrases if (count := found.get(phrase_number(each), 0.0))}

    def passages_with(self, facts: Sequence[Fact]) -> list[str]:
        """The returnable passages that may state facts: a fact of theirs joins the same phrases."""
        ends = {(phrase_number(head), phrase_number(tail)) for head, _, tail in facts}
        found: set[int] = set()
        with self._open() as self._reader:
            for part in _split(self._all_edges(np.unique(np.array([one for one, _ in ends], np.int64)))):
                node, records = int(part.nodes[0]), part.records
                others = np.array([other for one, other in ends if one == node and other != node], np.int64)
                joined_by = records["source"][(records["kind"] == FACT) & np.isin(records["neighbor"], others)]
                found.update(joined_by.tolist())
                if (node, node) in ends:
                    found.update(_in_passages(records).tolist())
            return list(self._labels_of(np.array(sorted(found), np.int64)).values())

    def _counted(self, asked: Ints) -> tuple[list[int], Floats, Mask]:
        """The stored nodes, the number of passages of each, and whether a passage names it."""
        rows = self._fetched(asked)
        heads = {int(part.nodes[0]): part for part in _split(rows)}
        cut = np.array([node for node, part in heads.items() if part.further[0]], np.int64)
        # The totals of a hub also count passages that may not be returned.
        whole = {} if self._allowed is None or not len(cut) else self._whole(cut)
        nodes = [node for node in heads if self.labels[node] or len(heads[node].records)]
        frequency, mentioned = np.zeros(len(nodes)), np.zeros(len(nodes), np.bool_)
        for i, node in enumerate(nodes):
            if node in rows.totals and node not in whole:
                totals = rows.totals[node]
                frequency[i], mentioned[i] = _total(totals), NAMED in totals["kind"]
            else:
                records = whole.get(node, heads[node]).records
                frequency[i], mentioned[i] = len(_in_passages(records)), NAMED in records["kind"]
        self._read |= heads
        return nodes, frequency, mentioned

    # -- the walk -----------------------------------------------------------------------------------

    def read(self, resets: Sequence[Reset], count: int) -> list[str]:
        """Read the rows that walks need, and return the best `count` passages of each walk.

        A walk that meets a common phrase begins again without it, since edges before it were weighed with it.
        """
        with self._open() as self._reader:
            if self._supposed:
                self._fetched(np.array(sorted(self._supposed), np.int64))
            while True:
                known = len(self.common)
                self._in_passages = []
                self.frontier = Frontier(self._fetch, damping=self._config.damping, epsilon=self._epsilon)
                best = [self._walked(*reset, count) for reset in resets]
                if len(self.common) == known:
                    break
            labels = self._labels_of(np.unique(np.concatenate([np.empty(0, np.int64), *best])))
        return [label for node in dict.fromkeys(np.concatenate(best).tolist()) if (label := labels[node])]

    def _walked(self, nodes: Ints, weights: Floats, count: int) -> Ints:
        """Read the rows that a walk needs, and return the passages that it reaches most."""
        self.frontier.read(nodes, weights)
        ids, kept = self.frontier.ids, self.frontier.kept
        if self._config.published.passage_nodes:
            passages = is_passage(ids)
            found, scores = ids[passages], kept[passages]
        else:
            pairs = [(ids[:0], ids[:0]), *self._in_passages]
            phrases, held = (np.concatenate(part) for part in zip(*pairs, strict=True))
            found, places = np.unique(held, return_inverse=True)
            scores = np.bincount(places, kept[self.frontier.places_of(phrases)], len(found)).astype(np.float64)
        return found[np.argsort(-scores, kind="stable")[:count]]

    def part(self, chunks: Sequence[str], links: Sequence[Link], contents: HippoRAGState | None) -> GraphPart:
        """The part that was read, over some passages; the search may also need their phrases and facts, `contents`."""
        ids = self.frontier.ids
        read = ids[(self.frontier.further >= 0) & ~is_passage(ids)]
        empty = phrase_number("")  # a phrase by the published rule; other nodes without a label are unknown
        phrase_nodes = [node for node in read.tolist() if self.labels[node] or node == empty]
        phrase_nodes = list(dict.fromkeys([*phrase_nodes, *(phrase_number(link.phrase) for link in links)]))
        phrases = [self.labels[node] for node in phrase_nodes]
        first = np.array([*phrase_nodes, *map(passage_number, chunks)], np.int64)
        rest = ids[~np.isin(ids, first)]
        order = self.frontier.places_of(np.concatenate([first, rest]))
        size = len(order)
        place = np.empty(len(ids), np.int64)
        place[order[order >= 0]] = np.flatnonzero(order >= 0)
        edges = self.frontier.at_hand().tocoo()
        weights = csr_matrix((edges.data, (place[edges.row], place[edges.col])), shape=(size, size))
        p, n = len(chunks), len(phrases)
        if contents is None:
            counts = csr_matrix((np.ones(p), np.arange(n, n + p), np.arange(p + 1)), shape=(p, size))
        else:
            counts = self._counts(contents, dict(zip(phrases, range(n), strict=True)), size)
        return GraphPart(phrases, weights, counts)

    def _counts(self, contents: HippoRAGState, rows: Mapping[str, int], size: int) -> csr_matrix:
        """The projection of the passages' contents, over the nodes of the part."""
        published, names, p = self._config.published, contents.phrases, len(contents.chunks)
        numbers = np.array([phrase_number(name) for name in names], np.int64)
        if published.length_normalization and np.isfinite(self._most):  # common phrases add no length, read or not
            unread = np.setdiff1d(numbers, self.frontier.ids[self.frontier.further >= 0])
            with self._open() as self._reader:
                self._fetched(unread)  # notes the common ones
        common = np.isin(numbers, np.array(sorted(self.common), np.int64))
        seen = contents.graph.without_phrases(common) if common.any() else contents.graph
        found = seen.projection(published.counted, published.length_normalization, published.passage_nodes).tocoo()
        columns = np.array([*(rows.get(name, -1) for name in names), *range(len(rows), len(rows) + p)], np.int64)
        columns = columns[found.col]
        here = columns >= 0
        return csr_matrix((found.data[here], (found.row[here], columns[here])), shape=(p, size))

    def _fetch(self, unknown: Ints, hubs: Ints) -> FetchedRows:
        """Rows for the walk, see :data:`~llama_index.hipporag.pagerank.frontier.Fetch`."""
        at_hand = np.array([node in self._read for node in unknown.tolist()], np.bool_)
        new = unknown[~at_hand]
        parts = [self._read[node] for node in unknown[at_hand].tolist()]
        if len(new) + len(hubs):
            parts.append(self._fetched(new, hubs))
        nodes, further = (np.concatenate(column) for column in zip(*(part[:2] for part in parts), strict=True))
        degrees = np.concatenate([np.diff(part.indptr) for part in parts])
        owners, records = np.repeat(np.arange(len(nodes)), degrees), joined([part.records for part in parts])
        if self.common:
            common = np.array(sorted(self.common), np.int64)
            is_common = np.isin(nodes, common)
            further = np.where(is_common, 0, further)
            kept = ~(is_common[owners] | np.isin(records["neighbor"], common))
            owners, records = owners[kept], records[kept]
        if not self._config.published.passage_nodes:
            of_passages = (records["kind"] > FACT) & (records["kind"] <= SUBJECT) & ~is_passage(nodes[owners])
            self._in_passages.append((nodes[owners[of_passages]], records["neighbor"][of_passages]))
        owners, neighbors, weights = self._weighed(owners, records)
        return FetchedRows(nodes, further, np.searchsorted(owners, np.arange(len(nodes) + 1)), neighbors, weights)

    def _weighed(self, owners: Ints, records: Records) -> tuple[Ints, Ints, Floats]:
        """The edges of a walk: owners, neighbors, and weights, added up as in the graph in memory."""
        kinds, counts, neighbors = records["kind"], records["count"], records["neighbor"]
        weights: Floats = self._by_kind[kinds] * counts
        listed = kinds > SUBJECT
        if not self._config.synonyms or not listed.any():
            kept = weights > 0
            return owners[kept], neighbors[kept], weights[kept]
        apart = (kinds > FACT) & ~listed
        apart &= weights > 0
        joins = np.flatnonzero(listed | (kinds == FACT))
        pairs, place = np.unique(np.stack([owners[joins], neighbors[joins]]), axis=1, return_inverse=True)
        place = place.ravel()
        facts, lists, others = (
            np.bincount(place, np.where(kinds[joins] == kind, values[joins], 0.0), pairs.shape[1])
            for kind, values in ((FACT, counts), (LISTS, cosine_of(counts)), (LISTED, cosine_of(counts)))
        )
        if self._config.published.edges == "published":
            between = np.where(lists > 0, lists, facts) + np.where(others > 0, others, facts)
        else:
            between = facts + np.minimum(lists, others)
        owners = np.concatenate([owners[apart], pairs[0][between > 0]])
        order = np.argsort(owners, kind="stable")
        neighbors = np.concatenate([neighbors[apart], pairs[1][between > 0]])
        return owners[order], neighbors[order], np.concatenate([weights[apart], between[between > 0]])[order]

    # -- rows ---------------------------------------------------------------------------------------

    def _fetched(self, nodes: Ints, hubs: Ints | Sequence[int] = ()) -> NodeRows:
        """Rows without edges from passages that may not be returned; their labels are kept."""
        rows = self._reader.fetch(nodes, hubs)
        for node, label in zip(rows.nodes.tolist(), rows.labels, strict=True):
            if label or node not in self.labels:
                self.labels[node] = label
        if self._allowed is not None:
            seen = self._visible(self._allowed, rows.records)
            owners = np.repeat(np.arange(len(rows.nodes)), np.diff(rows.indptr))[seen]
            indptr = np.searchsorted(owners, np.arange(len(rows.nodes) + 1))
            rows = rows._replace(indptr=indptr, records=rows.records[seen])
        self._note_common(rows)
        return rows

    def _all_edges(self, nodes: Ints) -> NodeRows:
        """All edges of nodes, including those of hubs."""
        rows = self._fetched(nodes)
        cut = rows.nodes[rows.further > 0]
        return rows if not len(cut) else self._fetched(rows.nodes[rows.further == 0], cut)

    def _whole(self, hubs: Ints) -> dict[int, NodeRows]:
        return {int(part.nodes[0]): part for part in _split(self._fetched(hubs[:0], hubs))}

    def _labels_of(self, nodes: Ints) -> dict[int, str]:
        """Labels of nodes; unknown ones are read."""
        unknown = np.array([node for node in nodes.tolist() if not self.labels.get(node)], np.int64)
        if len(unknown):
            self._fetched(unknown)
        return {node: self.labels[node] for node in nodes.tolist()}

    def _note_common(self, rows: NodeRows) -> None:
        """Remember the phrases of rows that are in too many passages."""
        degrees = np.diff(rows.indptr)
        large = (degrees > self._most) | (rows.further > 0)
        for i in np.flatnonzero(large & ~is_passage(rows.nodes)).tolist():
            node = int(rows.nodes[i])
            if rows.further[i]:
                count = _total(rows.totals[node])
                if count > self._most and self._allowed is not None:
                    self._whole(rows.nodes[i : i + 1])  # counts the passages that may be returned
                    continue
            else:
                count = len(_in_passages(rows.records[rows.indptr[i] : rows.indptr[i + 1]]))
            if count > self._most:
                self.common.add(node)

    def _visible(self, allowed: Allowed, records: Records) -> Mask:
        """Which edges come from returnable passages, or join phrases that such passages have."""
        listed = records["kind"] > SUBJECT
        seen: Mask = np.ones(len(records), np.bool_)
        seen[~listed] = asked_once(self._seen_passages, allowed, records["source"][~listed])
        if self._config.synonyms and listed.any():
            known = partial(self._have_passages, allowed)
            seen[listed] = asked_once(self._seen_phrases, known, records["neighbor"][listed])
        return seen

    def _have_passages(self, allowed: Allowed, phrases: Ints) -> Mask:
        """Which phrases are in a passage that may be returned."""
        rows = self._reader.fetch(phrases)
        cut = rows.nodes[rows.further > 0]
        if len(cut):
            rows = self._reader.fetch(rows.nodes[rows.further == 0], cut)
        held = rows.records[rows.records["kind"] <= SUBJECT]
        owners = np.repeat(rows.nodes, np.diff(rows.indptr))[rows.records["kind"] <= SUBJECT]
        shown = owners[asked_once(self._seen_passages, allowed, held["source"])]
        return np.isin(phrases, shown)


def _in_passages(records: Records) -> Ints:
    """The passages that have the phrase of these records."""
    found: Ints = records["neighbor"][(records["kind"] > FACT) & (records["kind"] <= SUBJECT)]
    return found


def _total(totals: Records) -> int:
    """The number of passages with the phrase of a hub."""
    return int(totals["records"][(totals["kind"] > FACT) & (totals["kind"] <= SUBJECT)].sum())


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
