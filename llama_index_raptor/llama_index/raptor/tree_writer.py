"""One write to the tree: reads the part that changes, and builds layers of summaries over chunks, bottom-up.

The procedure of the paper (its sections on clustering and summarisation), with these rules where the paper and the
published code are silent or may not terminate:

- A layer of at most `max_root_children` nodes gets one root, or, with `root=False`, ends the tree, as published. A
  layer that would not shrink by `min_shrink` is not built. There are at most `max_layers` layers.
- A cluster of more than `max_cluster_tokens` tokens is split; splitting always terminates.
- A cluster of one node is not summarised: the node itself is passed to the next layer.
- Children are summarised in reading order (document, position).
- Rules do not write a summary again whose texts are those of an existing one. A change below a summary changes its id,
  but most summaries above a new chunk are written from the texts of the summary that they replace: its one new child
  reads like the old one. The old text and its vector are then kept. A language model may write another text; the cache
  keeps its replies.
- If the summarizer fails at a summary, rules write it until `retry_failed` has it and the summaries above it written
  again. Without a fallback it stays in the tree unwritten, and the layers above represent it by the mean of its
  children; the next write then tries again, too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import Change, Snapshot, SpaceRows, Steps, Summarizer, offload
from llama_index.ragkit.ids import content_id, reading_key
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.summaries import SummaryWriter
from llama_index.ragkit.storage.derived_nodes import derived_node, node_from_record, node_to_record
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import plain_text, sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.raptor.clustering.base import Clustering, limit_weight
from llama_index.raptor.config import TreeConfig
from llama_index.raptor.tree import Summary, Tree, summary_id
from llama_index.raptor.tree_rows import SUMMARIES, Rows, TreeRows, marks_of, tree_of

__all__ = ["LEVEL_KEY", "TreeWriter"]

LEVEL_KEY = "raptor_level"
_SUMMARIES_AT_ONCE = 2_000
_NODES_AT_ONCE = 10_000
_VECTORS_AT_ONCE = 1_000
_MOST_TEXTS = 50_000  # kept in memory


class TreeWriter:
    """Reads a part of the stored tree, changes it to a target structure, and writes the missing summaries."""

    def __init__(
        self,
        storage: IndexStorage,
        rows: TreeRows,
        resources: Resources,
        config: TreeConfig,
        clustering: Clustering,
        summaries: SummaryWriter,
        change: Change | None = None,
    ) -> None:
        self._storage = storage
        self._rows = rows
        self._resources = resources
        self._config = config
        self._clustering = clustering
        self._summaries = summaries
        self._rules = _rules_of(resources.summarizer, config)
        self._chunks, self._space = storage.space(), storage.space(SUMMARIES)
        pairs = () if change is None else zip(change.added, change.vectors, strict=True)
        self._at_hand: dict[str, NDArray[np.float32]] = {node.node_id: row for node, row in pairs}
        # The summaries and the records of texts that the write has stored, and None for deleted ones.
        self.nodes: dict[str, Summary | None] = {}
        self.texts: dict[str, Record | None] = {}
        self._take_part(Tree(), Snapshot.empty(), {})

    # -- reading ------------------------------------------------------------------------------------

    def read_around(self, nodes: Collection[str], new: Sequence[str] | None = None, max_layers: int = 0) -> Steps[None]:
        """Read the rows and records that a change of the children of nodes needs.

        `new` are chunks that will join them; None if no summary is written, which needs no records of chunks. If layers
        may be added above the roots, up to `max_layers`, all roots are read.
        """
        rows = yield from self._rows.around(nodes)
        roots = yield from self._rows.roots() if max_layers else ()
        if roots:
            highest = max(sorted(roots), key=roots.__getitem__)
            grows = len(roots) > 1 and roots[highest] < max_layers
            rows |= yield from self._rows.of([node for node in (roots if grows else [highest]) if node not in rows])
        leaves = [] if new is None else [*(node for node, row in rows.items() if not row["level"]), *new]
        yield from self._read_part(rows, leaves)

    def read_all(self) -> Steps[None]:
        """Read the whole tree and all chunks, except for vectors."""
        yield from self._read_part((yield from self._rows.all()), None)

    def _read_part(self, rows: Rows, leaves: Iterable[str] | None) -> Steps[None]:
        chunks = yield from self._chunks.described(None if leaves is None else dict.fromkeys(leaves))
        tree = tree_of(rows)
        self._take_part(tree, chunks, (yield from self._rows.texts(tree.summaries)))

    def _take_part(self, tree: Tree, leaves: Snapshot, written: Rows) -> None:
        """Begin with a part of the tree; the vectors of `leaves` are placeholders."""
        self.tree = tree
        self.failed: dict[str, Exception] = {}  # why summaries that were due since then have no text
        self._stored = dict(tree.summaries)
        self._written = dict(written)
        # The written summaries by what they were written from; records of earlier versions do not say it.
        self._known = {row["inputs"]: name for name, row in written.items() if "inputs" in row} if self._rules else {}
        self._leaves = leaves
        self._texts: dict[str, str] = {}
        self._tokens: dict[str, int] = {}
        self._firsts: dict[str, tuple[str, ...]] = {}

    # -- structure ----------------------------------------------------------------------------------

    def save(self, tree: Tree) -> Steps[None]:
        """Store the structure; delete summaries that are not in it, with their texts, vectors and cache entries."""
        yield from self.delete_texts([name for name in self._written if name not in tree.summaries])
        yield from self._change(tree, {name: s for name, s in self._stored.items() if name not in tree.summaries})

    def _change(self, tree: Tree, removed: Mapping[str, Summary]) -> Steps[None]:
        # The id of a summary is determined by its children.
        new = {name: summary for name, summary in tree.summaries.items() if name not in self._stored}
        if new or removed:
            yield from self._rows.change(new, removed)
            self.nodes |= {**dict.fromkeys(removed), **new}
        self._stored.update(new)
        for name in removed:
            del self._stored[name]

    def delete_texts(self, names: Sequence[str]) -> Steps[None]:
        """Delete the texts and vectors of summaries, so that those that stay in the tree are rewritten."""
        yield from self._summaries.release({n: self._written.pop(n) for n in names if n in self._written})
        stored = yield from self._rows.texts(names)
        if stored:
            yield from self._space.remove(stored)
            yield from self._rows.delete_texts(list(stored))
            self.texts.update(dict.fromkeys(stored))
            self._storage.struct.count(summaries=-len(stored))
            self._storage.commits.note_removal()  # a question that has begun may miss the vectors
        self._forget(names)

    def write(self, tree: Tree) -> Steps[Tree]:
        """Write every missing summary, layer by layer, then add layers up to the root; returns the stored tree.

        Stored summaries are kept until the end, so that a rebuild can reuse them for unchanged clusters. Those that
        failed are in `failed`.
        """
        if self._config.max_layers == 0:
            return tree
        while True:
            missing = [name for name in tree.summaries if name not in self._written and name not in self.failed]
            changed: Tree | None
            if missing:
                lowest = min(tree.level(name) for name in missing)
                layer = sorted(name for name in missing if tree.level(name) == lowest)
                equal = yield from self._equal(tree, layer)
                changed = yield from self._split_oversized(tree, [name for name in layer if name not in equal])
                if changed is None:
                    yield from self._change(tree, {})
                    yield from self._write_layer(tree, layer, lowest, equal)
                    continue
            else:
                changed = yield from self._add_layer(tree)
                if changed is None:
                    yield from self.save(tree)
                    return tree
            tree = changed

    def write_again(self, tree: Tree) -> Steps[Tree]:
        """Have the summarizer write the summaries that rules wrote, and the summaries above those that changed.

        A summary at which it fails again stays as it is.
        """
        todo = set(marks_of(self._written))
        for level in range(1, tree.height + 1):
            layer = sorted(name for name in todo if tree.level(name) == level)
            if layer:
                before = {name: self._written[name] for name in layer}
                yield from self._write_layer(tree, layer, level, {})
                after = {name: self._written[name] for name in layer}
                todo |= tree.ancestors(name for name in layer if after[name]["node"] != before[name]["node"])
                yield from self._summaries.release(before, after)
        return tree

    def _add_layer(self, tree: Tree) -> Steps[Tree | None]:
        """The tree with a layer of summaries above its roots, or None if the tree is complete."""
        roots = self._in_reading_order(tree, tree.roots(self._leaves.ids))
        few = len(roots) <= self._config.max_root_children
        if len(roots) < 2 or tree.height >= self._config.max_layers or (few and not self._config.root):
            return None
        clusters = yield from self._clusters(tree, roots, one=few)
        summarised = [cluster for cluster in clusters if len(cluster) > 1]
        alone = set(roots).difference(*summarised)
        shrink = self._config.min_shrink
        if not summarised or (shrink and len(summarised) + len(alone) > (1 - shrink) * len(roots)):
            return None
        return tree.join(summarised)

    def _split_oversized(self, tree: Tree, layer: Sequence[str]) -> Steps[Tree | None]:
        """The tree after splitting the first cluster of a layer that exceeds the token limit; None if there is none."""
        yield from self._weights([child for name in layer for child in tree.children(name)])
        for name in layer:
            children = self._in_reading_order(tree, tree.children(name))
            weights = yield from self._weights(children)
            if weights.sum() > self._config.max_cluster_tokens:
                clusters = yield from self._clusters(tree, children, one=True)
                parts = [cluster[0] if len(cluster) == 1 else summary_id(cluster) for cluster in clusters]
                if parts != [name]:
                    return tree.join(clusters).replace({name: parts})
        return None

    def _clusters(self, tree: Tree, nodes: Sequence[str], one: bool) -> Steps[list[list[str]]]:
        """Clusters of nodes, each within the token limit; `one` starts from a single cluster."""
        vectors = yield from self._vectors(tree, nodes)
        weights = yield from self._weights(nodes)
        if one:
            rows = [np.arange(len(nodes))]
        else:
            rows = yield from offload(self._clustering.cluster, vectors, weights)
        limit = self._config.max_cluster_tokens
        rows = yield from offload(limit_weight, rows, vectors, weights, limit, self._clustering)
        return [[nodes[int(i)] for i in cluster] for cluster in rows]

    # -- summaries ----------------------------------------------------------------------------------

    def _equal(self, tree: Tree, layer: Sequence[str]) -> Steps[dict[str, str]]:
        """For each summary of a layer that has the texts of a written one, the id of that one."""
        equal: dict[str, str] = {}
        for start in range(0, len(layer) if self._known else 0, _SUMMARIES_AT_ONCE):
            for name, children in (yield from self._children(tree, layer[start : start + _SUMMARIES_AT_ONCE])).items():
                twin = self._known.get(self._inputs(children))
                if twin in self._written:  # it may have been deleted, to be written again
                    equal[name] = twin
        return equal

    def _write_layer(self, tree: Tree, layer: Sequence[str], level: int, equal: Mapping[str, str]) -> Steps[None]:
        """Write the summaries of a layer, but for those that have the texts of others (:meth:`_equal`)."""
        for start in range(0, len(layer), _SUMMARIES_AT_ONCE):
            some = layer[start : start + _SUMMARIES_AT_ONCE]
            yield from self._write_summaries(tree, [name for name in some if name not in equal], level)
            yield from self._copy_summaries(tree, {name: equal[name] for name in some if name in equal}, level)

    def _write_summaries(self, tree: Tree, layer: Sequence[str], level: int) -> Steps[None]:
        children = yield from self._children(tree, layer)
        given = {name: [self._texts[child] for child in below] for name, below in children.items()}
        written, failed = yield from self._summaries.write(given, f"Summaries of layer {level}")
        self.failed.update(failed)
        if not written:
            return
        texts = {name: each.text for name, each in written.items()}
        vectors = yield from self._resources.embed(list(texts.values()), "summaries")
        inputs = {name: {"inputs": self._inputs(children[name])} if self._rules else {} for name in texts}
        details = {name: {**each.record(), **inputs[name]} for name, each in written.items()}
        yield from self._put(tree, level, texts, vectors, details)

    def _copy_summaries(self, tree: Tree, equal: Mapping[str, str], level: int) -> Steps[None]:
        """Store summaries whose texts and vectors are those of others."""
        if not equal:
            return
        twins = list(equal.values())
        yield from self._read(twins)
        found = yield from self._stored_vectors(dict.fromkeys(twins))
        details = {name: {"cache_keys": [], "inputs": self._written[twin]["inputs"]} for name, twin in equal.items()}
        texts = {name: self._texts[twin] for name, twin in equal.items()}
        yield from self._put(tree, level, texts, np.stack([found[twin] for twin in twins]), details)

    def _put(
        self,
        tree: Tree,
        level: int,
        texts: Mapping[str, str],
        vectors: NDArray[np.float32],
        details: Mapping[str, Record],
    ) -> Steps[None]:
        """Store the texts and vectors of some summaries, with what else their records hold."""
        nodes = [derived_node(name, text, {LEVEL_KEY: level}, tree.children(name)) for name, text in texts.items()]
        records: dict[str, Record] = {
            n.node_id: {"node": node_to_record(n), "first": list(self._first(tree, n.node_id)), **details[n.node_id]}
            for n in nodes
        }
        rows = SpaceRows(list(texts), vectors, [sort_key(node) for node in nodes], list(texts))
        known = yield from self._rows.texts(records)
        yield from self._rows.put_texts(records)
        yield from self._space.put(rows)
        self.texts.update(records)
        self._storage.struct.count(summaries=len(records.keys() - known.keys()))
        self._written.update(records)
        self._forget(records)

    def _inputs(self, children: Sequence[str]) -> str:
        """A digest of the texts from which rules write a summary, and of these rules."""
        return content_id(*self._rules, *(self._texts[child] for child in children))

    def _children(self, tree: Tree, summaries: Sequence[str]) -> Steps[dict[str, list[str]]]:
        """The children of summaries in reading order; their texts are read."""
        yield from self._read([child for name in summaries for child in tree.children(name)])
        return {name: self._in_reading_order(tree, tree.children(name)) for name in summaries}

    # -- texts, sizes and vectors of nodes ----------------------------------------------------------

    def _read(self, nodes: Sequence[str]) -> Steps[None]:
        """Read the texts of nodes; empty for a failed summary and a chunk that is no longer in the docstore."""
        if len(self._texts) + len(nodes) > _MOST_TEXTS:
            self._texts.clear()
        unread = [node for node in dict.fromkeys(nodes) if node not in self._texts]
        found = yield from self._storage.get_nodes([node for node in unread if node in self._leaves])
        found |= {node: node_from_record(self._written[node]["node"]) for node in unread if node in self._written}
        self._texts |= {node: plain_text(found[node]) if node in found else "" for node in unread}

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._texts.pop(name, None)
            self._tokens.pop(name, None)

    def _weights(self, nodes: Sequence[str]) -> Steps[NDArray[np.float64]]:
        """The number of tokens of each node."""
        new = [node for node in dict.fromkeys(nodes) if node not in self._tokens]
        for start in range(0, len(new), _NODES_AT_ONCE):
            some = new[start : start + _NODES_AT_ONCE]
            yield from self._read(some)
            self._tokens.update((node, count_tokens(self._texts[node])) for node in some)
        return np.array([self._tokens[node] for node in nodes], np.float64)

    def _vectors(self, tree: Tree, nodes: Sequence[str]) -> Steps[NDArray[np.float32]]:
        """The vector of each node; for a summary without text, the mean of its children's vectors."""
        unwritten: list[str] = []
        known: dict[str, None] = {}
        todo = list(nodes)
        while todo:
            node = todo.pop()
            if node in self._leaves or node in self._written:
                known[node] = None
            else:
                unwritten.append(node)
                todo.extend(tree.children(node))
        vectors = yield from self._stored_vectors(known)
        for node in sorted(set(unwritten), key=tree.level):
            vectors[node] = np.stack([vectors[child] for child in tree.children(node)]).mean(axis=0)
        return np.stack([vectors[node] for node in nodes])

    def _stored_vectors(self, nodes: Collection[str]) -> Steps[dict[str, NDArray[np.float32]]]:
        """The vectors of chunks and of summaries that have a text."""
        found = {node: self._at_hand[node] for node in nodes if node in self._at_hand}
        for space, belongs in ((self._chunks, True), (self._space, False)):
            wanted = [node for node in nodes if node not in found and (node in self._leaves) == belongs]
            for start in range(0, len(wanted), _VECTORS_AT_ONCE):
                rows = yield from space.fetch(wanted[start : start + _VECTORS_AT_ONCE])
                found.update(zip(rows.ids, rows.matrix, strict=True))
        return found

    def _in_reading_order(self, tree: Tree, nodes: Iterable[str]) -> list[str]:
        """Nodes sorted by their first chunk: document, then position."""
        return sorted(nodes, key=lambda node: (self._first(tree, node), node))

    def _first(self, tree: Tree, node: str) -> tuple[str, ...]:
        """The reading key of the first chunk below a node."""
        if node not in self._firsts:
            if node in self._leaves:
                self._firsts[node] = reading_key(self._leaves.record_of(node).key)
            elif node in self._written:
                self._firsts[node] = tuple(self._written[node]["first"])
            else:
                self._firsts[node] = min(self._first(tree, child) for child in tree.children(node))
        return self._firsts[node]


def _rules_of(summarizer: Summarizer | None, config: TreeConfig) -> tuple[str, ...]:
    """What decides how rules write a summary, besides its texts; empty if a language model writes it."""
    if summarizer is None or summarizer.needs_llm:
        return ()
    limits = map(str, (config.summary_tokens, config.max_cluster_tokens))
    return (*limits, *(f"{key}={value}" for key, value in sorted(summarizer.fingerprint.items())))
