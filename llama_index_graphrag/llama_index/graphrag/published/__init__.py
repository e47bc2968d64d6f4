"""The output of the published command-line pipeline."""

__all__: list[str] = []
