"""What the published command-line pipeline wrote."""

__all__: list[str] = []
