"""Loading a stored index without knowing its class: the folder names the package."""

from contextlib import suppress
from importlib import import_module
from os.path import isfile
from pathlib import Path
from typing import Any

from llama_index.core import load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.constants import DATA_KEY, TYPE_KEY
from llama_index.core.embeddings.utils import resolve_embed_model
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS

from llama_index.ragkit.core_internals import index_entries
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.extractive_summarizer import ExtractiveSummarizer
from llama_index.ragkit.index.derived_index import DerivedIndex
from llama_index.ragkit.storage.persist import load_storage_context
from llama_index.ragkit.storage.struct import DerivedStruct

__all__ = ["load_stored"]


def load_stored(storage: Path, embed_model: BaseEmbedding | str, index_id: str | None = None) -> DerivedIndex[Any, Any]:
    """The index in a folder of :func:`~llama_index.ragkit.persist`, with the components of its build.

    Extractors and summarizers that need no LLM are made anew, if those of the build had their defaults.

    Parameters
    ----------
    storage : the folder
    embed_model : the model of the build; or "local:" and a folder or a model of the Hugging Face hub
    index_id : which index, if the folder holds several

    Raises
    ------
    ConfigurationError
        If the folder has no such index, has several and `index_id` is None, or the package of the index is not
        installed.
    StorageError
        If the contents of the folder are damaged or were changed.
    """
    if not isfile(storage / "index_store.json"):  # also for a path that cannot exist
        raise ConfigurationError(
            f"{storage} is not a folder of a persisted storage context: it has no index_store.json."
        )
    context = load_storage_context(storage)
    entries = index_entries(context.index_store)
    if index_id is None and len(entries) > 1:
        raise ConfigurationError(f"{storage} holds several indexes; name one: {', '.join(sorted(entries))}.")
    name = index_id if index_id is not None else next(iter(entries), "")
    if not isinstance(name, str) or name not in entries:
        raise ConfigurationError(f"{storage} holds no index {name!r}; it has {', '.join(sorted(entries)) or 'none'}.")
    index_cls = _index_class(storage, entries[name][TYPE_KEY])
    struct = index_cls.index_struct_cls.from_json(entries[name][DATA_KEY])
    components = {"embed_model": resolve_embed_model(embed_model), **_rules(index_cls, struct)}
    found: Any = load_index_from_storage(context, index_id=name, **components)
    index: DerivedIndex[Any, Any] = found
    return index


def _index_class(storage: Path, package: str) -> type[DerivedIndex[Any, Any]]:
    """The index class that a package registers under its import path."""
    if package.startswith("llama_index."):
        with suppress(ImportError, ValueError):  # a package without an index, or no name of one
            import_module(package)
    found: Any = INDEX_STRUCT_TYPE_TO_INDEX_CLASS.get(package)  # type: ignore[call-overload]
    if isinstance(found, type) and issubclass(found, DerivedIndex):
        return found
    raise ConfigurationError(
        f"{storage} holds an index of {package!r}, which is not installed here or is not one of these packages."
    )


def _rules(cls: type[DerivedIndex[Any, Any]], struct: DerivedStruct) -> dict[str, Any]:
    """The components of the build that need no LLM."""
    built_with = {role: known.get("class", "") for role, known in struct.components.items()}
    rules: dict[str, Any] = {}
    if cls.rule_extractor is not None and built_with.get("extractor") == cls.rule_extractor.__name__:
        rules["extractor"] = cls.rule_extractor()
    if built_with.get("summarizer") == ExtractiveSummarizer.__name__:
        rules["summarizer"] = ExtractiveSummarizer()
    return rules
