"""Freed memory goes back to the system."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

from llama_index.hipporag.graph.knowledge_graph import give_back


def own_memory() -> int:
    """Bytes that are this process's own."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc keeps freed memory"
)
def test_memory_between_memory_in_use_is_given_back() -> None:
    blocks = [np.ones(8_000) for _ in range(2_000)]  # 64 KB each: below the size that glibc maps on its own
    kept = blocks[::50]
    del blocks
    before = own_memory()
    give_back()
    assert before - own_memory() > 64 << 20
    assert all(block.all() for block in kept)


def test_elsewhere_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    give_back()
