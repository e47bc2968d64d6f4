"""`GEMRAGIndex`: graphical eigen memories (Rappazzo et al., 2024, arXiv 2409.15566)."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.ingestion import run_transformations
from llama_index.core.schema import BaseNode, Document, IndexNode, TextNode, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.storage_context import StorageContext
from numpy.typing import NDArray

from llama_index.gemrag.building import (
    Group,
    ThemeWriter,
    group_names,
    load_groups,
    load_themes,
    put_groups,
    put_questions,
    drop_questions,
    rows_by_group,
)
from llama_index.gemrag.eigenthemes import Reading, Spectrum, find_themes, spectrum_of
from llama_index.gemrag.extractors import UtilityQuestionExtractor
from llama_index.gemrag.layer import Layer
from llama_index.gemrag.memory_graph import MemoryGraph, question_means, unit_rows
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.ragkit import (
    DerivedIndex,
    DerivedStruct,
    Estimate,
    Extraction,
    LLMSummarizer,
    NodeExtractor,
    Summarizer,
    register_index,
)
from llama_index.ragkit.driver import Steps, arun_steps, call, gather, offload, run_steps
from llama_index.ragkit.embedding import as_matrix, embed_texts
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.records import Record, node_from_record, plain_text
from llama_index.ragkit.results import count_tokens
from llama_index.ragkit.writing import Change

__all__ = ["GEMRAGIndex", "GEMRAGStruct"]

logger = logging.getLogger(__name__)

_EXACT_BELOW = 5_000  # nodes; double precision costs little here
_PAPER: dict[str, Any] = {
    "num_themes": 2,
    "rotate": False,
    "include_trivial": True,
    "min_component": 0.0,
}


@dataclass
class GEMRAGStruct(DerivedStruct):
    """The struct of a :class:`GEMRAGIndex`."""

    @classmethod
    def get_type(cls) -> str:  # type: ignore[override]
        """The import path: core's error for an unknown type then names what to import."""
        return "llama_index.gemrag"


class GEMRAGIndex(DerivedIndex[GEMRAGStruct, GEMRAGState]):
    """Chunks tagged with the questions that they answer, a memory graph over them, and its themes as summaries.

    A question finds chunks by their text and by the questions they were tagged with; what the corpus is about as a
    whole stands in the themes, summaries of the chunks that the leading eigenvectors of the graph hold together.

    Parameters
    ----------
    extractor : says which questions a chunk (and a theme) answers; default :class:`UtilityQuestionExtractor`.
        :class:`KeyphraseQuestionExtractor` needs no LLM; `num_questions=0` on either builds without questions
    summarizer : writes the themes; default :class:`~llama_index.ragkit.LLMSummarizer`.
        :class:`~llama_index.ragkit.ExtractiveSummarizer` needs no LLM
    group_by : which chunks share a graph: a metadata key, "ref_doc_id" for one graph a document, None for one graph
        of all chunks ["ref_doc_id", the unit of the paper]
    num_themes : themes of a group; None goes by the spectrum's largest relative drop; 0 builds none
    max_themes : themes of a group at most when the spectrum decides [32]. No group has more than a third as many
        themes as chunks
    theme_size, min_component : the members of a theme: at most so many, each with at least this share of the
        largest component [10, 0.25]
    rotate : turn the leading eigenvectors by varimax, so that each holds one theme [True]
    include_trivial, both_poles : without rotation, whether the first eigenvector, and the negative side of the
        others, make themes too [False, False]
    blend : weight of the question in a blended vector, the text having the rest, in the graph [0.5, as published]
    max_theme_tokens : tokens that one summary is made from at most; the weakest members are left out [8192]
    summary_tokens : length that a summary is asked for [200]
    refresh_share : a group's spectrum is read again when more than this share of its chunks changed since the last
        time [0.1]; 0 reads it at every write, 1 only when it must be
    question_role : how questions are embedded: "text" in batches like chunks, "query" one by one like the prompts
        they will be compared with, for models that treat the two differently ["text"]
    summaries : what follows a delete. "deferred": themes that saw what was deleted go at once and are made again at
        the next insert or by :meth:`write_summaries`, so that a delete needs no LLM; "eager": within the delete
    paper : the literal reading of the paper: two components, the first eigenvector among them, no rotation and no
        component threshold, S - I, sums over questions; retrievers then score by the blended vectors alone
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Parameters of the memory are stored with the index; those given when it is loaded replace them.
    Deviations from the paper are listed in the documentation of the package.
    """

    index_struct_cls = GEMRAGStruct
    method: ClassVar[str] = "gemrag"
    space_names: ClassVar[tuple[str, ...]] = ("chunks", "questions", "themes", "theme_questions")

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        objects: Sequence[IndexNode] | None = None,
        index_struct: GEMRAGStruct | None = None,
        storage_context: StorageContext | None = None,
        *,
        extractor: NodeExtractor | None = None,
        summarizer: Summarizer | None = None,
        group_by: str | None = "",
        num_themes: int | None = None,
        max_themes: int | None = None,
        theme_size: int | None = None,
        min_component: float | None = None,
        rotate: bool | None = None,
        include_trivial: bool | None = None,
        both_poles: bool | None = None,
        blend: float | None = None,
        max_theme_tokens: int | None = None,
        summary_tokens: int | None = None,
        refresh_share: float | None = None,
        question_role: Literal["text", "query"] | None = None,
        summaries: Literal["deferred", "eager"] | None = None,
        paper: bool | None = None,
        transformations: list[TransformComponent] | None = None,
        **kwargs: Any,
    ) -> None:
        self._summarizer = summarizer or LLMSummarizer()
        given = {
            "num_themes": num_themes,
            "max_themes": max_themes,
            "theme_size": theme_size,
            "min_component": min_component,
            "rotate": rotate,
            "include_trivial": include_trivial,
            "both_poles": both_poles,
            "blend": blend,
            "max_theme_tokens": max_theme_tokens,
            "summary_tokens": summary_tokens,
            "refresh_share": refresh_share,
            "question_role": question_role,
            "summaries": summaries,
            "paper": paper,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if group_by != "":  # None means one graph of all
            given["group_by"] = group_by
        stored = index_struct.params.get("gemrag", {}) if index_struct is not None else {}
        literal = _PAPER if given.get("paper", stored.get("paper")) else {}
        self._params = {**_DEFAULTS, **literal, **stored, **given}
        _check_params(self._params)
        self._groups: dict[str, Group] = {}
        self._last_query: tuple[str, list[tuple[str, float]]] | None = None
        super().__init__(
            nodes=nodes,
            objects=objects,
            index_struct=index_struct,
            storage_context=storage_context,
            transformations=transformations,
            extractor=extractor or UtilityQuestionExtractor(),
            **kwargs,
        )

    # -- what DerivedIndex asks ---------------------------------------------------------------------

    def _components(self) -> dict[str, dict[str, str]]:
        return {**super()._components(), "summarizer": self._summarizer.fingerprint}

    def _read_state(self) -> Steps[GEMRAGState]:
        self._groups = yield from load_groups(self._parts)
        return self._state_of(*(yield from load_themes(self._parts)))

    def _state_of(self, structure: Mapping[str, Theme], written: Mapping[str, Record]) -> GEMRAGState:
        chunks, questions, themes, theme_questions = (
            self._parts.spaces[name].store.snapshot() for name in self.space_names
        )
        return GEMRAGState.of(chunks, questions, themes, theme_questions, dict(structure), dict(written))

    def _derive(self, change: Change) -> Steps[GEMRAGState]:
        self._parts.struct.params["gemrag"] = self._params
        writer = self._writer(self._state)
        gone = set(change.removed)
        lost = [name for name, theme in writer.structure.items() if gone.intersection(theme.members)]
        lost_groups = {writer.structure[name].group for name in lost}
        yield from writer.drop(lost)  # what saw a deleted chunk goes before anything else is done
        yield from drop_questions(self._parts, "questions", gone)
        chunks = self._parts.chunks.store.snapshot()
        asked = {
            node.node_id: _questions(change.records.get(node.node_id)) for node in change.added if node.node_id in chunks
        }
        keys = {node_id: chunks.record_of(node_id).key for node_id in asked}
        yield from put_questions(self._parts, "questions", asked, keys, self._embed_questions)
        yield from self._count_changes(change, lost_groups)
        if change.added or self._params["summaries"] == "eager":
            yield from self._write_themes(writer, self._due())
        return self._state_of(writer.structure, writer.written)

    # -- groups -------------------------------------------------------------------------------------

    def _count_changes(self, change: Change, lost: Collection[str]) -> Steps[None]:
        """Note in each group how many chunks came and went, and forget groups without a chunk."""
        by = self._params["group_by"]
        before, after = self._state.chunks.texts, self._parts.chunks.store.snapshot()
        moved: Counter[str] = Counter()
        for chunks, ids in (
            (before, change.removed),
            (after, [n.node_id for n in change.added if n.node_id not in change.again]),
        ):
            rows = chunks.rows_of(list(ids))
            names = group_names(chunks, by) if len(rows) else []
            moved.update(names[row] for row in rows if row >= 0)
        self._sizes = Counter(group_names(after, by))
        groups = dict(self._groups)
        for name in {*moved, *lost, *(self._sizes.keys() - groups.keys())}:
            old = groups.get(name, Group())
            groups[name] = Group(old.changed + moved[name], old.lost or name in lost)
        empty = [name for name in groups if not self._sizes[name]]
        self._groups = {name: group for name, group in groups.items() if self._sizes[name]}
        yield from put_groups(self._parts, self._groups, empty)

    def _due(self) -> list[str]:
        """Groups whose spectrum is to be read again."""
        share = self._params["refresh_share"]
        return sorted(
            name
            for name, group in self._groups.items()
            if group.lost or (group.changed and group.changed > share * (self._sizes[name] - group.changed))
        )

    def _write_themes(self, writer: ThemeWriter, groups: Sequence[str]) -> Steps[None]:
        """Read the spectra of groups again and write the themes that are missing."""
        state = self._state_of(writer.structure, writer.written)
        rows = rows_by_group(group_names(state.chunks.texts, self._params["group_by"]), groups, state.chunks)
        for name in groups:
            found = yield from offload(self._themes_of_rows, state.chunks, name, rows[name])
            yield from writer.replace(name, found)
        yield from writer.write()
        self._groups = {**self._groups, **{name: Group() for name in groups}}
        yield from put_groups(self._parts, {name: self._groups[name] for name in groups}, ())
        self._parts.struct.counters = {
            "chunks": len(state.chunks.texts),
            "questions": len(state.chunks.questions),
            "themes": len(writer.written),
            "failed": len(writer.failed),
        }
        if writer.failed:
            name, error = next(iter(writer.failed.items()))
            logger.warning(
                "%d of %d themes failed, among them %s: %s. index.retry_failed() tries them again.",
                len(writer.failed), len(writer.structure), name, error,
            )  # fmt: skip
            if self._on_error == "raise":
                raise error

    def _graph(self, layer: Layer, rows: NDArray[np.intp]) -> MemoryGraph:
        """The memory graph of some chunks."""
        kind = np.float64 if len(rows) < _EXACT_BELOW else np.float32
        texts = unit_rows(layer.texts.vectors_of([layer.texts.ids[row] for row in rows]).astype(kind))
        asked, owners = layer.questions_of(rows)
        questions = layer.questions.vectors_of([layer.questions.ids[row] for row in asked]) if len(asked) else texts[:0]
        literal = bool(self._params["paper"])
        means = question_means(texts, unit_rows(questions), owners, self._params["blend"], literal)
        return MemoryGraph.of(means, texts, literal)

    def _themes_of_rows(self, layer: Layer, group: str, rows: NDArray[np.intp]) -> list[Theme]:
        reading = self._reading
        if not reading.most(len(rows)):
            return []
        ids = [layer.texts.ids[row] for row in rows]
        found = find_themes(self._graph(layer, rows), reading)
        return [
            Theme(group, tuple(ids[row] for row in theme.rows), tuple(float(w) for w in theme.weights))
            for theme in found
        ]

    @property
    def _reading(self) -> Reading:
        return Reading(**{field.name: self._params[field.name] for field in fields(Reading)})

    # -- texts, questions, vectors ------------------------------------------------------------------

    def _writer(self, state: GEMRAGState) -> ThemeWriter:
        return ThemeWriter(
            self._parts,
            state.structure,
            state.written,
            summarize=self._summarize,
            ask=self._ask_about,
            embed=lambda texts: embed_texts(self.embed_model, texts, self._show_progress),
            embed_questions=self._embed_questions,
            release=lambda uses: self._cache.release_many({self._user(name): keys for name, keys in uses.items()}),
            max_theme_tokens=self._params["max_theme_tokens"],
            num_workers=self._num_workers if self._summarizer.needs_llm else 1,
            show_progress=self._show_progress,
        )

    def _summarize(self, texts: list[str], name: str) -> Steps[tuple[str, list[str]]]:
        text, keys = yield from self._summarizer.summarize(
            texts,
            max_tokens=self._params["summary_tokens"],
            embed_model=self.embed_model,
            llm=self._given_llm,
            cache=self._cache,
            user=self._user(name),
        )
        return text, keys if self._cache_given else []

    def _ask_about(self, texts: Mapping[str, str]) -> Steps[list[Extraction]]:
        """The questions that themes answer."""
        extractor = self._extractor
        if extractor is None:
            return [Extraction(name, {}) for name in texts]
        found = yield from extractor.extract(
            [TextNode(id_=name, text=text) for name, text in texts.items()],
            cache=self._cache,
            user_prefix=self._user(""),
            llm=self._given_llm,
            num_workers=self._num_workers,
            show_progress=self._show_progress,
            on_error=self._on_error,
        )
        return [
            Extraction(f.node_id, {"questions": _questions(f.record)}, f.error, f.cache_keys if self._cache_given else [])
            for f in found
        ]

    def _embed_questions(self, texts: list[str]) -> Steps[NDArray[np.float32]]:
        if self._params["question_role"] == "text":
            return (yield from embed_texts(self.embed_model, texts, self._show_progress))
        model = self.embed_model
        jobs = [partial(call, model.get_query_embedding, model.aget_query_embedding, text) for text in texts]
        outcomes = yield from gather(jobs, self._num_workers, "Embedding questions", self._show_progress)
        return as_matrix([outcome.unwrap() for outcome in outcomes], texts)

    # -- public -------------------------------------------------------------------------------------

    def _update(self, groups: Callable[[], Sequence[str]], rewrite: bool = False) -> Steps[int]:
        """Read spectra again and write what is missing; returns how many themes are still missing."""
        with (yield from self._lock.acquire()):
            self._check_components()
            yield from self._check_model()
            yield from self._parts.announce()
            writer = self._writer(self._state)
            self._sizes = Counter(group_names(self._state.chunks.texts, self._params["group_by"]))
            failure: Exception | None = None
            try:
                if rewrite:
                    yield from writer.drop([n for n, t in writer.structure.items() if t.group not in self._sizes])
                    self._groups = {name: self._groups.get(name, Group()) for name in self._sizes}
                yield from self._write_themes(writer, groups())
                self._state = self._state_of(writer.structure, writer.written)
            except Exception as error:
                failure = error
                self._state = yield from self._read_state()
            yield from self._parts.seal(building=False)
            if failure is not None:
                raise failure
            return len(self._state.unwritten)

    def _write_summaries(self) -> Steps[int]:
        return (yield from self._update(lambda: sorted(n for n, g in self._groups.items() if g.lost or g.changed)))

    def _rebuild(self) -> Steps[int]:
        return (yield from self._update(lambda: sorted(self._sizes), rewrite=True))

    def _retry_failed(self) -> Steps[int]:
        chunks = yield from super()._retry_failed()
        again = [name for name, record in self._state.written.items() if record["error"] is not None]
        if again:  # their summary stands; their questions are asked for again
            yield from self._retry_questions(again)
        themes = (yield from self._update(list)) if self._state.unwritten else 0
        return chunks + themes + sum(record["error"] is not None for record in self._state.written.values())

    def _retry_questions(self, names: Sequence[str]) -> Steps[None]:
        with (yield from self._lock.acquire()):
            yield from self._check_model()
            yield from self._parts.announce()
            state = self._state
            texts = {name: plain_text(node_from_record(state.written[name]["node"])) for name in names}
            try:
                found = yield from self._ask_about(texts)
                records = {
                    f.node_id: {
                        **state.written[f.node_id],
                        "error": f.error,
                        "cache_keys": list(dict.fromkeys([*state.written[f.node_id]["cache_keys"], *f.cache_keys])),
                    }
                    for f in found
                }
                yield from self._parts.records.put("summaries", list(records.items()))
                asked = {f.node_id: _questions(f.record) for f in found}
                keys = {name: state.themes.texts.record_of(name).key for name in asked}
                yield from put_questions(self._parts, "theme_questions", asked, keys, self._embed_questions)
                self._state = self._state_of(state.structure, {**state.written, **records})
            finally:
                yield from self._parts.seal(building=False)

    def write_summaries(self) -> int:
        """Read the spectra of the groups that changed and write the themes that are missing.

        Returns
        -------
        How many themes are still missing.
        """
        return run_steps(self._write_summaries())

    async def awrite_summaries(self) -> int:
        """As :meth:`write_summaries`."""
        return await arun_steps(self._write_summaries())

    def rebuild(self) -> int:
        """Read every spectrum again, as a build from all documents at once would.

        Themes that come out as they were keep their summaries and cost nothing.

        Returns
        -------
        How many themes are missing.
        """
        return run_steps(self._rebuild())

    async def arebuild(self) -> int:
        """As :meth:`rebuild`."""
        return await arun_steps(self._rebuild())

    def spectrum(self, group: Any = "") -> Spectrum:
        """Eigenvalues of a memory graph, the number of themes they tell of, and how distinct those are.

        Parameters
        ----------
        group : a document id, or another value of `group_by`; by default all chunks in one graph

        Raises
        ------
        ConfigurationError
            If no chunk is of that group.
        """
        layer = self._state.chunks
        rows = np.arange(len(layer.texts))
        if group != "":
            column, codes = layer.texts.column(self._params["group_by"] or "ref_doc_id")
            rows = np.flatnonzero(codes == column.code_of.get(group, -1))
            if not len(rows):
                shown = ", ".join(map(repr, column.values[:5]))
                raise ConfigurationError(f"No chunk is of the group {group!r}; groups are {shown}, ...")
        rows = rows[np.argsort([layer.texts.records[row].key for row in rows])] if len(rows) else rows
        return spectrum_of(self._graph(layer, rows), self._params["max_themes"])

    @property
    def themes(self) -> dict[str, list[str]]:
        """The themes: id -> ids of the members, strongest first."""
        return {name: list(theme.members) for name, theme in self._state.structure.items()}

    def questions_of(self, node_id: str) -> list[str]:
        """The questions that a chunk or a theme was tagged with, in the order of the alphabet."""
        return sorted(self._asked(self._state).get(node_id, ()))

    def as_retriever(self, **kwargs: Any) -> BaseRetriever:
        """A :class:`GEMRAGRetriever` over this index."""
        from llama_index.gemrag.retriever import GEMRAGRetriever

        literal = {"blend": 0.5, "summary_margin": 0.0, "keep_covered": True} if self._params["paper"] else {}
        return GEMRAGRetriever(self, **{**literal, **kwargs})

    def visualize(self, path: str | Path, query: str | None = None, max_chunks: int = 1500) -> Path:
        """Write the memory as one HTML page to explore: chunks, questions and themes; zoom, search, click.

        Parameters
        ----------
        query : asked first, so that its answer is lit; by default the last question that was asked
        max_chunks : a larger memory is shown in part: the answer, then the members of themes

        Returns
        -------
        The path of the page; it needs no network.
        """
        from llama_index.gemrag.view import page_of
        from llama_index.ragkit.html import write

        if query is not None:
            self.as_retriever().retrieve(query)
        state, asked = self._state, self._last_query
        return write(page_of(state, run_steps(self._texts(state)), self._params["blend"], asked, max_chunks), path)

    def to_networkx(self, neighbours: int = 5) -> Any:
        """The memory as a `networkx.Graph`: see :func:`llama_index.gemrag.export.to_graph`.

        Parameters
        ----------
        neighbours : edges between chunks: each with its so many strongest; 0 for none
        """
        from llama_index.gemrag.export import to_graph

        state = self._state
        return to_graph(state, run_steps(self._texts(state)), self._params["blend"], neighbours)

    @classmethod
    def estimate(
        cls,
        documents: Sequence[Document],
        extractor: NodeExtractor | None = None,
        summarizer: Summarizer | None = None,
        transformations: list[TransformComponent] | None = None,
        llm: Any = None,
        summary_tokens: int = 200,
        themes_per_document: float = 2,
        theme_size: int = 10,
    ) -> Estimate:
        """What building over documents would cost in LLM calls and tokens; calls nothing.

        One call a chunk for its questions; for each theme one for the summary, which reads `theme_size` chunks, and
        one for its questions. How many themes there are is known only afterwards.
        """
        extractor, summarizer = extractor or UtilityQuestionExtractor(), summarizer or LLMSummarizer()
        nodes = run_transformations(list(documents), transformations or Settings.transformations)
        work = extractor.estimate(nodes, llm)
        sizes = Counter(node.ref_doc_id for node in nodes)
        themes = round(sum(min(themes_per_document, n // 3) for n in sizes.values()))
        if themes and summarizer.needs_llm:
            read = sum(count_tokens(plain_text(node)) for node in nodes) / len(nodes) * theme_size
            work += Estimate(themes, round(themes * read), themes * summary_tokens)
        if themes:
            filler = TextNode(text=" ".join(["word"] * summary_tokens))
            work += extractor.estimate([filler] * themes, llm)
        return work

    # -- nodes --------------------------------------------------------------------------------------

    def _fetch(self, state: GEMRAGState, node_id: str) -> Steps[BaseNode | None]:
        """A theme of a state, or a chunk from the docstore; None if it is gone."""
        if node_id in state.written:
            return node_from_record(state.written[node_id]["node"])
        return (yield from self._parts.get_node(node_id))

    def _texts(self, state: GEMRAGState) -> Steps[dict[str, str]]:
        texts = {}
        for node_id in [*state.chunks.texts.ids, *state.written]:
            node = yield from self._fetch(state, node_id)
            if node is not None:
                texts[node_id] = plain_text(node)
        return texts

    def _asked(self, state: GEMRAGState) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for layer in (state.chunks, state.themes):
            for owner, question in layer.asked():
                found.setdefault(owner, []).append(question)
        return found


_DEFAULTS: dict[str, Any] = {
    **asdict(Reading()),
    "group_by": "ref_doc_id",
    "blend": 0.5,
    "max_theme_tokens": 8192,
    "summary_tokens": 200,
    "refresh_share": 0.1,
    "question_role": "text",
    "summaries": "deferred",
    "paper": False,
}


def _questions(record: Record | None) -> list[str]:
    """The questions in a record: texts with a word in them, each once."""
    asked = (record or {}).get("questions", ())
    return list(dict.fromkeys(q for q in asked if isinstance(q, str) and q.strip()))


def _check_params(params: dict[str, Any]) -> None:
    least = {"num_themes": 0, "max_themes": 1, "theme_size": 2, "max_theme_tokens": 1, "summary_tokens": 1}
    for name, low in least.items():
        value = params[name]
        if (value is not None or name != "num_themes") and (not isinstance(value, int) or value < low):
            raise ConfigurationError(f"{name} must be a whole number of at least {low}, not {value!r}.")
    for name in ("min_component", "blend", "refresh_share"):
        if not isinstance(params[name], int | float) or not 0 <= params[name] <= 1:
            raise ConfigurationError(f"{name} must be a number in [0, 1], not {params[name]!r}.")
    for name, choices in {"question_role": ("text", "query"), "summaries": ("deferred", "eager")}.items():
        if params[name] not in choices:
            raise ConfigurationError(f"{name} must be {choices[0]!r} or {choices[1]!r}, not {params[name]!r}.")
    if params["group_by"] is not None and (not isinstance(params["group_by"], str) or not params["group_by"]):
        raise ConfigurationError(f"group_by must be a metadata key or None, not {params['group_by']!r}.")


register_index(GEMRAGIndex)
