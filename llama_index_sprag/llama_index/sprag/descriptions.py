"""`Descriptions`: the descriptions of documents, as records, and the headers that chunks get from them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType

from llama_index.core.schema import BaseNode, MetadataMode

from llama_index.ragkit import Steps, content_id
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.failure_watch import all_failed
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.salient_terms import CorpusTerms
from llama_index.sprag.config import SpRAGConfig
from llama_index.sprag.context.headers import header_text, published_header_text
from llama_index.sprag.extraction.context_extractor import ContextExtractor, Described, Description, DocumentChunks

__all__ = ["CONTEXTS", "Descriptions", "as_record", "document_of", "shown_text"]

CONTEXTS = "contexts"


class Descriptions:
    """Describes the documents of one index, and keeps a record of each description.

    Raises
    ------
    ConfigurationError
        If the extractor is of another kind.
    """

    def __init__(self, storage: IndexStorage, resources: Resources, config: SpRAGConfig) -> None:
        if not isinstance(resources.extractor, ContextExtractor):
            raise ConfigurationError(
                f"extractor must be AutoContext() or RuleContext(), not {type(resources.extractor).__name__}."
            )
        self.extractor: ContextExtractor = resources.extractor
        self._storage = storage
        self._resources = resources
        self._config = config

    def describe(
        self,
        read: Mapping[str, DocumentChunks],
        corpus: CorpusTerms | None = None,
        *,
        may_call: bool,
        ready: Mapping[str, Described] = MappingProxyType({}),
    ) -> Steps[dict[str, Described]]:
        """Describe documents; those that were described before, or are `ready`, are described again only if necessary.

        See :meth:`~llama_index.sprag.extraction.context_extractor.ContextExtractor.describe`.

        Raises
        ------
        LanguageModelError
            If the model failed at all of several documents, none of which failed before, and gave no reply at all.
        """
        known = {}
        again: set[str] = set()
        keys: dict[str, Sequence[str]] = {}
        for key, record in (yield from self._storage.records.get_many(CONTEXTS, read)).items():
            if record.get("error"):
                again.add(key)
            else:
                keys[key] = record.get("cache_keys", ())
                names = ("title", "summary", "sections", "section_summaries", "source", "terms")
                known[key] = Description(**{name: record[name] for name in names})
        for key, each in ready.items():
            if each.description is not None and not each.by:
                known[key], keys[key] = each.description, each.cache_keys
        resources = self._resources
        found = yield from self.extractor.describe(
            list(read.values()),
            known,
            may_call=may_call,
            corpus=corpus,
            cache=resources.cache,
            user_prefix=self._storage.cache_user(""),
            llm=resources.given_llm,
            num_workers=resources.num_workers,
            show_progress=resources.show_progress,
            on_error=resources.on_error,
            falls_back=resources.fallback is not None,
        )
        failed = {
            f"Document {key}": each.error
            for key, each in zip(read, found, strict=True)
            if each.error and each.description is None and not each.unreadable
        }
        if may_call and not again and 1 < len(failed) == len(read):
            raise all_failed("documents", failed)
        return {
            key: replace(each, cache_keys=(each.cache_keys or keys.get(key, ())) if resources.cache_given else ())
            for key, each in zip(read, found, strict=True)
        }

    def by_rules(
        self,
        read: Mapping[str, DocumentChunks],
        described: Mapping[str, Described],
        corpus: CorpusTerms | None,
        *,
        may_call: bool,
    ) -> Steps[dict[str, Described]]:
        """The fallback's descriptions of the documents, or sections, among all that were not described."""
        rules = self._resources.fallback
        failed = {key: read[key] for key, found in described.items() if found.error}
        if not isinstance(rules, ContextExtractor) or not failed:
            return {}
        found = yield from rules.describe(list(failed.values()), {}, may_call=True, corpus=corpus)
        by = type(rules).__name__
        if may_call:
            counts, first = (len(failed), len(read)), described[next(iter(failed))].error
            self._resources.note_fallback(by, self.extractor, counts, "documents", first)
        return {
            key: replace(described[key], description=_filled(described[key].description, each.description), by=by)
            for key, each in zip(failed, found, strict=True)
        }

    def forget(self, keys: Sequence[str], described: Mapping[str, Described] = MappingProxyType({})) -> Steps[None]:
        """Delete descriptions, and release their cache entries that the new descriptions do not use."""
        stored = yield from self._storage.records.get_many(CONTEXTS, keys)
        uses = {}
        for key, record in stored.items():
            used = described[key].cache_keys if key in described else ()
            uses[self._storage.cache_user(key)] = [each for each in record.get("cache_keys", ()) if each not in used]
        yield from self._storage.records.delete(CONTEXTS, keys)
        yield from self._resources.release(uses)

    def store(self, described: Mapping[str, Described]) -> Steps[None]:
        """Store descriptions, or the reasons why there are none."""
        yield from self._storage.records.put(CONTEXTS, [(key, as_record(found)) for key, found in described.items()])

    def headers(self, document: DocumentChunks, found: Described) -> dict[str, str]:
        """The header of each chunk of a document, by the id of the chunk."""
        described = found.description
        if described is None:
            return dict.fromkeys((node.node_id for node in document.nodes), "")
        headers = {}
        for i, node in enumerate(document.nodes):
            # Do not repeat what the node's metadata already tell the embedding model.
            shown = node.get_metadata_str(mode=MetadataMode.EMBED)
            title = "" if described.title and described.title in shown else described.title
            section, summary = described.sections[i], described.section_summaries[i]
            if self._config.header == "published":
                headers[node.node_id] = published_header_text(title, described.summary, section, summary)
            else:
                parts = (header_text(title, described.summary, described.terms, section), summary)
                headers[node.node_id] = "\n".join(part for part in parts if part)
        return headers


def as_record(found: Described) -> Record:
    """A description as it is stored."""
    description = Description() if found.description is None else found.description
    by = {"by": found.by} if found.by else {}
    return {**asdict(description), "error": found.error, "cache_keys": list(found.cache_keys), **by}


def _filled(description: Description | None, by_rules: Description | None) -> Description | None:
    """A description with the sections that it lacks taken from the other, or else the other description."""
    if description is None or by_rules is None:
        return description or by_rules
    return replace(
        description,
        sections=[own or other for own, other in zip(description.sections, by_rules.sections, strict=True)],
    )


def document_of(node_id: str, record: Mapping[str, object]) -> str:
    """The key of the document of a chunk, from what was extracted from it."""
    return str(record.get("document") or content_id("chunk", node_id))


def shown_text(node: BaseNode) -> str:
    """The text that the embedding model gets for a chunk without a header."""
    return node.get_content(metadata_mode=MetadataMode.EMBED)
