"""An index of the names of mind map cells, to find the cells that a question mentions."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from llama_index.ragkit.text.mentions import mentions, normalise

__all__ = ["CellNames"]

Ids = frozenset[str]
Named = tuple[str, str]  # id and text of a cell

_LONGEST = 100  # characters of a name; longer cells are sentences
_MOST_WORDS = 6  # of a name in a sentence
_ADDED = re.compile(r"\s*\([^()]*\)\s*$")  # the name of "The Glass Wall (film)" is "The Glass Wall"


@dataclass(frozen=True)
class CellNames:
    """Cells by name: phrase, normalised by :func:`~llama_index.ragkit.text.mentions.normalise`, -> ids."""

    cells: Mapping[str, Ids] = field(default_factory=dict)

    def changed(self, removed: Iterable[Named], new: Iterable[Named]) -> "CellNames":
        """A copy without the removed cells and with the new ones."""
        cells, out, into = dict(self.cells), _by_name(removed), _by_name(new)
        for phrase in out.keys() | into.keys():
            ids = cells.pop(phrase, frozenset()) - out[phrase] | into[phrase]
            if ids:
                cells[phrase] = frozenset(ids)
        return CellNames(cells)

    def names_in(self, text: str) -> list[str]:
        """The names in a text, exactly as they are, in its order; those in lower case do not count in a text that marks
        names by capitals.
        """
        return list(dict.fromkeys(phrase for phrase, _, _ in mentions(text, self.cells, longest=_MOST_WORDS)))


def _by_name(cells: Iterable[Named]) -> defaultdict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for cell_id, text in cells:
        phrase = normalise(_ADDED.sub("", text)) if len(text) <= _LONGEST else ""
        if phrase:
            found[phrase].add(cell_id)
    return found
