"""An LLM server that answers what LlamaIndex's own parts ask, and a client of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.llms.openai_like import OpenAILike
from tests.llm_server import Asked, LLMServer

ANSWER = "The Analytical Engine did."


def answer(asked: Asked) -> str:
    """The second document first for a reranker, three queries for a fusion, and one answer for all else."""
    if "Relevance:" in asked.prompt:
        return "Doc: 2, Relevance: 9\nDoc: 1, Relevance: 4"
    if "search queries" in asked.prompt:
        return "Who drew the engine?\nWhat are punched cards?"
    if "sub_question" in asked.prompt:
        tools = dict.fromkeys(re.findall(r'"(about_\w+)":', asked.prompt))
        items = ", ".join(f'{{"sub_question": "Who of {tool}?", "tool_name": "{tool}"}}' for tool in tools)
        return f'```json\n{{"items": [{items}]}}\n```'
    return ANSWER


def client(server: LLMServer | str, **kwargs: Any) -> OpenAILike:
    url = server if isinstance(server, str) else server.url
    # Its own connection for each call: one asynchronous client does not outlive the event loop of its first call.
    return OpenAILike(
        model="m", api_base=url, api_key="none", is_chat_model=True, max_retries=0, reuse_client=False, **kwargs
    )


@contextmanager
def served(script: Any = answer, **kwargs: Any) -> Iterator[tuple[LLMServer, OpenAILike]]:
    with LLMServer(script) as server:
        yield server, client(server, **kwargs)
