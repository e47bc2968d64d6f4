"""`WriteChecks`: what is refused before a write or a search: other models, components, caches and stores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic

from llama_index.ragkit.errors import CacheRequiredError, ExtractorMismatchError, UnsupportedStoreError
from llama_index.ragkit.index.builder import Builder
from llama_index.ragkit.index.contents import State
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.llm.embeddings import check_model
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.manifest import NodeEntry

__all__ = ["WriteChecks"]


@dataclass
class WriteChecks(Generic[State]):
    """Compares the models, components and stores that an index is written and searched with to those of its build."""

    storage: IndexStorage
    resources: Resources
    builder: Builder[Any, State]
    parameters: Mapping[str, Any]
    method: str
    model_checked: bool = False

    def embed_model(self) -> Steps[None]:
        """Reject an embedding model other than that of the build; before the first search and write."""
        if not self.model_checked:
            known = self.storage.struct.embedding
            yield from check_model(self.resources.embed_model, known)
            self.builder.check_embed_model()
            self.model_checked = bool(known)

    def describe(self) -> None:
        """Set parameters and components in the struct; refuse other components than those of the stored nodes."""
        struct = self.storage.struct
        if self.storage.is_empty:
            struct.components = {}  # nothing is stored yet that other components have produced
        components = {role: part.fingerprint for role, part in self.resources.components.items()}
        for role, fingerprint in {**components, **self.builder.fingerprints}.items():
            stored = struct.components.setdefault(role, fingerprint)
            if stored != fingerprint:
                raise ExtractorMismatchError(
                    f"The index was built with the {role} {stored}; a write with {fingerprint} would mix two kinds of "
                    f"results. Pass {role}= of the build, or build a new index."
                )
        if self.parameters:
            struct.params[self.method] = {**struct.parameters_of(self.method), **self.parameters}

    def write(self) -> Steps[None]:
        """Check that nodes can be written now."""
        yield from self.storage.commits.check()
        struct = self.storage.struct
        self.describe()
        if struct.params.get("mirrored") and self.storage.external is None:
            raise UnsupportedStoreError(
                "The index also writes its chunks to a separate vector store, which this storage context lacks. Pass "
                "vector_store= of the build, to the index or, if it was built so, to StorageContext.from_defaults."
            )
        self.builder.check_write()
        yield from self._cache(needed=False)

    def delete(self, entries: Mapping[str, NodeEntry]) -> Steps[None]:
        """Check that nodes with these entries can be deleted now."""
        yield from self.storage.commits.check()
        if entries:
            self.builder.check_write()
            yield from self._cache(needed=True)

    def _cache(self, needed: bool) -> Steps[None]:
        """Check that the cache is that of the build; a delete also `needed` one, if the build had one."""
        struct = self.storage.struct
        if not self.resources.cache_given:
            if struct.cached and needed:
                raise CacheRequiredError(
                    "The index was built with cache=, and deletes must clear that cache too. Pass cache= of the "
                    "build, or call forget_cache() if it no longer exists. Nothing was changed."
                )
            return
        identity = yield from self.resources.cache.identity()
        if struct.cached and struct.cache_id not in ("", identity):
            raise CacheRequiredError(
                "The index was built with another cache than this one, and deletes must clear that one. Pass cache= of "
                "the build, or call forget_cache() if it no longer exists. Nothing was changed."
            )
        if not needed:
            struct.cached, struct.cache_id = True, identity
