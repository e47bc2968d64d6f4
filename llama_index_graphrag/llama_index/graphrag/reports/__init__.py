"""Reports about communities: what they contain, when they must be written again, and how they are checked."""

__all__: list[str] = []
