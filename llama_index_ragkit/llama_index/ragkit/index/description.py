"""What an index, a retriever or a postprocessor is, as one line for `repr` and as a table for notebooks.

Everything is read from memory: no store is asked, no model resolved, and an object whose constructor did not finish has
a description too.
"""

import html
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from llama_index.ragkit.redaction import redact
from llama_index.ragkit.short_repr import changed, shortened

__all__ = ["ObjectDescription", "describe_index", "describe_retriever"]

_LEFT_OUT = ("callback_manager", "object_map", "verbose", "llm", "retry")  # of retrievers: objects that say little


@dataclass(frozen=True)
class ObjectDescription:
    """The class of an object by name, and the names and values that it holds, in the order in which they are shown."""

    name: str
    holds: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={_shown(value)}' for name, value in self.holds.items())})"

    def as_html(self) -> str:
        """A table, in which every text is escaped."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name.replace('_', ' '))}</th>"
            f"<td style='text-align:left'>{html.escape(_cell(value))}</td></tr>"
            for name, value in self.holds.items()
        )
        return (
            f"<table><thead><tr><th colspan='2'>{html.escape(self.name)}</th></tr></thead><tbody>{rows}</tbody></table>"
        )


def describe_index(index: Any) -> ObjectDescription:
    """The documents, nodes and derived things of an index by name, its generation, models and other than default
    parameters.

    Documents are those of nodes with text, and are not counted where the index is served from stores. Numbers are those
    of the last complete write; `incomplete` is shown where one ended early.
    """
    return ObjectDescription(type(index).__name__, dict(_index_parts(index)))


def _index_parts(index: Any) -> Iterator[tuple[str, Any]]:
    storage = getattr(index, "storage", None)
    if storage is None:
        yield "incomplete", True
        return
    struct = storage.struct
    if not storage.is_whole:
        yield "in_stores", True
        yield from {"chunks": 0, **struct.counters}.items()
    else:
        chunks = storage.snapshot()
        yield "documents", len({record.ref_doc_id for record in chunks.records} - {None})
        yield "chunks", len(chunks)
        yield from ((name, n) for name, n in struct.counters.items() if name != "chunks")
    yield "generation", struct.generation
    if struct.building:
        yield "incomplete", True
    yield "embed_model", struct.embedding.get("name")
    yield from ((role, fingerprint.get("class")) for role, fingerprint in struct.components.items())
    config = getattr(index, "config", None)
    if config is not None:
        yield from changed(asdict(config), asdict(type(config)())).items()


def describe_retriever(retriever: Any, index: Any) -> ObjectDescription:
    """The index of a retriever, and its parameters that differ from the defaults."""
    defaults = {name: value for name, value in retriever.defaults().items() if name not in _LEFT_OUT}
    holders = (getattr(retriever, "options", None), retriever)
    values = {
        name: next((getattr(holder, name) for holder in holders if hasattr(holder, name)), default)
        for name, default in defaults.items()
    }
    if "prompts" in values:
        values["prompts"] = sorted(values["prompts"] or ()) or None
    return ObjectDescription(type(retriever).__name__, {"index": describe_index(index), **changed(values, defaults)})


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, ObjectDescription) else shortened(value)


def _cell(value: Any) -> str:
    return redact(value) if isinstance(value, str) else f"{value:,}" if type(value) is int else _shown(value)
