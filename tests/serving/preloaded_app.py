"""A WSGI application over an index that is opened before gunicorn forks its workers."""

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from tests.cases import CASES, QUESTION, ask, retriever, told
from tests.serving.database import context

_case = next(case for case in CASES if case.name == os.environ["CASE"])
_index = _case.load(context(os.environ["DATABASE"]))
ask(_index)  # so that connections are open when the workers are forked


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The answer to one question, synchronously or, at /async, on an event loop of its own."""
    if environ["PATH_INFO"] == "/async":
        found = told(asyncio.run(retriever(_index, similarity_top_k=10).aretrieve(QUESTION)))
    else:
        found = ask(_index)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(found).encode()]
