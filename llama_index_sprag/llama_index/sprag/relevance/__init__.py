"""Relevance: scores of retrievers and rerankers in absolute terms."""

__all__: list[str] = []
