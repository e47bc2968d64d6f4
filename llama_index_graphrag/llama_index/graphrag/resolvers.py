"""Resolvers judge which names of a document are one entity, beyond the rules on names; their judgements are kept.

The key of a judgement is the hash of everything from which it was made, a
:class:`~llama_index.graphrag.graph.resolution.CandidatePair`. It holds while exactly this is stated, and is deleted
with the first chunk whose removal changes this.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import ClassVar

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index.graphrag.graph.resolution import CandidatePair, DocumentNames, Judgement, Judgements
from llama_index.graphrag.graph.statement import scope_of, scoped
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.prompts import RESOLVE_PROMPT
from llama_index.graphrag.replies import YesNo, read_yes_no
from llama_index.graphrag.state import name_id
from llama_index.ragkit import (
    ExtractionCache,
    ExtractionContext,
    Failure,
    RetryPolicy,
    Snapshot,
    Steps,
    content_id,
    offload,
)
from llama_index.ragkit.extraction.failure_watch import FailureWatch
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.llm.completion import find_llm
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.prompts import PromptHolder
from llama_index.ragkit.steps import Outcome, immediate
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.validation import check_number

__all__ = ["CosineResolver", "EntityMerging", "EntityResolver", "LLMResolver"]

_DEFAULT_RETRY = RetryPolicy()
JUDGEMENTS = "judgements"
_WAITING = "A chunk on which an earlier judgement rested was deleted. Call index.retry_failed() to judge the pair."


class EntityResolver(PromptHolder, ABC):
    """Base of components that judge which names are the same entity.

    Candidates are names of one document with the same type and the same numbers, whose vectors are near enough
    (:mod:`llama_index.graphrag.graph.resolution`). A judgement depends only on the pair, so an index that grew equals
    one that was built at once.

    Attributes
    ----------
    needs_llm : whether it calls an LLM

    Parameters
    ----------
    threshold : least cosine of two names, in [-1, 1]; it depends on the embedding model

    Raises
    ------
    ConfigurationError
        If the threshold is out of range.
    """

    needs_llm: ClassVar[bool] = False
    method: ClassVar[str] = "graphrag"
    prompts: Mapping[str, BasePromptTemplate]

    def __init__(self, threshold: float) -> None:
        self.threshold = check_number("threshold", threshold, -1, 1)
        self.prompts = {}

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class, threshold and prompts; the model is not included, so you can replace it with a better one."""
        return {"class": type(self).__name__, "threshold": str(self.threshold), **self.prompt_versions()}

    @abstractmethod
    def same(
        self, pair: CandidatePair, *, llm: LLM | None = None, cache: ExtractionCache | None = None, user: str = ""
    ) -> Steps[tuple[bool, list[str]]]:
        """Whether two names are the same entity.

        Parameters
        ----------
        llm : the LLM of the index, for a resolver that needs one and has none
        cache, user : the cache of replies, and the user of its entries

        Returns
        -------
        The judgement, and the keys of the used cache entries.

        Raises
        ------
        ExtractionError
            If the model gave no usable reply.
        """


class CosineResolver(EntityResolver):
    """Every candidate is the same entity.

    Parameters
    ----------
    threshold : see :class:`EntityResolver` [0.95]
    """

    def __init__(self, threshold: float = 0.95) -> None:
        super().__init__(threshold)

    @immediate
    def same(
        self, pair: CandidatePair, *, llm: LLM | None = None, cache: ExtractionCache | None = None, user: str = ""
    ) -> tuple[bool, list[str]]:
        """Always yes, without a call."""
        return True, []


class LLMResolver(EntityResolver):
    """A language model says yes or no to each candidate, from up to three statements about each name.

    Parameters
    ----------
    threshold : see :class:`EntityResolver` [0.8]
    llm : default the LLM of the index, else `Settings.llm`; resolved when first needed
    prompt : replaces `RESOLVE_PROMPT`; variables `kind`, `first`, `second`, `statements`
    retry : how calls are retried; a reply that is neither yes nor no counts as a failure
    """

    needs_llm: ClassVar[bool] = True
    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"resolve": RESOLVE_PROMPT}

    def __init__(
        self,
        threshold: float = 0.8,
        llm: LLM | None = None,
        prompt: BasePromptTemplate | None = None,
        retry: RetryPolicy = _DEFAULT_RETRY,
    ) -> None:
        super().__init__(threshold)
        self._llm = llm
        self._retry = retry
        if prompt is not None:
            self.update_prompts({"resolve": prompt})

    def same(
        self, pair: CandidatePair, *, llm: LLM | None = None, cache: ExtractionCache | None = None, user: str = ""
    ) -> Steps[tuple[bool, list[str]]]:
        """One call."""
        model = find_llm(self._llm or llm, "resolver=CosineResolver()")
        context = ExtractionContext(model, cache, user, self._retry, prompts=self._get_prompts(), same_language=False)
        answer = yield from context.complete(
            self.prompt("resolve"),
            parse=read_yes_no,
            output_cls=YesNo,
            reply_tokens=64,
            kind=pair.kind or "thing",
            first=pair.spellings[0],
            second=pair.spellings[1],
            statements=PromptTexts(
                ["\n".join(lines) or "(nothing more is said)" for lines in pair.lines], "statements", evenly=True
            ),
        )
        return answer, context.cache_keys


class EntityMerging:
    """Has the candidates of documents judged by a resolver, and stores the judgements."""

    def __init__(self, storage: IndexStorage, resources: Resources, resolver: EntityResolver) -> None:
        self._storage = storage
        self._resources = resources
        self._resolver = resolver

    def load(self, graph: StatementGraph) -> Steps[dict[str, tuple[Judgement, ...]]]:
        """The stored judgements, without those that no longer hold after a killed write."""
        found: dict[str, tuple[Judgement, ...]] = {}
        gone: dict[str, tuple[Judgement, ...]] = {}
        for document, given in (yield from self.all()).items():
            names = _names(graph, document)
            pairs = {judgement: names.pair(judgement.one, judgement.other) for judgement in given}
            kept = tuple(j for j, pair in pairs.items() if pair is not None and pair.key == j.key)
            if kept:
                found[document] = kept
            if len(kept) < len(given):
                gone[document] = given
        yield from self._store(gone, {document: found.get(document, ()) for document in gone})
        return found

    def of(self, documents: Iterable[str]) -> Steps[dict[str, tuple[Judgement, ...]]]:
        """The stored judgements on some documents."""
        keys = [content_id("judgements", document) for document in sorted(set(documents))]
        return dict(map(_read, (yield from self._storage.records.get_many(JUDGEMENTS, keys)).values()))

    def all(self) -> Steps[dict[str, tuple[Judgement, ...]]]:
        """The stored judgements on all documents."""
        return dict(map(_read, (yield from self._storage.records.get_all(JUDGEMENTS)).values()))

    def judge(
        self, graph: StatementGraph, known: Judgements, documents: Iterable[str], ask: bool
    ) -> Steps[dict[str, tuple[Judgement, ...]]]:
        """The judgements on documents after a change, and the earlier ones on others; stored.

        If no model may be asked, new pairs wait.
        """
        touched = sorted(set(documents))
        names = yield from offload(lambda: {document: _names(graph, document) for document in touched})
        ids = {name_id(name) for document, given in names.items() for name in _scoped(document, given).values()}
        rows = yield from self._storage.space("entities").fetch(sorted(ids))
        candidates = yield from offload(
            lambda: {document: self._candidates(rows, document, given) for document, given in names.items()}
        )
        before = {j.key: j for document in touched for j in known.get(document, ())}
        judged = {key for key, judgement in before.items() if judgement.same is not None}
        asks = ask or not self._resolver.needs_llm
        todo = {pair.key: (document, pair) for document, pairs in candidates.items() for pair in pairs}
        fresh = yield from self._asked({key: job for key, job in todo.items() if key not in judged} if asks else {})
        latest = {**before, **fresh}
        after = {
            document: tuple(latest.get(pair.key) or Judgement(*pair.names, pair.key, None, _WAITING) for pair in pairs)
            for document, pairs in candidates.items()
        }
        yield from self._store(known, after)
        return {document: given for document, given in {**known, **after}.items() if given}

    def _candidates(self, rows: Snapshot, document: str, names: DocumentNames) -> list[CandidatePair]:
        ids = {name: name_id(key) for name, key in _scoped(document, names).items()}
        listed = sorted(name for name in names.types if ids[name] in rows)
        if len(listed) < 2:
            return []
        vectors = rows.vectors_of([ids[name] for name in listed])
        return names.candidates(listed, vectors, self._resolver.threshold)

    def _asked(self, todo: Mapping[str, tuple[str, CandidatePair]]) -> Steps[dict[str, Judgement]]:
        """New judgements by key; if the call for a pair failed, its judgement gives the reason."""
        resolver, resources = self._resolver, self._resources
        watch = FailureWatch("pairs of names", resources.on_error)
        jobs = {key: partial(self._one, document, pair) for key, (document, pair) in todo.items()}
        outcomes: dict[str, Outcome[Judgement]] = yield from resources.run(
            jobs, watch, "Pair {}", type(resolver).__name__, needs_llm=resolver.needs_llm
        )
        return {
            key: outcome.unwrap()
            if outcome.error is None
            else Judgement(*pair.names, key, None, f"{type(outcome.error).__name__}: {outcome.error}")
            for (key, (_, pair)), outcome in zip(todo.items(), outcomes.values(), strict=True)
        }

    def _one(self, document: str, pair: CandidatePair) -> Steps[Judgement]:
        resources = self._resources
        same, cache_keys = yield from self._resolver.same(
            pair, llm=resources.given_llm, cache=resources.cache, user=self._user(document, pair.key)
        )
        return Judgement(*pair.names, pair.key, same, "", tuple(cache_keys) if resources.cache_given else ())

    def _user(self, document: str, key: str) -> str:
        return self._storage.cache_user(content_id("judgement", document, key))

    def _store(self, before: Judgements, after: Judgements) -> Steps[None]:
        """Store the judgements on some documents, and release the cache entries that none of them uses."""
        changed = {document: given for document, given in after.items() if given != before.get(document, ())}
        records = {
            content_id("judgements", i): {"document": i, "judgements": list(map(asdict, given))} if given else None
            for i, given in changed.items()
        }
        yield from self._storage.records.update(JUDGEMENTS, records)
        uses = {
            self._user(document, j.key): list(j.cache_keys)
            for document, given in changed.items()
            for j in before.get(document, ())
            if j.cache_keys and j.key not in {kept.key for kept in given}
        }
        yield from self._resources.release(uses)

    @staticmethod
    def failures(judgements: Judgements) -> list[Failure]:
        """The pairs without a judgement."""
        return [
            Failure(f"{j.one} / {j.other}", "resolver", j.reason)
            for given in judgements.values()
            for j in given
            if j.same is None
        ]


def _read(record: Record) -> tuple[str, tuple[Judgement, ...]]:
    given = tuple(Judgement(**{**row, "cache_keys": tuple(row["cache_keys"])}) for row in record["judgements"])
    return record["document"], given


def _names(graph: StatementGraph, document: str) -> DocumentNames:
    return DocumentNames.of(graph.chunks[chunk] for chunk in graph.documents.get(document, ()))


def _scoped(document: str, names: DocumentNames) -> dict[str, str]:
    return {name: scoped(scope_of(document), name) for name in names.types}
