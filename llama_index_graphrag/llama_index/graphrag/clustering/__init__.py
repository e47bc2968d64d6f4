"""Communities of a graph: clusterings, the hierarchy that they give, and its modularity."""

__all__: list[str] = []
