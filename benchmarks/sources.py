"""Fingerprints of our sources, so that what was measured with other sources is measured anew."""

import hashlib
import importlib
import subprocess
from functools import lru_cache
from pathlib import Path

__all__ = ["commit", "sources"]


def commit() -> str:
    """The commit of this checkout, with "-dirty" where files differ from it; "" outside a repository."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    told = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return told.stdout.strip()


@lru_cache
def sources(*methods: str) -> str:
    """Twelve hexadecimal digits of the sources of ragkit and of methods."""
    digest = hashlib.sha256()
    for name in ["ragkit", *methods]:
        folder = Path(str(importlib.import_module(f"llama_index.{name}").__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
