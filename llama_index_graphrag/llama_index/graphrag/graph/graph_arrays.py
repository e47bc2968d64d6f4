"""`GraphArrays`: the data of a graph of statements that a search for chunks needs, as arrays that a write updates."""

from collections.abc import Mapping
from typing import NamedTuple

from llama_index.graphrag.graph.entity_graph import EntityGraph, entity_graph, updated_entities
from llama_index.graphrag.graph.naming import Naming
from llama_index.graphrag.graph.sorted_rows import renamed
from llama_index.graphrag.graph.statement import scope_of, scoped
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.graph.touched import Touched

__all__ = ["GraphArrays", "short_names"]

ShortNames = Mapping[str, frozenset[str]]


class GraphArrays(NamedTuple):
    """A graph as a search for chunks needs it.

    Attributes
    ----------
    entities : with their neighbours
    naming : which chunks name them
    short : see :func:`short_names`
    """

    entities: EntityGraph
    naming: Naming
    short: ShortNames

    @classmethod
    def of(cls, graph: StatementGraph) -> "GraphArrays":
        """The arrays of all statements."""
        entities = entity_graph(graph)
        return cls(entities, Naming.of(graph, entities.names), short_names(graph))

    def updated(self, graph: StatementGraph, touched: Touched) -> "GraphArrays":
        """The arrays of the graph after writes; equal to :meth:`of`.

        Parameters
        ----------
        touched : the changes of the writes
        """
        known = self.entities.position
        removed = [key for key in touched.pairs if key in known and key not in graph.entities]
        added = [key for key in touched.pairs if key not in known and key in graph.entities]
        names, places = renamed(self.entities.names, removed, added)
        return GraphArrays(
            updated_entities(self.entities, graph, names, places, touched.pairs),
            self.naming.updated(graph, names, places, touched.pairs, touched.chunks),
            short_names(graph),
        )


def short_names(graph: StatementGraph) -> dict[str, frozenset[str]]:
    """Short forms and names that were merged, normalised, with the keys of the entities that they stand for."""
    names: dict[str, set[str]] = {}
    for document, short in graph.short.items():
        for name, full in short.items():
            names.setdefault(name, set()).add(scoped(scope_of(document), full))
    return {name: frozenset(keys) for name, keys in names.items()}
