"""PostgreSQL killed in the midst of writes to indexes that are served from it, and every row counted afterwards."""

import os
import time
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from tests.cases import TEXTS, Case
from tests.own_postgres import OwnPostgres
from tests.serving.fault_places import FAULT_PLACES, ServedPlace

from llama_index.ragkit.errors import StorageError

__all__ = ["KILLED", "ServerKills", "kill_server"]

KILLED = ("raptor", "gemrag", "pgrag")  # the methods that keep vectors of what they derive

_SPLIT = [SentenceSplitter(chunk_size=24, chunk_overlap=0)]
_BEFORE = [Document(id_="A", text=" ".join(TEXTS[:3])), Document(id_="B", text=" ".join(TEXTS[3:6]))]
_WRITTEN = Document(id_="X", text=" ".join(["Zanzibar exports cloves to Lyon.", *TEXTS]), metadata={"note": "zanzibar"})


@dataclass
class ServerKills:
    """What happened to one index.

    Attributes
    ----------
    ended : writes that were ended by a kill
    left : rows that were there after a delete, or after a drop, and should not have been
    """

    ended: int = 0
    left: int = 0


def kill_server(server: OwnPostgres, case: Case, kills: int) -> ServerKills:
    """Kill the server so often, each time somewhat later in a write; then the document is deleted, or all is dropped.

    The deletes are made by the same process and by a new one in turns.
    """
    done = ServerKills()
    with patch.dict(os.environ, PG_DSN=server.url):
        place = ServedPlace(next(kind for kind in FAULT_PLACES if kind.on_server))
        index = _built(case, place)
        whole = _count(place)
        began = time.monotonic()
        index.insert(_WRITTEN)
        lasts = time.monotonic() - began
        done.left += _deleted(index, place, whole)
        for kill in range(kills):
            with server.killed_after(lasts * (kill + 0.5) / kills):
                try:
                    index.insert(_WRITTEN)
                except StorageError:
                    done.ended += 1
            if kill % 2:
                index = case.load(place.open())
            if kill % 3 < 2:
                done.left += _deleted(index, place, whole)
            else:
                done.left += _dropped(place)
                index = _built(case, place)
        done.left += _dropped(place)
        place.close()
    return done


def _built(case: Case, place: ServedPlace) -> Any:
    return case.from_documents(_BEFORE, transformations=_SPLIT, storage_context=place.open())


def _deleted(index: Any, place: ServedPlace, whole: int) -> int:
    index.delete_ref_doc(_WRITTEN.id_, delete_from_docstore=True)
    index.rebuild() if hasattr(index, "rebuild") else None
    return abs(_count(place) - whole)


def _dropped(place: ServedPlace) -> int:
    place.open().drop()
    return _count(place)


def _count(place: ServedPlace) -> int:
    return sum(map(len, place.rows().values()))
