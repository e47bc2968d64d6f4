"""The recorded run on A Christmas Carol, where RAG_DATA has it."""

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from llama_index.graphrag.published.run import PublishedRun, read_published

RAG_DATA = os.environ.get("RAG_DATA")
TABLES = ("text_units", "entities", "relationships", "communities", "community_reports")
needs_recording = pytest.mark.skipif(not RAG_DATA, reason="RAG_DATA does not name the folder of recordings")


@cache
def table(name: str) -> list[dict[str, Any]]:
    """The rows of a table of the recording."""
    path = Path(RAG_DATA or "") / "graphrag_christmas_carol" / f"{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def run() -> PublishedRun:
    """The recording as it is read."""
    return read_published({name: table(name) for name in TABLES})
