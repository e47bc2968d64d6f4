"""The rules behind `RuleContext`: what a document and its parts are about, read from the text without a model."""

__all__: list[str] = []
