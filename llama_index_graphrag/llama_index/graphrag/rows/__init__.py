"""Statements and communities as rows: how they are stored, and the part that one question reads."""

__all__: list[str] = []
