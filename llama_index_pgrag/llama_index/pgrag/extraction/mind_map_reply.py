"""Reading of a reply with topic, statements and mind map."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from llama_index.pgrag.maps.mind_map import Path, path_text, read_mind_map, root_of
from llama_index.pgrag.maps.node_maps import in_text
from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.announcements import without_announcement
from llama_index.ragkit.llm.json.output import Pairs, find_values
from llama_index.ragkit.llm.json.shapes import squeezed, texts_of
from llama_index.ragkit.text.held import TextWords
from llama_index.ragkit.text.statements import is_statement

__all__ = ["MapReply", "MindMapReply", "ReadMindMap", "StatementsReply", "read_mind_map_reply"]

_LONGEST_TOPIC = 300  # characters
_MAP = "nested objects of sub-topics; facts are texts or lists of texts"
_NAMES = {
    "topic": ("topic", "title", "maintopic", "subject", "theme"),
    "statements": ("statements", "statement", "items", "facts", "factcheckingitems", "sentences"),
    "mind_map": ("mindmap", "map", "tree", "graph", "structure"),
}


class StatementsReply(BaseModel):
    """A text taken apart: its topic, and its statements."""

    bounds: ClassVar[Mapping[str, Any]] = {"topic": {"maxLength": _LONGEST_TOPIC}}

    topic: str = Field(description="one line that says what the text is about")
    statements: list[str] = Field(description="statements that can each be checked by themselves")


class MapReply(BaseModel):
    """A mind map of statements."""

    mind_map: dict[str, Any] = Field(description=_MAP)


class MindMapReply(StatementsReply):
    """A text taken apart: its topic, its statements, and a mind map of them."""

    mind_map: dict[str, Any] = Field(description=_MAP)


@dataclass(frozen=True)
class ReadMindMap:
    """A mind map, whose paths begin with the topic, with the statements from which it was made.

    `dropped` facts are not in the text.
    """

    topic: str
    statements: list[str]
    paths: list[Path]
    dropped: int
    reply: str


def read_mind_map_reply(reply: str, *, text: str, topic: str, join_lists: bool, min_in_text: float) -> ReadMindMap:
    """Read a reply about a text; a `ParseError` if it has no topic or no fact, or if no fact is in the text.

    A reply that is only a mind map is also accepted: its root is the topic, and its facts are the statements. If a
    reply has no map, for example because it was cut off, the statements are the facts.

    Parameters
    ----------
    topic : the topic if it is already known, else ""
    join_lists : whether a list of texts is one fact
    min_in_text : least share of the words of a fact, or of a fact with the sub-topic above it, that the text must have;
        0 for no check
    """
    reason = "The reply contains no mind map with a fact."
    for value in find_values(reply):
        parts = _parts(value)
        tree = parts.get("mind_map")
        own = topic or _one_line(parts.get("topic")) or _one_line(root_of(tree))
        if not own:
            reason = "The reply has no topic."
            continue
        statements = _statements(parts.get("statements"))
        words = TextWords(text)
        facts = [statement for statement in statements if is_statement(statement)]
        for source, joins in ((tree, join_lists), (facts, False)):
            paths = read_mind_map(source, own, join_lists=joins) if isinstance(source, list | Mapping) else []
            held = [path for path in paths if not min_in_text or in_text(path, words) >= min_in_text]
            if held:
                said = statements or [path_text(path[1:]) for path in held]
                return ReadMindMap(own, said, held, len(paths) - len(held), reply)
            if paths:
                reason = f"None of the facts in the reply is in the text, such as {paths[0][-1][:80]!r}."
    raise ParseError(reason)


def _parts(value: Any) -> dict[str, Any]:
    """Topic, statements and mind map of a reply; a reply without any of their keys is the mind map itself."""
    if isinstance(value, Pairs):
        given: dict[str, list[Any]] = {}
        for key, inner in value:
            given.setdefault(squeezed(key), []).append(inner)
        found = {name: next((given[key][0] for key in keys if key in given), None) for name, keys in _NAMES.items()}
        if found["mind_map"] is not None:
            return found
        if len(value) == 1 and isinstance(value[0][1], Pairs) and _parts(value[0][1])["mind_map"] is not value[0][1]:
            return _parts(value[0][1])
        beside = (*_NAMES["topic"], *_NAMES["statements"])
        rest = Pairs((key, inner) for key, inner in value if squeezed(key) not in beside)
        if len(rest) < len(value):
            return {**found, "mind_map": rest or None}
    return {"mind_map": value}


def _statements(value: Any) -> list[str]:
    try:
        return texts_of(_plain(value))
    except ValueError:
        return []


def _plain(value: Any) -> Any:
    if isinstance(value, Pairs):
        return {key: _plain(inner) for key, inner in value}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _one_line(value: Any) -> str:
    plain = next(iter(_statements(value)), "") if isinstance(value, list) else str(value or "")
    title = " ".join(without_announcement(plain).strip("#*`\"“”' \n").split())
    return title[:_LONGEST_TOPIC] if any(character.isalnum() for character in title) else ""
