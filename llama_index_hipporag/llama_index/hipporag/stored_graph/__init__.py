"""The knowledge graph as rows in an SQL database, searched without loading it (extra `sql` of llama-index-ragkit)."""

__all__: list[str] = []
