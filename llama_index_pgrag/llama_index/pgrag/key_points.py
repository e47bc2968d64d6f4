"""The key points of a question: those given with it, those that an LLM generates, or the question itself."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import QueryBundle
from pydantic import Field

from llama_index.pgrag.config import SearchConfig
from llama_index.ragkit import Steps
from llama_index.ragkit.errors import ExtractionError, ParseError
from llama_index.ragkit.llm.announcements import plain_lines
from llama_index.ragkit.llm.json.shapes import Reply, TextList, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.llm.reasoning import strip_reasoning

__all__ = ["KeyPointsEvent", "key_points_of"]

logger = logging.getLogger(__name__)
dispatcher = get_dispatcher(__name__)


class KeyPoints(Reply):
    """Reply to the prompt for key points."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"key_points": ("points", "keypoint", "statements", "facts")}
    items: ClassVar[str] = "key_points"

    key_points: TextList = Field(min_length=1, description="short statements that a full answer consists of")


class KeyPointsEvent(BaseEvent):
    """The key points that were used for a question."""

    question: str
    key_points: list[str]

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "KeyPointsEvent"


def key_points_of(
    bundle: QueryBundle, config: SearchConfig, complete: Callable[..., Steps[Any]]
) -> Steps[tuple[list[str], str]]:
    """The key points of a question, and why they are only the question itself if the LLM call failed.

    Parameters
    ----------
    complete : (how to parse the reply, variables of the prompt "key_points") -> steps of the parsed reply; called only
        for key_points="llm"
    """
    question = bundle.query_str
    fallback = ""
    points = list(dict.fromkeys(text for text in bundle.embedding_strs if text.strip())) or [question]
    if config.mode == "PG":
        points = [question]
    elif config.key_points == "llm" and points == [question]:
        try:
            points = yield from complete(
                parse=_read_points,
                output_cls=KeyPoints,
                reply_tokens=64 + 60 * config.max_key_points,
                like=question,
                question=fence([question], "question"),
                max_points=config.max_key_points,
            )
            points = points[: config.max_key_points]
        except ExtractionError as error:
            fallback = str(error)
            logger.warning("No key points for %r: the question itself is used. %s", question, fallback)
    dispatcher.event(KeyPointsEvent(question=question, key_points=points))
    return points, fallback


def _read_points(reply: str) -> list[str]:
    """Those of JSON, or the lines of a reply to a prompt that asks for lines."""
    try:
        return read_reply(reply, KeyPoints).key_points
    except ParseError:
        if not set("{}").isdisjoint(strip_reasoning(reply)):
            raise
        return plain_lines(reply)
