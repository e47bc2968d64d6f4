"""Ids derived from content, and the reading order of nodes."""

import hashlib
import uuid

__all__ = ["content_id", "reading_key"]

_NAMESPACE = uuid.UUID("5d0c1f0e-6a54-5c1b-9c3e-0b1a7d6f4e21").bytes
_VARIANT = "89ab" * 4  # the digit of a UUID's variant, by the digit that the hash has there


def content_id(*parts: str) -> str:
    """A UUID (version 5) of the parts: the same parts always give the same id.

    Every derived id is a UUID, since Qdrant accepts no other strings. It is what `uuid.uuid5` gives, in a third of the
    time: a question to an index in stores makes thousands.
    """
    name = "\x1f".join([f"{len(part)}:{part}" for part in parts])
    x = hashlib.sha1(_NAMESPACE + name.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()
    return f"{x[:8]}-{x[8:12]}-5{x[13:16]}-{_VARIANT[int(x[16], 16)]}{x[17:20]}-{x[20:32]}"


def reading_key(key: str) -> tuple[str, str, str]:
    """A sort key for reading order from a canonical one: document and position first, then content, then id."""
    content, rest = key.split("|", 1)
    place, node_id = rest.rsplit("|", 1)
    return place, content, node_id
