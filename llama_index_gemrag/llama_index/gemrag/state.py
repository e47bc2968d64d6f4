"""The immutable state that a query reads: chunks and themes with their questions, of the whole index or a part."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.layer import Centre, Layer
from llama_index.ragkit.masks import RecentMasks
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.layered_mapping import with_changes
from llama_index.ragkit.text.packed_words import PackedMapping
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["GEMRAGState", "MemberRows", "Theme"]


class Theme(NamedTuple):
    """A stored theme: its group of chunks, its members (strongest first), and their components."""

    group: str
    members: tuple[str, ...]
    weights: tuple[float, ...]

    @classmethod
    def of_json(cls, name: str, value: Any) -> "Theme":
        """The theme that was stored as JSON under its name."""
        group, members, weights = value
        return cls(group, tuple(members), tuple(weights))


@dataclass(frozen=True)
class MemberRows:
    """The rows of the members of each theme among the chunks."""

    rows: NDArray[np.intp]  # of all members, theme by theme; -1 for a missing member
    starts: NDArray[np.intp]  # the place of the first member of each theme in `rows`; a theme has at least one

    @classmethod
    def of(cls, themes: Iterable[Sequence[str]], rows_of: Callable[[Sequence[str]], NDArray[np.intp]]) -> "MemberRows":
        """The rows of the members of themes; `rows_of` gives -1 for missing ones."""
        members = list(themes)
        sizes = np.array([0, *map(len, members)], np.intp)
        return cls(rows_of(list(chain.from_iterable(members))), np.cumsum(sizes)[:-1])

    def __len__(self) -> int:
        return len(self.starts)

    def largest(self, values: NDArray[np.float64], absent: float) -> NDArray[np.float64]:
        """The largest of the values, shape (n,), of the members of each theme, shape (number of themes,).

        >>> MemberRows(np.array([2, 0, 1, -1]), np.array([0, 2])).largest(np.array([0.1, 0.2, 0.3]), 0.0)
        array([0.3, 0.2])
        """
        found: NDArray[np.float64] = np.maximum.reduceat(np.append(values, absent)[self.rows], self.starts)
        return found

    def within(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which themes, shape (number of themes,), have only members in a mask, shape (n,).

        >>> MemberRows(np.array([2, 0, 1, -1]), np.array([0, 2])).within(np.array([True, True, True]))
        array([ True, False])
        """
        found: NDArray[np.bool_] = np.logical_and.reduceat(np.append(mask, False)[self.rows], self.starts)
        return found


@dataclass(frozen=True)
class GEMRAGState:
    """The whole memory, or the part that one question needs."""

    chunk_layer: Layer = field(default_factory=Layer)  # chunks with their questions
    theme_layer: Layer = field(default_factory=Layer)  # written themes with their questions
    themes: Mapping[str, Theme] = field(default_factory=dict)  # by id, unwritten ones too (after a delete or a failure)
    written: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # the records of written themes by id
    outside: Collection[str] | None = None  # the nodes of a part that do not count; None for the whole memory
    known_members: MemberRows | None = None  # the `member_rows`, if they are known already

    @classmethod
    def of(
        cls,
        chunks: Snapshot,
        questions: Snapshot,
        theme_texts: Snapshot,
        theme_questions: Snapshot,
        themes: Mapping[str, Theme],
        written: Mapping[str, dict[str, Any]],
    ) -> "GEMRAGState":
        """The state with these vectors; `questions` are all questions of chunks."""
        centre = Centre(questions)
        return cls(Layer(chunks, questions, centre), Layer(theme_texts, theme_questions, centre), themes, written)

    def arrays(self) -> Arrays:
        """The data of a whole index as arrays, without its vectors."""
        rows, (total, count) = self.member_rows, self.chunk_layer.centre.sum
        packed = {"themes": self.themes, "written": self.written}
        return {
            **nested({name: PackedMapping.to_arrays(values) for name, values in packed.items()}),
            "members": rows.rows, "starts": rows.starts, "total": total, "count": np.array([count]),
            "owners": self.chunk_layer.owners, "theme_owners": self.theme_layer.owners,
        }  # fmt: skip

    @classmethod
    def of_arrays(
        cls, arrays: Arrays, chunks: Snapshot, questions: Snapshot, theme_texts: Snapshot, theme_questions: Snapshot
    ) -> "GEMRAGState":
        """The state of :meth:`arrays`, over the same memory, with all vectors of the index."""
        centre = Centre(questions, (arrays["total"], int(arrays["count"][0])))
        written: PackedMapping[dict[str, Any]] = PackedMapping.of_arrays(part_of(arrays, "written"))
        return cls(
            Layer(chunks, questions, centre, known_owners=arrays["owners"]),
            Layer(theme_texts, theme_questions, centre, known_owners=arrays["theme_owners"]),
            PackedMapping.of_arrays(part_of(arrays, "themes"), Theme.of_json),
            written,
            known_members=MemberRows(arrays["members"], arrays["starts"]),
        )

    def changed(
        self,
        vectors: tuple[Snapshot, Snapshot, Snapshot, Snapshot],
        themes: Mapping[str, Theme | None],
        texts: Mapping[str, dict[str, Any] | None],
    ) -> "GEMRAGState":
        """The whole index after a write, with all current vectors, and with None for deleted themes and texts."""
        return GEMRAGState.of(*vectors, with_changes(self.themes, themes), with_changes(self.written, texts))

    @property
    def chunks(self) -> Snapshot:
        """The vectors of the chunks."""
        return self.chunk_layer.texts

    @cached_property
    def themes_of(self) -> dict[str, tuple[str, ...]]:
        """For each member of a theme, the sorted ids of the themes that contain it."""
        found: dict[str, list[str]] = {}
        for name, theme in sorted(self.themes.items()):
            for member in theme.members:
                found.setdefault(member, []).append(name)
        return {member: tuple(names) for member, names in found.items()}

    @cached_property
    def unwritten(self) -> list[str]:
        """Themes that have no text yet, sorted."""
        return sorted(name for name in self.themes if name not in self.written)

    @cached_property
    def member_rows(self) -> MemberRows:
        """For each theme with a text, the rows of its members that are in this state."""
        if self.known_members is not None:
            return self.known_members
        members = (self.themes[name].members for name in self.theme_layer.texts.ids)
        return MemberRows.of(members, self.chunks.rows_of)

    def allowed(self, passing: Callable[[Snapshot], Mask | None]) -> Mask | None:
        """Mask of the chunks that count; None for all.

        `passing` gives that of the filter; it is not called for a part, which was read through the filter.
        """
        return passing(self.chunks) if self.outside is None else self._inside(self.chunks)

    def _inside(self, rows: Snapshot) -> Mask | None:
        return np.array([name not in self.outside for name in rows.ids], np.bool_) if self.outside else None

    def theme_mask(self, allowed: Mask | None) -> Mask | None:
        """Mask of the themes whose members all pass the filter; in a part, of the themes that are not `outside`."""
        if self.outside is not None:
            return self._inside(self.theme_layer.texts)
        return None if allowed is None else self.member_rows.within(allowed)

    def counting(self, allowed: Mask | None) -> "GEMRAGState":
        """The state for a query for which only some chunks count; only their questions then measure hubs.

        A part is returned as it is: it was read for the chunks that count.
        """
        return self if allowed is None or self.outside is not None else self._of_masks.of(allowed, self._counted)

    def _counted(self, allowed: Mask) -> "GEMRAGState":
        of_allowed = np.append(allowed, False)[self.chunk_layer.owners]  # False if the question's chunk is not here
        centre = replace(self.chunk_layer.centre, total=None, counted=of_allowed)
        chunks, themes = (layer.with_centre(centre) for layer in (self.chunk_layer, self.theme_layer))
        return replace(self, chunk_layer=chunks, theme_layer=themes, known_members=self.member_rows)

    @cached_property
    def _of_masks(self) -> RecentMasks["GEMRAGState"]:
        return RecentMasks()

    def only(self, allowed: Mask | None) -> "GEMRAGState":
        """The chunks that pass a filter with their questions, and the themes whose members all pass it."""
        if allowed is None:
            return self
        names = {self.chunks.ids[row] for row in np.flatnonzero(allowed)}
        themes = {name: theme for name, theme in self.themes.items() if names.issuperset(theme.members)}
        of_theme = np.array([name in themes for name in self.theme_layer.texts.ids], np.bool_)
        chunks, texts = self.chunk_layer.only(allowed), self.theme_layer.only(of_theme)
        written = {name: record for name, record in self.written.items() if name in themes}
        return GEMRAGState.of(chunks.texts, chunks.questions, texts.texts, texts.questions, themes, written)

    def layer_of(self, node_id: str) -> Layer:
        """The layer that contains a node; the layer of chunks for a node that is not here."""
        return self.theme_layer if node_id in self.theme_layer.texts else self.chunk_layer

    def key(self, node_id: str) -> tuple[str, str]:
        """The sort key of a node among equal scores."""
        return self.layer_of(node_id).texts.record_of(node_id).key, node_id
