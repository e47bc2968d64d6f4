"""Builds by shards: in this process and on Ray, resumed, with shards that fail, and writes that are overtaken."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from tests.cases import CASES, Case, chunks
from tests.serving.conftest import SERVED
from tests.serving.places import PLACES, Place
from tests.serving.test_life import SPLIT, documents, same

from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError, RagKitError
from llama_index.ragkit.ray import build

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"), pytest.mark.pairs]

# Each method with one kind of store, and one method with both: what differs between stores, Ray does not touch.
ON_RAY = [
    (case, kind)
    for case, kind in product(SERVED, PLACES)
    if kind.name == "sqlite-lancedb" or (case.name, kind.name) == ("hipporag", "postgres-pgvector")
]


def opened(case: Case, place: Place) -> Any:
    return case.load(place.open(), transformations=SPLIT)


def shards(count: int, size: int) -> list[Callable[[], list[Document]]]:
    return [partial(_shard, count * size, n * size, size) for n in range(count)]


def _shard(total: int, first: int, size: int) -> list[Document]:
    return documents(total)[first : first + size]


def test_a_build_by_shards_is_that_of_all_documents(case: Case, here: Place):
    case.build([], storage_context=here.open(), transformations=SPLIT)
    done = build(partial(opened, case, here), shards(3, 2), on="here", documents_at_once=1)
    assert [(built.number, built.documents, built.written, built.error) for built in done] == [
        (n, 2, 2, "") for n in range(3)
    ]
    twin = case.from_documents(documents(6), transformations=SPLIT)
    assert same(opened(case, here), twin)
    again = build(partial(opened, case, here), shards(3, 2), on="here")
    assert [built.written for built in again] == [0, 0, 0]


def test_a_shard_that_fails_is_told_and_the_others_are_built(case: Case, here: Place, caplog: pytest.LogCaptureFixture):
    def broken() -> list[Document]:
        raise OSError("the disk is gone")

    case.build([], storage_context=here.open(), transformations=SPLIT)
    done = build(partial(opened, case, here), [broken, *shards(1, 2)], on="here")
    assert [(built.written, built.error) for built in done] == [(0, "OSError: the disk is gone"), (2, "")]
    (told,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert told.startswith("Shard 0: 0 documents, 0 written")
    assert told.endswith("OSError: the disk is gone")
    assert set(opened(case, here).ref_doc_info) == {"D0", "D1"}
    with pytest.raises(RagKitError, match="the disk is gone"):
        build(partial(opened, case, here), [broken], on="here")
    assert build(partial(opened, case, here), [], on="here") == []


def test_an_index_in_memory_is_refused(case: Case):
    with pytest.raises(ConfigurationError, match="served from stores"):
        build(lambda: case.build(chunks("d", 2)), shards(1, 1), on="here")


def test_a_write_that_is_overtaken_is_planned_again_and_embeds_nothing_twice(case: Case, here: Place):
    case.build(chunks("d", 3), storage_context=here.open())
    other, overtakes, embedded = case.load(here.open()), iter("a"), []

    class Overtaken(case.embed_model):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            embedded.extend(texts)
            if name := next(overtakes, ""):
                other.insert_nodes(chunks(name, 2))
            return super()._get_text_embeddings(texts)

    index = case.load(here.open(), embed_model=Overtaken())
    index.insert_nodes(chunks("e", 3))
    assert set(index.ref_doc_info) == {"d", "a", "e"}
    texts = [node.text for node in chunks("e", 3)]
    assert sorted(each for each in embedded if each in texts) == sorted(texts)
    assert same(index, case.build([*chunks("d", 3), *chunks("a", 2), *chunks("e", 3)]))
    assert same(other, index)


def test_a_write_that_is_always_overtaken_is_refused_and_changes_nothing(
    case: Case, here: Place, monkeypatch: pytest.MonkeyPatch
):
    case.build(chunks("d", 3), storage_context=here.open())
    index, tries = case.load(here.open()), []

    def begin(*_: Any) -> Any:
        tries.append(1)
        raise ConcurrentWriteError("Another writer was first.", begun=False)
        yield

    with monkeypatch.context() as patch:
        patch.setattr(index.storage.commits, "begin", begin)
        with pytest.raises(ConcurrentWriteError):
            index.insert_nodes(chunks("e", 3))
    assert len(tries) == 5
    assert set(index.ref_doc_info) == {"d"}
    index.insert_nodes(chunks("e", 3))
    assert set(case.load(here.open()).ref_doc_info) == {"d", "e"}


def opened_there(name: str, kind: str, tag: str, folder: str) -> Any:
    place = Place(next(each for each in PLACES if each.name == kind), Path(folder), ExitStack(), tag)
    return opened(next(case for case in CASES if case.name == name), place)


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    """Ray on this machine, for all methods: its workers import what they need once."""
    ray = pytest.importorskip("ray")
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # other tests run beside these and would take the processor from them
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
        except Exception as error:
            pytest.skip(f"Ray does not start here: {error}")
    yield
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize(("case", "kind"), ON_RAY, ids=lambda each: each.name)
def test_workers_on_ray_build_the_index(case: Case, kind: Any, tmp_path: Path):
    with ExitStack() as stack:
        place = Place(kind, tmp_path, stack)
        case.build([], storage_context=place.open(), transformations=SPLIT)
        open_index = partial(opened_there, case.name, kind.name, place.tag, str(tmp_path))
        done = build(open_index, shards(4, 3), on="ray", workers=2, documents_at_once=2)
        assert [(built.number, built.written, built.error) for built in done] == [(n, 3, "") for n in range(4)]
        index, twin = opened(case, place), case.from_documents(documents(12), transformations=SPLIT)
        if case.name == "gemrag":  # themes follow the order of growth until they are made anew
            for each in (index, twin):
                each.rebuild()
        assert same(index, twin)
