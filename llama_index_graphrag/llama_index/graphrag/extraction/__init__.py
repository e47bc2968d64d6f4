"""The statements of a chunk: read by rules or a model, checked against its text, or taken from records."""

__all__: list[str] = []
