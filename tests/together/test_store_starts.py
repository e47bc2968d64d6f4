"""The starts of docs/stores.md, with the compose file that they name, and against real stores where there are any."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.pages import ROOT, blocks
from tests.preamble import PREAMBLE
from tests.test_docs import without_hub

PAGE = ROOT / "docs" / "stores.md"
TEXT = PAGE.read_text(encoding="utf-8")
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "examples/stores/compose.yaml").read_text(encoding="utf-8"))[
    "services"
]
STARTS = re.findall(r"Profile `(\w+)`: `([^`]+)` at port (\d+)\.", TEXT)


def code_with(address: str) -> str:
    (code,) = (block.code for block in blocks(PAGE) if address in block.code)
    return code


def run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    without_hub(monkeypatch)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(PREAMBLE, "preamble", "exec"), names)
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def check(names: dict[str, Any], count: Callable[[], int]) -> None:
    """The index that was opened again answers, and a document that it forgets is gone from the store."""
    index = names["index"]
    held = count()
    assert held == len(index.docstore.docs) > 0
    found = index.as_retriever(similarity_top_k=1).retrieve("What happened to the lamp?")[0].node
    assert "lamp" in found.get_content()
    index.delete_ref_doc(found.ref_doc_id, delete_from_docstore=True)
    assert count() < held


@pytest.mark.parametrize(("profile", "image", "port"), STARTS)
def test_a_start_names_image_and_port_of_the_compose_file(profile: str, image: str, port: str) -> None:
    service = SERVICES[profile]
    assert service["profiles"] == [profile]
    assert service["image"] == image
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_every_service_has_a_start_and_an_address() -> None:
    assert {profile for profile, _, _ in STARTS} == SERVICES.keys()
    everywhere = TEXT + (ROOT / "docs" / "local_models.md").read_text(encoding="utf-8")
    for _, _, port in STARTS:
        assert re.search(rf"localhost:{port}|port={port}", everywhere), port


def test_the_address_of_postgres_is_that_of_the_compose_file() -> None:
    made = SERVICES["postgres"]["environment"]
    address = "{POSTGRES_USER}:{POSTGRES_PASSWORD}@localhost:5432/{POSTGRES_DB}".format(**made)
    assert f'address = "{address}"' in TEXT


def test_postgres_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.environ.get("PG_DSN"):
        pytest.skip("PG_DSN is not set")
    pytest.importorskip("llama_index.storage.docstore.postgres")
    from sqlalchemy import text

    address = os.environ["PG_DSN"].split("://", 1)[1]
    code = code_with("@localhost:5432")
    names = run(re.sub(r'address = "[^"]+"', f'address = "{address}"', code), tmp_path, monkeypatch)
    engine = names["engine"]

    def count() -> int:
        with engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM data_chunks")).scalar())

    try:
        check(names, count)
    finally:
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE data_chunks, data_llamaindex"))
        engine.dispose()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_qdrant_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_index.vector_stores.qdrant")
    code = code_with("http://localhost:6333").replace('url="http://localhost:6333"', 'path="qdrant"')
    names = run(code, tmp_path, monkeypatch)
    client = names["qdrant"].client
    check(names, lambda: int(client.count("chunks").count))
    client.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_lancedb_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_index.vector_stores.lancedb")
    page = ROOT / "docs" / "beyond_one_machine.md"
    (code,) = (block.code for block in blocks(page) if "lancedb:///" in block.code)
    names = run(code, tmp_path, monkeypatch)
    table = names["context"].space_store("chunks").made.table
    check(names, lambda: int(table.count_rows()))


@contextmanager
def chroma_server(folder: Path) -> Iterator[int]:
    chromadb = pytest.importorskip("chromadb")
    command = shutil.which("chroma")
    if command is None:
        pytest.skip("the command chroma is missing")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [command, "run", "--path", str(folder / "chroma"), "--port", str(port)]
    server = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                chromadb.HttpClient(host="localhost", port=port)
                break
            except Exception:
                assert server.poll() is None, "the server ended"
                time.sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait()


def test_chroma_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_index.vector_stores.chroma")
    with chroma_server(tmp_path) as port:
        names = run(code_with("port=8000").replace("port=8000", f"port={port}"), tmp_path, monkeypatch)
        check(names, names["collection"].count)
