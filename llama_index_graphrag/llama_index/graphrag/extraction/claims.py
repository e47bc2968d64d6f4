"""Reads the claims that a model found in a text."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, field_validator

from llama_index.graphrag.graph.statement import ClaimStatement
from llama_index.ragkit.llm.json.shapes import Reply

__all__ = ["ClaimReading"]

_NOTHING = frozenset(("none", "null", "n/a", "unknown", "-"))  # as models write an empty field
_FIELDS = {
    "subject": ("subject", "subject_id", "entity"),
    "object": ("object", "object_id"),
    "type": ("type", "claim_type"),
    "status": ("status", "claim_status"),
    "start": ("start", "start_date", "from", "date"),
    "end": ("end", "end_date", "to"),
    "said": ("description", "claim", "claim_description", "text"),
    "quotation": ("quotation", "quote", "source_text", "source"),
}


class ClaimReading(Reply):
    """A reply: claims about entities."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"claims": ("claim", "covariates", "facts")}
    items: ClassVar[str] = "claims"

    claims: list[Any] = Field(
        description="objects with subject, object, type, status, start, end, description and quotation"
    )

    @field_validator("claims")
    @classmethod
    def _claims(cls, values: list[Any]) -> list[ClaimStatement]:
        """Objects with a subject and a description; others are dropped.

        Raises
        ------
        ValueError
            If there are objects, but none can be read.
        """
        read = [_claim(value) for value in values if isinstance(value, Mapping)]
        found = list(dict.fromkeys(claim for claim in read if claim.subject and claim.said))
        if values and not found:
            raise ValueError("none of the claims has a subject and a description")
        return found


def _claim(value: Mapping[str, Any]) -> ClaimStatement:
    fields = {name: next((_text(value[key]) for key in keys if key in value), "") for name, keys in _FIELDS.items()}
    return ClaimStatement(**{**fields, "status": fields["status"].casefold()})


def _text(value: Any) -> str:
    """A text, number or truth value on one line; empty for other values and for words such as "unknown"."""
    plain = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
    return "" if plain.casefold() in _NOTHING else plain
