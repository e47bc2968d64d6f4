"""Importing optional dependencies."""

from importlib import import_module
from typing import Any

__all__ = ["need"]


def need(module: str, purpose: str, extra: str) -> Any:
    """Import a module, or raise an error that names what to install: `extra`, such as "llama-index-ragkit[mcp]"."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f'{purpose} needs {module}: pip install "{extra}"') from error
