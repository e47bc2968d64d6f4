"""The memory graph: chunks, and their similarity by text and questions."""

__all__: list[str] = []
