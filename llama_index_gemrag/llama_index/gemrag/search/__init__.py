"""Scores of chunks and themes for a prompt, and best-first search of the memory graph."""

__all__: list[str] = []
