"""Loading a stored index without knowing its class: the folder names the package."""

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llama_index.core import load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings.utils import resolve_embed_model

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.extractive_summarizer import ExtractiveSummarizer
from llama_index.ragkit.index.derived_index import DerivedIndex
from llama_index.ragkit.storage.persist import load_storage_context

__all__ = ["load_stored"]

_TYPE = "__type__"  # of a struct in core's index store
_DATA = "__data__"


def load_stored(storage: Path, embed_model: BaseEmbedding | str, index_id: str | None = None) -> DerivedIndex[Any, Any]:
    """The index of a folder of :func:`~llama_index.ragkit.persist`, with the components that it was built with.

    Extractors and summarizers without an LLM are made anew, where the index was built with one that has its defaults.

    Parameters
    ----------
    storage : the folder
    embed_model : the model that the index was built with; "local:" and a folder or a model of the Hugging Face hub
    index_id : which index, where the folder holds several

    Raises
    ------
    ConfigurationError
        If the folder holds no such index, several and none is named, or one whose package is not installed.
    """
    structs = _structs(storage)
    if index_id is None and len(structs) > 1:
        raise ConfigurationError(f"{storage} holds several indexes; name one: {', '.join(sorted(structs))}.")
    name = index_id if index_id is not None else next(iter(structs), "")
    if name not in structs:
        raise ConfigurationError(f"{storage} holds no index {name!r}; it has {', '.join(sorted(structs)) or 'none'}.")
    package, struct = structs[name]
    if not package.startswith("llama_index.") or find_spec(package) is None:
        raise ConfigurationError(
            f"{storage} holds an index of {package!r}, which is not installed here, or no index of these packages."
        )
    import_module(package)
    components = {"embed_model": resolve_embed_model(embed_model), **_rules(package, struct)}
    found = load_index_from_storage(load_storage_context(storage), index_id=name, **components)
    if not isinstance(found, DerivedIndex):
        raise ConfigurationError(f"{type(found).__name__} is no index of these packages.")
    return found


def _structs(storage: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Index id -> (import path of its package, struct)."""
    file = storage / "index_store.json"
    if not file.is_file():
        raise ConfigurationError(f"{storage} is no folder of a persisted storage context: it has no {file.name}.")
    stored = json.loads(file.read_text(encoding="utf-8")).get("index_store/data", {})
    return {name: (str(entry[_TYPE]), json.loads(entry[_DATA])) for name, entry in stored.items()}


def _rules(package: str, struct: dict[str, Any]) -> dict[str, Any]:
    """The components without an LLM that an index was built with."""
    cls = _index_class(package)
    built_with = {role: known.get("class", "") for role, known in struct.get("components", {}).items()}
    rules: dict[str, Any] = {}
    if cls.rule_extractor is not None and built_with.get("extractor") == cls.rule_extractor.__name__:
        rules["extractor"] = cls.rule_extractor()
    if built_with.get("summarizer") == ExtractiveSummarizer.__name__:
        rules["summarizer"] = ExtractiveSummarizer()
    return rules


def _index_class(package: str) -> type[DerivedIndex[Any, Any]]:
    module = import_module(package)
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, DerivedIndex)]
    found: type[DerivedIndex[Any, Any]] = next(cls for cls in classes if cls.__module__.startswith(package))
    return found
