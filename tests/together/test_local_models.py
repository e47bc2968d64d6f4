"""The clients of docs/local_models.md against a scripted server in the place of theirs."""

import re
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Settings
from tests.llm_server import LLMServer, Reply
from tests.pages import ROOT, blocks
from tests.preamble import PREAMBLE

pytest.importorskip("llama_index.llms.openai_like")
PAGE = ROOT / "docs" / "local_models.md"
ADDRESS = re.compile(r"http://localhost:\d+/v1")
CLIENTS = [block for block in blocks(PAGE) if ADDRESS.search(block.code)]
(BUILD,) = (block for block in blocks(PAGE) if "from_documents" in block.code)
(CHECK,) = (block for block in blocks(PAGE) if "import check_llm" in block.code)
REPLY = '{"named_entities": ["Ada Hale", "Tern Rock Lighthouse"], "triples": [["Ada Hale", "kept", "Tern Rock"]]}'
# What servers say beside what OpenAI's would, before they reply and in their replies, by a part of their addresses.
LOADING = b'{"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}'
DIALECTS: dict[str, list[Reply]] = {
    "11434": [Reply(f"<think>\nWho kept it?\n</think>\n\n{REPLY}")],  # Ollama, with a model that thinks
    "8080": [Reply(status=503, body=LOADING)],  # llama.cpp
    "8000": [Reply("Too many requests", status=429)],  # vLLM
}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda block: ADDRESS.search(block.code)[0])
def test_a_client_of_the_page_builds_an_index(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr(Settings, "_embed_model", None)
    names: dict[str, Any] = {}
    exec(compile(PREAMBLE, "preamble", "exec"), names)
    first = next(replies for port, replies in DIALECTS.items() if f":{port}/" in client.code).copy()
    with LLMServer(lambda asked: first.pop() if first else REPLY) as server:
        exec(compile(ADDRESS.sub(server.url, client.code), str(PAGE), "exec"), names)
        exec(compile(BUILD.code, str(PAGE), "exec"), names)
        build = list(server.asked)
        exec(compile(CHECK.code, str(PAGE), "exec"), names)
    assert re.search(r"HippoRAG +entities +yes", capsys.readouterr().out)
    assert not first
    assert {asked.path for asked in server.asked} == {"/v1/chat/completions"}
    assert not names["index"].failures()
    assert names["index"].index_struct.counters["facts"] == 1
    schemas = ["response_format" in asked.body for asked in build]
    assert all(schemas) if "should_use_structured_outputs=True" in client.code else not any(schemas)


def test_every_server_of_the_page_has_a_client() -> None:
    assert len(CLIENTS) == PAGE.read_text(encoding="utf-8").split("## A build")[0].count("\n### ")
