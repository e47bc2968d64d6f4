"""Forks and servers that users have: readers, poolers, few connections, with the documented `PGVectorStore`."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from tests.cases import CASES, QUESTION, Case, ask, chunks, retriever, told

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import ReadOnlyError
from llama_index.ragkit.sql import SQLStorageContext, make_engine, storage_context
from llama_index.ragkit.sql.engine import in_turn, joined_snapshot, snapshot
from llama_index.ragkit.steps import run_steps

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


def run(statement: str, url: str) -> None:
    server = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(statement))
    server.dispose()


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a database of its own."""
    if not os.environ.get("PG_DSN"):
        pytest.skip("PG_DSN is not set")
    pytest.importorskip("llama_index.vector_stores.postgres")
    name = f"d{uuid4().hex[:10]}"
    run(f"CREATE DATABASE {name}", os.environ["PG_DSN"])
    url = make_url(os.environ["PG_DSN"]).set(database=name).render_as_string(hide_password=False)
    run("CREATE EXTENSION vector", url)
    yield url
    run(f"DROP DATABASE {name} WITH (FORCE)", os.environ["PG_DSN"])
    run(f"DROP ROLE IF EXISTS {name}", os.environ["PG_DSN"])


def role(database: str, options: str, rights: str) -> str:
    """The URL of the database for a user who has rights on its tables."""
    name = make_url(database).database
    run(f"CREATE ROLE {name} LOGIN {options}", database)
    run(f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {name}", database)
    if rights == "ALL":
        run(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}", database)
    return make_url(database).set(username=name).render_as_string(hide_password=False)


def context(url: str, engine: Engine | None = None) -> SQLStorageContext:
    from llama_index.vector_stores.postgres import PGVectorStore

    place = url.split("://", 1)[1]

    def pgvector(space: str, dimension: int) -> Any:
        return PGVectorStore.from_params(
            connection_string=f"postgresql+psycopg2://{place}",
            async_connection_string=f"postgresql+asyncpg://{place}",
            table_name=space,
            embed_dim=dimension,
            hnsw_kwargs={"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 800},
        )

    return storage_context(engine or url, pgvector)


def built(case: Case, url: str) -> list[tuple[str, float]]:
    """An index over the database, and its answer."""
    return ask(case.build(chunks("d", 3), storage_context=context(url), serve_from="stores"))


def in_child(work: Any) -> int:
    """The exit status of a forked process that does something: 0 if it returns true, 14 if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_reconnect_while_threads_of_their_parent_ask(case: Case, database: str):
    wanted = built(case, database)
    index = case.load(context(database))
    assert ask(index) == wanted
    ends = time.monotonic() + 60
    done = False

    def busy() -> bool:
        while not done and time.monotonic() < ends:
            assert ask(index) == wanted
        return True

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(busy) for _ in range(3)]
        statuses = [in_child(lambda: ask(index) == wanted) for _ in range(4)]
        done = True
        assert statuses == [0] * 4
        assert all(each.result() for each in asking)


def test_a_user_who_may_only_read_opens_and_asks(case: Case, database: str):
    wanted = built(case, database)
    index = case.load(context(role(database, "", "SELECT")))
    assert ask(index) == wanted
    with pytest.raises(ReadOnlyError, match="permission denied"):
        index.insert_nodes(chunks("e", 1))
    with pytest.raises(ReadOnlyError):
        index.delete_nodes([node.node_id for node in chunks("d", 1)])
    assert ask(index) == wanted


def test_a_server_that_only_reads_is_opened_and_asked(case: Case, database: str):
    wanted = built(case, database)
    url = role(database, "", "ALL")
    run(f"ALTER ROLE {make_url(url).username} SET default_transaction_read_only = on", database)
    index = case.load(context(url))
    assert ask(index) == wanted
    with pytest.raises(ReadOnlyError, match="read-only"):
        index.insert_nodes(chunks("e", 1))


def test_four_connections_are_enough_for_many_questions_at_once(case: Case, database: str):
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
        for _ in range(100):
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


def test_pgbouncer_may_give_each_transaction_another_session(case: Case, bouncer: str):
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


@pytest.mark.skipif(not hasattr(os, "fork") or os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("serve_from", ["memory", "stores"])
@pytest.mark.parametrize("given", [case for case in CASES if case.name != "toy"], ids=lambda each: each.name)
def test_a_file_in_a_folder_that_may_only_be_read_is_opened_and_asked(given: Case, serve_from: str, tmp_path: Path):
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        Path(place).chmod(0o755)
        made: dict[str, MatrixVectorStore] = {}
        url = f"sqlite:///{place}/index.db"

        def opened() -> SQLStorageContext:
            factory = (lambda space, _: made.setdefault(space, MatrixVectorStore())) if serve_from == "stores" else None
            return storage_context(make_engine(url), factory)

        first = opened()
        index = given.build(chunks("d", 3), storage_context=first, serve_from=serve_from)
        wanted = ask(index)
        first.records.engine.dispose()
        first.records._records.file.close()  # type: ignore[union-attr]

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
