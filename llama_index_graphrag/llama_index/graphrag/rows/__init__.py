"""Statements and communities as rows: what is stored of them, and what one question reads."""

__all__: list[str] = []
