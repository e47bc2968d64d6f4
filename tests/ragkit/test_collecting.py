"""Garbage collection is left as it was found."""

import gc

import pytest

from llama_index.ragkit.index.serving import no_collection


@pytest.mark.parametrize("on", [True, False])
def test_collection_stops_and_is_as_it_was(on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        with no_collection():
            assert not gc.isenabled()
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()
