"""The rules behind `RuleContext`, which read from a text, without a model, what it and its parts are about."""

__all__: list[str] = []
