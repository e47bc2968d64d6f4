"""What you supply to hold a store against the kit."""

from pathlib import Path
from typing import Any

import pytest

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["StoreHarness"]


class StoreHarness:
    """What a test class says about its store. Every capability class of the kit derives from it.

    Override the fixture `store`, and `reopen` where the class inherits tests of persistence.
    """

    @pytest.fixture
    def store(self) -> Any:
        """An empty store; override it, with a `yield` if the store must be closed."""
        raise ConfigurationError(f"{type(self).__name__} must override the fixture `store`: it gives an empty store.")

    def reopen(self, store: Any, folder: Path) -> Any:
        """Persist the store below the folder, and open it as a new process would; override it."""
        raise ConfigurationError(f"{type(self).__name__} must override reopen(), which tests of persistence call.")
