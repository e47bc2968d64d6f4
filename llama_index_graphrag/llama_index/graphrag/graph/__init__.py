"""The knowledge graph: statements, entities by resolution rules, and counts that follow from both."""

__all__: list[str] = []
