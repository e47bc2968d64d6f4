"""Fingerprints of our sources, so that what was measured with other sources is measured anew."""

import hashlib
import importlib
from functools import lru_cache
from pathlib import Path

__all__ = ["sources"]


@lru_cache
def sources(*methods: str) -> str:
    """Twelve hexadecimal digits of the sources of ragkit and of methods."""
    digest = hashlib.sha256()
    for name in ["ragkit", *methods]:
        folder = Path(str(importlib.import_module(f"llama_index.{name}").__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
