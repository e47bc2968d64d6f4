"""How near each chunk is to a question."""

__all__: list[str] = []
