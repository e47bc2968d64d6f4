"""Extractors: what is said about each document."""

__all__: list[str] = []
