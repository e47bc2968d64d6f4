"""Names of mind maps in an SQL database: rows, mentions, the walk."""

__all__: list[str] = []
