"""A graph as rows by node: its edges as packed records, how it is read and written, and one in this process."""

__all__: list[str] = []
