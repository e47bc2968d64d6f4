"""What a chunk states: read by rules, checked against its text, or taken from a recording."""

__all__: list[str] = []
