"""Relevant segment extraction: relevance values of chunks, the choice of segments, and their texts."""

__all__: list[str] = []
