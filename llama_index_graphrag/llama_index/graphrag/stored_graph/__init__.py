"""The graph of statements as rows in an SQL database, searched without loading it."""

__all__: list[str] = []
