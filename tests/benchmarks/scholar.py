"""A scripted model that answers every prompt of the papers' tables, about lamps and where their keepers came from."""

import json
import re
from collections.abc import Callable

from tests.graphrag.scripted import answer as of_graphrag
from tests.llm_server import Asked

__all__ = ["scholar"]

CAME = re.compile(r"came from ([A-Z][a-z]+(?: [A-Z][a-z]+)?)")


def _sentences(last: str) -> list[str]:
    text = re.findall(r"<text-\w+ number=\"1\">\n(.*?)\n</", last, re.DOTALL)
    return re.findall(r"[A-Z][^.]+\.", text[0] if text else last)


def _mind_map(last: str) -> str:
    lines = _sentences(last)
    return json.dumps({"topic": lines[0].rstrip("."), "statements": lines, "mind_map": {"facts": lines}})


def _quiz(last: str) -> str:
    found = CAME.findall(last.partition("Questions:")[0])
    return json.dumps([found[0] if found else "<Unanswerable>"] * len(re.findall(r"^\d+\. ", last, re.MULTILINE)))


def _choice(last: str) -> str:
    held = set(CAME.findall(last))
    return next((letter for letter, text in re.findall(r"^([A-D])\. (.+)$", last, re.MULTILINE) if text in held), "A")


def _origin(last: str) -> str:
    return (
        " ".join(dict.fromkeys(f"{keeper} came from {port}." for keeper, port in _KEEPERS.findall(last))) or "Unknown."
    )


_KEEPERS = re.compile(r"(The keeper of the lamp|[A-Z]\w+ [A-Z]\w+) came from ([A-Z]\w+(?: [A-Z]\w+)?)")
_STEPS: dict[str, Callable[[str], str]] = {
    "most useful questions that it answers": lambda last: '{"questions": ["Where did the keeper come from?"]}',
    "Take apart the text": _mind_map,
    "Draw up a mind map of the statements": lambda last: json.dumps({"mind_map": {"facts": _sentences(last)}}),
    "pieces of information would a full answer": lambda last: '{"key_points": ["The keeper came from a port."]}',
    "Ask questions about the names": lambda last: json.dumps(
        [{"question": "Where from?", "answer": port} for port in CAME.findall(last)]
        or [{"question": "?", "answer": "-"}]
    ),
    "Answer the questions from the text": _quiz,
    "evidence that is still missing": lambda last: "The keeper came from a port.",
    "Choose the option": _choice,
    "in as few words as possible and": lambda last: next(iter(CAME.findall(last)), "unknown"),
    "from the passages, in whole sentences": _origin,
    "a title that tells": lambda last: '{"title": "A lamp", "summary": "A keeper."}',
    "what is it about?\n\n- title": lambda last: '{"title": "A lamp", "summary": "A keeper."}',
    "what is it about? Answer with one sentence": lambda last: "A document about the keeper of a lamp.",
    "Divide them into sections": lambda last: '{"sections": [{"title": "All", "first": 0}]}',
    "Reference Answer": lambda last: "5.0\nIt is the same.",
    "Compare them by the criterion alone": lambda last: "It stands first.\nWinner: 1",
    "Did it miss entities": lambda last: "No.",
    "Summary:": lambda last: "The keeper of the lamp came from a port.",
}


def scholar(asked: Asked) -> str:
    last = str(asked.body["messages"][-1]["content"])
    for phrase, reply in _STEPS.items():
        if phrase in asked.prompt:
            return reply(last)
    return of_graphrag(asked.prompt)
