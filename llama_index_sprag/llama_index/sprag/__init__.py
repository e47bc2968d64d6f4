"""spRAG for LlamaIndex: context for every chunk, and relevant segments instead of chunks."""

__all__: list[str] = []
