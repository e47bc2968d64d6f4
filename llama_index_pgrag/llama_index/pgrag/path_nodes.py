"""Fact paths as nodes that can be cited like their sources, and as a nested outline."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.pgrag.maps.mind_map import Path, nested
from llama_index.pgrag.search.ranking import MergedPath
from llama_index.ragkit import Steps
from llama_index.ragkit.storage.derived_nodes import NodeFetch, derived_node
from llama_index.ragkit.validation import check_choice

__all__ = ["ContextPath", "Format", "context_text", "outline_node", "path_node", "sources_of"]

_READ = 100  # nodes of a result whose metadata are compared
Format = Literal["outline", "json"]


def path_node(result: MergedPath, fetch: NodeFetch) -> Steps[TextNode]:
    """A fact path as a node."""
    metadata = {"pgrag_path": list(result.fact.path), "pgrag_documents": result.documents}
    node = derived_node(result.fact.id, result.fact.text, metadata, result.sources)
    return (yield from _citable(node, result, fetch))


def outline_node(name: str, text: str, topic: str, whole: MergedPath, fetch: NodeFetch) -> Steps[TextNode]:
    """The outline `text` of some paths of a topic as a node; `whole` has the paths, merged into one result."""
    metadata = {"pgrag_topic": topic, "pgrag_documents": whole.documents}
    return (yield from _citable(derived_node(name, text, metadata, whole.sources), whole, fetch))


def sources_of(results: Iterable[MergedPath]) -> list[str]:
    """Ids of the nodes that are read for these results, each once."""
    return list(dict.fromkeys(node_id for result in results for node_id in result.sources[:_READ]))


def _citable(node: TextNode, result: MergedPath, fetch: NodeFetch) -> Steps[TextNode]:
    """A derived node with the metadata that all its sources share, and their document if they have only one.

    Metadata that the sources hide from the LLM are also hidden here; none are part of the text to embed.
    """
    sources: list[BaseNode] = []
    for node_id in result.sources[:_READ]:
        source = yield from fetch(node_id)
        sources += [] if source is None else [source]
    shared = _shared_metadata(sources)
    documents = result.documents
    hidden = {key for source in sources for key in source.excluded_llm_metadata_keys}
    node.metadata = {**node.metadata, **shared}  # the user's own keys stay as they are
    node.excluded_embed_metadata_keys = list(node.metadata)
    node.excluded_llm_metadata_keys = [key for key in node.metadata if key not in shared or key in hidden]
    if len(documents) == 1 and all(fact.document for fact in result.facts):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=documents[0])
    return node


def _shared_metadata(sources: Sequence[BaseNode]) -> dict[str, Any]:
    first = sources[0].metadata if sources else {}
    return {key: value for key, value in first.items() if all(node.metadata.get(key) == value for node in sources)}


@dataclass(frozen=True)
class ContextPath:
    """A fact path of a context, with the ids of its source documents and the retriever's score."""

    path: Path
    documents: tuple[str, ...] = ()
    score: float | None = None


def context_text(found: Sequence[ContextPath], form: Format = "outline", documents: bool = False) -> str:
    """The paths merged into one nested outline, the topic of the best path first.

    Parameters
    ----------
    found : best first
    form : "outline" for an indented Markdown list, "json" for the nested object of the paper
    documents : whether each fact is followed by its documents and score; only in an outline

    >>> paths = [("Lamp", "fuel", "oil"), ("Tower", "40 m"), ("Lamp", "fuel", "gas")]
    >>> print(context_text([ContextPath(path) for path in paths]))
    - Lamp
      - fuel
        - oil
        - gas
    - Tower
      - 40 m
    """
    check_choice("form", form, get_args(Format))
    tree = nested(entry.path for entry in found)
    if form == "json":
        return json.dumps(tree, ensure_ascii=False)
    notes = {entry.path: _note(entry) for entry in found} if documents else {}
    return "\n".join(_lines(tree, (), notes))


def _lines(tree: dict[str, Any], above: Path, notes: dict[Path, str]) -> Iterable[str]:
    for cell, below in tree.items():
        path = (*above, cell)
        yield f"{'  ' * len(above)}- {cell}{notes.get(path, '')}"
        yield from _lines(below, path, notes)


def _note(entry: ContextPath) -> str:
    parts = list(entry.documents) + ([] if entry.score is None else [f"{entry.score:.2f}"])
    return f" [{', '.join(parts)}]" if parts else ""
