"""Steps of a search: links to entities, chunks, cuts of the hierarchy, and the bookkeeping of calls to a model."""

__all__: list[str] = []
