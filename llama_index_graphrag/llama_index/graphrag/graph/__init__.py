"""The knowledge graph: statements, entities by rules of resolution, and the counts that follow from both."""

__all__: list[str] = []
