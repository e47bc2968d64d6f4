"""Servers that users have: readers, replicas, poolers, few connections, with the documented `PGVectorStore`."""

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from sqlalchemy import make_url
from tests.cases import CASES, QUESTION, Case, ask, chunks, retriever, told
from tests.own_postgres import OwnPostgres
from tests.serving.database import built, context, in_child, new_database, role, run

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import ReadOnlyError, StorageError
from llama_index.ragkit.sql import SQLStorageContext, make_engine, storage_context
from llama_index.ragkit.sql.engine import in_turn, joined_snapshot, reading, snapshot
from llama_index.ragkit.steps import run_steps

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"), pytest.mark.pairs]

Record = Callable[[str, int], None]  # `record_property`: `benchmarks.reliability` prints how many trials there were


def test_an_odd_filter_or_a_lost_connection_changes_no_later_answer(case: Case, database: str, record_property: Record):
    nodes = [*chunks("d", 3), *chunks("e", 3)]
    for number, node in enumerate(nodes):
        node.metadata["tenant"] = ["A", "O'Brien"][number % 2]
    index = case.build(nodes, storage_context=context(database))

    def answers(tenant: str | None) -> list[tuple[str, float]]:
        filters = None if tenant is None else MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])
        return ask(index, filters=filters)

    tenants = ["A", "O'Brien", "a\x00b", "A", None]
    wanted = [len(found) for found in map(answers, tenants)]
    assert wanted[4] > wanted[0] == wanted[3] > 0
    assert wanted[4] > wanted[1] > 0 == wanted[2]
    for _ in range(3):
        ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND "
        assert run(ended + "pid <> pg_backend_pid()", database) > 0
        with suppress(StorageError):
            answers("A")
        assert [len(found) for found in map(answers, tenants)] == wanted
    record_property("trials", 4 * len(tenants))


def test_a_user_who_may_only_read_opens_and_asks(case: Case, database: str, record_property: Record):
    wanted = built(case, database)
    index = case.load(context(role(database, "", "SELECT")))
    assert ask(index) == wanted
    with pytest.raises(ReadOnlyError, match="permission denied"):
        index.insert_nodes(chunks("e", 1))
    with pytest.raises(ReadOnlyError):
        index.delete_nodes([node.node_id for node in chunks("d", 1)])
    assert ask(index) == wanted
    record_property("trials", 4)


def test_a_server_that_only_reads_is_opened_and_asked(case: Case, database: str, record_property: Record):
    wanted = built(case, database)
    url = role(database, "", "ALL")
    run(f"ALTER ROLE {make_url(url).username} SET default_transaction_read_only = on", database)
    index = case.load(context(url))
    assert ask(index) == wanted
    with pytest.raises(ReadOnlyError, match="read-only"):
        index.insert_nodes(chunks("e", 1))
    record_property("trials", 2)


@pytest.fixture(scope="module")
def replicated() -> Iterator[tuple[OwnPostgres, str]]:
    """A primary server and the URL of a streaming replica of it."""
    pytest.importorskip("llama_index.vector_stores.postgres")
    with OwnPostgres() as server, server.replica() as url:
        yield server, url


def test_a_streaming_replica_is_opened_and_asked(
    case: Case, replicated: tuple[OwnPostgres, str], record_property: Record
):
    server, url = replicated
    with patch.dict(os.environ, PG_DSN=server.url), new_database() as database:
        wanted = built(case, database)
        copy = make_url(url).set(database=make_url(database).database).render_as_string(hide_password=False)
        written = run("SELECT pg_current_wal_lsn()", database)
        while run(f"SELECT pg_last_wal_replay_lsn() < '{written}'", url):
            time.sleep(0.05)
        index = case.load(context(copy))
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda _: ask(index), range(16))) == [wanted] * 16
        with pytest.raises(ReadOnlyError, match="read-only"):
            index.insert_nodes(chunks("e", 1))
        case.load(context(database)).insert_nodes(chunks("e", 3))
        written = run("SELECT pg_current_wal_lsn()", database)
        while run(f"SELECT pg_last_wal_replay_lsn() < '{written}'", url):
            time.sleep(0.05)
        assert ask(index) == ask(case.load(context(database)))
    record_property("trials", 18)


def test_four_connections_are_enough_for_many_questions_at_once(case: Case, database: str, record_property: Record):
    wanted = built(case, database)
    url = role(database, "CONNECTION LIMIT 4", "ALL")
    index = case.load(context(url, make_engine(url, pool_size=4)))

    async def together() -> list[Any]:
        asking = retriever(index, similarity_top_k=10)
        return await asyncio.gather(*(asking.aretrieve(QUESTION) for _ in range(24)))

    with ThreadPoolExecutor(24) as pool:
        assert list(pool.map(lambda _: ask(index), range(24))) == [wanted] * 24
    assert [told(each) for each in asyncio.run(together())] == [wanted] * 24
    index.insert_nodes(chunks("e", 3))
    record_property("trials", 49)


def test_the_error_for_too_many_connections_names_the_number_that_bounds_them(database: str):
    url = role(database, "CONNECTION LIMIT 0", "ALL")
    with pytest.raises(StorageError, match="smaller pool_size="), reading(make_engine(url)):
        pass


def beside(url: str, pool_size: int) -> bool:
    """Whether a question to a new engine may read vectors on a connection beside its own."""
    engine = make_engine(url, pool_size=pool_size)
    with run_steps(in_turn(snapshot, engine)), joined_snapshot(engine) as connection:
        return connection is None


def test_a_question_uses_a_second_connection_only_where_one_is_free(database: str):
    assert beside(database, pool_size=3)
    assert not beside(database, pool_size=2)


@pytest.fixture
def bouncer(database: str, tmp_path: Path) -> Iterator[str]:
    """The database through PgBouncer in transaction mode, else as it is installed."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    url = make_url(database)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path("/dev/shm") / f"b{uuid4().hex[:8]}" if Path("/dev/shm").is_dir() else tmp_path
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    (folder / "users").write_text(f'"{url.username}" "{url.password or ""}"\n')
    (folder / "ini").write_text(
        f"[databases]\n* = host={url.host} port={url.port or 5432}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\n"
        "pool_mode = transaction\n"
    )
    nobody: dict[str, Any] = {"user": "nobody"} if os.getuid() == 0 else {}
    running = subprocess.Popen([program, "-q", str(folder / "ini")], **nobody)
    try:
        for _ in range(600):  # half a minute, on a busy machine
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield url.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    finally:
        running.kill()
        running.wait()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_question_holds_one_connection_of_a_pooler(bouncer: str):
    """Those who hold one and wait for another would wait for each other."""
    assert not beside(bouncer, pool_size=8)


def test_pgbouncer_may_give_each_transaction_another_session(case: Case, bouncer: str, record_property: Record):
    wanted = built(case, bouncer)
    index = case.load(context(bouncer))

    def write(number: int) -> None:
        mine = case.load(context(bouncer))
        mine.insert_nodes(chunks(f"w{number}", 2))
        mine.delete_ref_doc(f"w{number}", delete_from_docstore=True)

    with ThreadPoolExecutor(5) as pool:
        writing = pool.submit(write, 0)
        read = [pool.submit(ask, index) for _ in range(40)]
        assert all(each.result() for each in read)
        writing.result()
    found = asyncio.run(retriever(index, similarity_top_k=10).aretrieve(QUESTION))
    assert {text for text, _ in told(found)} >= {text for text, _ in wanted if text in {n.text for n in chunks("d", 3)}}
    record_property("trials", len(read) + 3)


@pytest.mark.skipif(not hasattr(os, "fork") or os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("in_stores", [False, True])
@pytest.mark.parametrize("given", [case for case in CASES if case.name != "toy"], ids=lambda each: each.name)
def test_a_file_in_a_folder_that_may_only_be_read_is_opened_and_asked(given: Case, in_stores: bool, tmp_path: Path):
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        Path(place).chmod(0o755)
        made: dict[str, MatrixVectorStore] = {}
        url = f"sqlite:///{place}/index.db"

        def opened() -> SQLStorageContext:
            factory = (lambda space, _: made.setdefault(space, MatrixVectorStore())) if in_stores else None
            return storage_context(make_engine(url), vectors=factory)

        first = opened()
        index = given.build(chunks("d", 3), storage_context=first)
        wanted = ask(index)
        first.records.engine.dispose()
        first.records._records.close()  # type: ignore[union-attr]

        def reads() -> bool:
            os.setuid(65534)
            again = given.load(opened())
            assert ask(again) == wanted
            try:
                again.insert_nodes(chunks("e", 1))
            except ReadOnlyError:
                return True
            return False

        assert in_child(reads) == 0
