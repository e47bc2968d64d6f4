"""Relevance: what scores of retrievers and rerankers say in absolute terms."""

__all__: list[str] = []
