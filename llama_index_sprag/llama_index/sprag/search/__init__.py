"""From a question to chunks and segments."""

__all__: list[str] = []
