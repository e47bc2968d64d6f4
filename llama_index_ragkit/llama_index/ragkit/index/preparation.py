"""`Preparation`: what a write computes before it changes anything: vectors and extractions of its nodes."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from llama_index.core.schema import BaseNode, Document
from numpy.typing import NDArray

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.extraction.failure_watch import all_failed
from llama_index.ragkit.index.advantage import measure_advantage
from llama_index.ragkit.index.builder import Builder, Change
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.serving import stored_chunks
from llama_index.ragkit.index.write_checks import WriteChecks
from llama_index.ragkit.index.write_plan import WritePlan, first_part
from llama_index.ragkit.llm.embeddings import as_matrix, describe_model, same_vectors
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.nodes import embed_text, sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.vectors.self_retrieval import can_measure
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["Preparation", "Vectors", "shared_vectors"]

logger = logging.getLogger(__name__)

Vectors = Mapping[str, NDArray[np.float32]]


@dataclass
class Preparation:
    """Embeds the nodes of a write and reads them with the extractor."""

    storage: IndexStorage
    resources: Resources
    builder: Builder[Any, Any]
    method: str
    checks: WriteChecks[Any]

    def without_records(self, nodes: Sequence[BaseNode]) -> tuple[list[BaseNode], dict[str, Record]]:
        """Nodes for the docstore, the last of each id, and the extractions in their metadata."""
        extractor = self.resources.extractor
        given: dict[str, Record] = {}
        plain: dict[str, BaseNode] = {}
        for node in nodes:
            if extractor is not None and extractor.record_key in node.metadata:
                node = node.model_copy(deep=True)
                record = extractor.take_record(node)
                if record is not None:
                    given[node.node_id] = record
            plain[node.node_id] = node
        return list(plain.values()), given

    def embed(
        self, nodes: Sequence[BaseNode], rows: Snapshot, stored: Collection[str], known: Vectors
    ) -> Steps[Vectors]:
        """Vectors by node id; none for nodes without text. Existing, stored and known embeddings are reused, and those
        of other indexes of the storage context."""
        with_text = [node for node in nodes if node.embedding is not None or embed_text(node)]
        if not with_text:
            return {}
        yield from self.checks.embed_model()
        struct = self.storage.struct
        if not struct.embedding:
            struct.embedding = yield from describe_model(self.resources.embed_model)
        vectors: dict[str, Any] = {n.node_id: n.get_embedding() for n in with_text if n.embedding is not None}
        vectors.update({node_id: rows.vectors_of([node_id])[0] for node_id in stored if node_id in rows})
        vectors.update({node.node_id: known[node.node_id] for node in with_text if node.node_id in known})
        if self.builder.embeds_chunks:
            unknown = [node for node in with_text if node.node_id not in vectors]
            shared = yield from shared_vectors(self.storage, unknown)
            vectors.update(shared)
            if shared:
                logger.info("%s: %d are embedded already, in another index of the context.", self.method, len(shared))
        bare = [node for node in with_text if node.node_id not in vectors]
        if self.builder.embeds_chunks or self.storage.external is not None:
            embedded = yield from self.resources.embed([embed_text(node) for node in bare], "chunks")
        else:
            embedded = np.zeros((len(bare), struct.embedding["dimension"]), dtype=np.float32)
        vectors.update({node.node_id: vector for node, vector in zip(bare, embedded, strict=True)})
        ordered = [vectors[node.node_id] for node in with_text]
        matrix = as_matrix(ordered, [embed_text(node) for node in with_text], struct.embedding["dimension"])
        return {node.node_id: row for node, row in zip(with_text, matrix, strict=True)}

    def extract(
        self,
        nodes: Sequence[BaseNode],
        given: Mapping[str, Record],
        written: Sequence[BaseNode],
        again: Collection[str],
    ) -> Steps[dict[str, NodeEntry]]:
        """Manifest entries by node id, with the results of the extractor; `written` has unchanged nodes too.

        It is an error if the extractor failed at every one of several nodes, or documents, none of which failed before,
        and the model gave no reply to any.
        """
        entries = {node.node_id: NodeEntry(node.ref_doc_id, sort_key(node), given.get(node.node_id)) for node in nodes}
        todo = [node for node in nodes if node.node_id not in given and embed_text(node)]
        extractor = self.resources.extractor
        if extractor is None or not todo:
            return entries
        extracted = yield from self.resources.extract(todo, self.storage.cache_user, written)
        failed = {
            f"Node {found.read_with!r}": found.error
            for found in extracted
            if (found.record is None or found.by) and found.error is not None and not found.unreadable
        }
        read = {found.read_with for found in extracted}  # nodes that were read together failed together
        if extractor.needs_llm and not again and 1 < len(failed) == len(read):
            raise all_failed("documents" if extractor.reads_documents else "nodes", failed)
        for found in extracted:
            old = entries[found.node_id]
            entries[found.node_id] = NodeEntry(
                old.ref_doc_id, old.key, found.record, found.error, list(found.cache_keys), step=found.step, by=found.by
            )
        return entries

    def read_with(self, nodes: Sequence[BaseNode], plan: WritePlan, given: Collection[str]) -> list[str]:
        """Ids of unchanged nodes that are read again, since their documents are read as wholes and have changed;
        `given` are nodes whose extraction is in their metadata.
        """
        extractor = self.resources.extractor
        if extractor is None or not extractor.reads_documents:
            return []
        reads = set(plan.read)
        changed = {node.ref_doc_id for node in nodes if node.node_id in reads and node.node_id not in given}
        changed |= {entry.ref_doc_id for entry in plan.obsolete.values()}
        return [node.node_id for node in nodes if node.ref_doc_id in changed - {None} and node.node_id not in reads]

    def advantage(
        self, change: Change, documents: Sequence[Document], nodes: Sequence[BaseNode]
    ) -> Steps[tuple[float, int]]:
        """See :func:`~llama_index.ragkit.index.advantage.measure_advantage`; for a change that is prepared.

        Parameters
        ----------
        documents, nodes : of the write; of many, the first part in stores counts
        """
        struct, resources = self.storage.struct, self.resources
        known = struct.advantage, struct.measured
        if not can_measure(len(change.added), struct.measured):
            return known  # before all that is given is hashed
        found, texts, vectors = self.builder.searched(change)
        given = documents or nodes
        first = first_part(given)
        if len(first) < len(given):
            names = {each.node_id for each in first}
            ids = [node.ref_doc_id if documents else node.node_id for node in found]
            rows = [row for row, node_id in enumerate(ids) if node_id in names]
            found, texts, vectors = [found[row] for row in rows], [texts[row] for row in rows], vectors[rows]
        shown = resources.show_progress
        return (yield from measure_advantage(found, texts, vectors, known, resources.embed_model, show_progress=shown))

    def announce(self, plan: WritePlan, given: int) -> None:
        """Log what a write is going to do, before it costs anything."""
        if not logger.isEnabledFor(logging.INFO):
            return
        extractor = self.resources.extractor
        reads = "" if extractor is None else f", {len(plan.read)} to read with {type(extractor).__name__}"
        if extractor is not None and extractor.needs_llm:
            reads += f" ({self.resources.num_workers} LLM calls at a time)"
        new = len(plan.write) - len(plan.repeated)
        model = f" with {self.resources.embed_model.model_name}" if new else ""
        chunks = "1 chunk" if given == 1 else f"{given} chunks"
        logger.info(
            "%s: %s given, %d to embed%s%s, %d unchanged, %d to remove.",
            self.method, chunks, new, model, reads, given - len(plan.write), len(plan.removed),
        )  # fmt: skip


def shared_vectors(storage: IndexStorage, nodes: Sequence[BaseNode]) -> Steps[dict[str, NDArray[np.float32]]]:
    """The vectors that other indexes of the storage context have of these chunks, by node id.

    An index whose vectors are of other texts, such as chunks with headers, or in another data type, has none. A chunk
    whose embedded text differs from that of the docstore, for example without a key of its metadata, has none either.
    """
    found: dict[str, NDArray[np.float32]] = {}
    store = storage.context.index_store
    try:
        structs = (yield from call(store.index_structs, store.async_index_structs)) if nodes else []
    except (LookupError, TypeError, ValueError, RagKitError) as error:  # one is damaged, or its package not imported
        logger.debug("No vectors of other indexes: %s", error)
        return found
    others = [each for each in structs if isinstance(each, DerivedStruct) and _is_alike(each, storage.struct)]
    if not others:
        return found
    known = yield from storage.get_nodes([node.node_id for node in nodes])
    keys = {node.node_id: sort_key(node) for node in nodes if _is_same(node, known)}
    for other in others:
        missing = [node_id for node_id in keys if node_id not in found]
        try:
            rows = yield from stored_chunks(storage.context, _class_of(other).method, other, missing)
        except RagKitError as error:  # it is damaged, or another process is changing it
            logger.debug("No vectors of index %s: %s", other.index_id, error)
            continue
        same = [i for i in missing if i in rows and rows.record_of(i).key == keys[i]]
        found.update(zip(same, rows.vectors_of(same), strict=True) if same else ())
    return found


def _is_alike(other: DerivedStruct, struct: DerivedStruct) -> bool:
    """Whether the chunks of another index have the vectors that an index needs."""
    if other.index_id == struct.index_id or not other.embedding or _class_of(other) is None:
        return False
    same = other.embedding["name"] == struct.embedding["name"] and same_vectors(other.embedding, struct.embedding)
    return (
        same and other.params.get("dtype") == struct.params.get("dtype") and _class_of(other).builder_cls.embeds_chunks
    )


def _class_of(struct: DerivedStruct) -> Any:
    """The class of an index; None if it is registered nowhere."""
    return INDEX_STRUCT_TYPE_TO_INDEX_CLASS.get(struct.get_type())  # type: ignore[call-overload]


def _is_same(node: BaseNode, known: Mapping[str, BaseNode]) -> bool:
    """Whether the text of a node that is embedded is that of the docstore's; its hash says nothing of templates."""
    return node.node_id in known and embed_text(known[node.node_id]) == embed_text(node)
