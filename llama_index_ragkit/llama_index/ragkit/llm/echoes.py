"""Replies that repeat the prompt, and worked examples that are repeated in replies.

Some models, servers and mocks send the prompt back, in whole or with its worked example first. The example is well
formed, so that a parser would take it for an answer.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from llama_index.core.base.llms.types import MessageRole
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.json.output import drop_values, find_values, texts_in, to_plain
from llama_index.ragkit.llm.reasoning import strip_reasoning

__all__ = ["without_echo"]

_VARIABLE = re.compile(r"\{[a-zA-Z_][\w.]*\}")
_FENCE = re.compile(r"```\w*")
_ROLE = re.compile(r"^(?:user|system|human): ", re.IGNORECASE)
_NAME = re.compile(r"\b(?!The )[A-Z]\w+(?: [A-Z]\w+)+")
_ITEM = re.compile(r'"(?:[^"\\]|\\.)*"(?P<key>[ \t]*:)?|^[ \t]*\d+[.)].*$', re.MULTILINE)
_LEAST = 40  # squeezed characters of the prompt by which it is recognised
_SHORTEST = 20  # squeezed characters of a reply that is the beginning of the prompt


def without_echo(reply: str, prompt: BasePromptTemplate, formatted: str, about: str) -> str:
    """The reply without the worked examples of the prompt, and with texts emptied that name what only an example names.

    An example is an answer if all its texts stand in what the prompt is about, the values of its variables.

    Raises
    ------
    ParseError
        If the reply repeats the prompt, or nothing is left of it but examples.
    """
    templates = _texts(prompt)
    if _is_echo(strip_reasoning(reply), templates, formatted):
        raise ParseError("The reply repeats the prompt.")
    about = _squeezed(about)
    reply = _without_prose(reply, prompt, about)
    examples = [example for template in templates for example in _examples(template)]
    if not examples:
        return _without_names(reply, prompt, about)
    unwanted = [example for example in examples if not all(_squeezed(text) in about for text in texts_in(example))]
    left, dropped = drop_values(reply, unwanted) if unwanted else (reply, 0)
    if dropped and not any(character.isalnum() for character in _FENCE.sub("", left)):
        raise ParseError("The reply is the example of the prompt.")
    return _without_names(left, prompt, about)


def _answers(prompt: BasePromptTemplate) -> list[str]:
    """The answers of worked examples that are turns of their own."""
    messages = prompt.message_templates if isinstance(prompt, ChatPromptTemplate) else ()
    return [message.content or "" for message in messages if message.role == MessageRole.ASSISTANT]


def _without_names(reply: str, prompt: BasePromptTemplate, about: str) -> str:
    """The reply with the texts of JSON and of numbered lines emptied that have a name of an example."""
    if not _answers(prompt):
        return reply
    names = {name for turn in _texts(prompt)[:-1] for name in _NAME.findall(turn)}
    foreign = [name for name in names if name.casefold() not in about.casefold()]

    def kept(found: re.Match[str]) -> str:
        if found["key"] or not any(name in found[0] for name in foreign):
            return found[0]
        return '""' if found[0].startswith('"') else ""

    return _ITEM.sub(kept, reply)


def _without_prose(reply: str, prompt: BasePromptTemplate, about: str) -> str:
    """The reply without worked examples that are no JSON."""
    for answer in _answers(prompt):
        if len(answer) >= _LEAST and answer in reply and not _examples(answer) and _squeezed(answer) not in about:
            reply = reply.replace(answer, "")
            if not any(map(str.isalnum, reply)):
                raise ParseError("The reply is the example of the prompt.")
    return reply


def _is_echo(reply: str, templates: Sequence[str], formatted: str) -> bool:
    reply, whole = _ROLE.sub("", _squeezed(reply)), _squeezed(formatted)
    own = [_squeezed(piece) for template in templates for piece in _VARIABLE.split(template)]
    literal = next((piece for piece in own if len(piece) >= _LEAST), "")[:200]
    if literal:
        return literal in reply or (len(reply) >= _SHORTEST and literal.startswith(reply))
    return bool("".join(own)) and len(whole) >= _SHORTEST and whole in reply


def _texts(prompt: BasePromptTemplate) -> list[str]:
    if isinstance(prompt, ChatPromptTemplate):
        return [message.content or "" for message in prompt.message_templates]
    return [prompt.get_template()]


@lru_cache(maxsize=64)
def _examples(template: str) -> tuple[Any, ...]:
    """The JSON values in a template that contain text."""
    try:
        values = [to_plain(value) for value in find_values(template, truncated="reject")]
    except ParseError:
        return ()
    return tuple(value for value in values if any(texts_in(value)))


def _squeezed(text: str) -> str:
    return " ".join(text.split())
