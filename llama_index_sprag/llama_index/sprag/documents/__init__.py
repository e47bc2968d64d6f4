"""Documents as sequences of chunks."""

__all__: list[str] = []
