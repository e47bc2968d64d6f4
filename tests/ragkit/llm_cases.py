"""A client of the scripted server, and replies one after another."""

from collections.abc import Callable
from typing import Any

from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from tests.llm_server import Asked, LLMServer, Reply

from llama_index.ragkit.llm.completion import RetryPolicy

KEY = "sk-very-secret-0123456789"
QUICK = RetryPolicy(max_attempts=3, min_wait=0.0, max_wait=0.3)
PROMPT = PromptTemplate('Read {text} and answer like {"a": [1]}.')
GOOD = '```json\n{"a": ["x"]}\n```'


class Facts(BaseModel):
    """What is said."""

    a: list[str]


def like(server: LLMServer, **kwargs: Any) -> OpenAILike:
    settings = {"model": "m", "api_key": KEY, "is_chat_model": True, "max_retries": 0, "timeout": 10, **kwargs}
    return OpenAILike(api_base=server.url, **settings)


def script(*replies: Reply | str) -> Callable[[Asked], Reply | str]:
    """One reply after another; the last one for ever."""
    left = iter(replies)
    last: list[Reply | str] = []

    def answer(asked: Asked) -> Reply | str:
        last[:] = [next(left, last[0] if last else "")]
        return last[0]

    return answer
