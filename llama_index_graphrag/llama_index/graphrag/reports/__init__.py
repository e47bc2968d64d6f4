"""Reports about communities: their contents, when they must be written again, and how they are checked."""

__all__: list[str] = []
