"""`compare`: ask all systems the same questions."""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings.utils import EmbedType, resolve_embed_model
from llama_index.core.ingestion import run_transformations
from llama_index.core.llms import LLM
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TransformComponent,
)
from llama_index.core.settings import Settings
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION
from tqdm.auto import tqdm

from llama_index.ragkit.compare.comparison import Comparison
from llama_index.ragkit.compare.methods import Method, heads_of, installed
from llama_index.ragkit.compare.questions import Question, held_out, pages_of_files, with_documents, written
from llama_index.ragkit.compare.system import Answering, Hit, Run, load_run, save_run
from llama_index.ragkit.errors import ConfigurationError, ParseError
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.index.hybrid_retriever import HybridRetriever
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.completion import model_identity
from llama_index.ragkit.llm.embeddings import embed_texts
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.nodes import embed_text, plain_text, with_stable_ids
from llama_index.ragkit.validation import check_count
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT

__all__ = ["compare", "knowing_questions"]

_COLLECTION = "embeddings"  # where LlamaIndex's embedding models look

logger = logging.getLogger(__name__)

# Plain search over the same chunks: the weight of words in a HybridRetriever.
_BASELINES = {"dense": 0.0, "BM25": 1.0, "hybrid": LEXICAL_WEIGHT}
_KEPT = 1000  # characters of a passage that a run keeps, which its page shows
_ENOUGH = 10  # times the passages of an answer, that many chunks make recall tell systems apart
_SHORT = 10  # tokens of a short passage
_PROBED = 10  # chunks, by which the time of a build is estimated
_PROBED_QUESTIONS = 2


class _QuestionVectors(SimpleKVStore):
    """Holds the vectors of questions and takes no others, so that no vector of a text becomes that of a question."""

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        pass

    async def aput(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        pass


def knowing_questions(model: BaseEmbedding, questions: Sequence[str], show_progress: bool = False) -> BaseEmbedding:
    """The model with the vectors of these questions in its cache; itself if it has a cache of its own.

    The model that is passed stays as it was. Questions that a system derives from these are embedded when asked for.
    """
    logger.info("Embedding %d questions.", len(questions))
    bar = tqdm(dict.fromkeys(questions), desc="Embedding questions", disable=not show_progress)
    vectors = {question: model.get_query_embedding(question) for question in bar}
    if model.embeddings_cache is not None:
        return model
    known = _QuestionVectors({_COLLECTION: {question: {"question": vector} for question, vector in vectors.items()}})
    return model.model_copy(update={"embeddings_cache": known})


def compare(
    documents: Sequence[Document],
    questions: Sequence[Question | str] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    methods: Sequence[str] | None = None,
    embed_model: EmbedType | None = None,
    llm: LLM | None = None,
    transformations: list[TransformComponent] | None = None,
    top_k: int = 5,
    context_tokens: int = 1000,
    read: bool = False,
    count: int = 40,
    seed: int = 0,
    show_progress: bool = False,
    before: Callable[[dict[str, Estimate]], None] | None = None,
    timed: Callable[[dict[str, float]], None] | None = None,
    head_model: BaseEmbedding | None = None,
    built: Callable[[str, Any, BaseRetriever], None] | None = None,
) -> Comparison:
    """Build the installed methods and plain search over documents, ask questions, and compare the answers.

    Methods are built with their defaults: with the LLM if one is passed, and by rules otherwise. A method that fails is
    reported and left out.

    Where the questions have correct answers, each system also fills a context of `context_tokens` tokens, with what it
    gives a query engine by default: whether the context holds an answer, and, with an LLM, exact match and F1 of what
    the LLM answers from it.

    Parameters
    ----------
    documents : the texts. What is kept in `out` is found again by their ids, which must be the same the next time:
        `SimpleDirectoryReader` gives random ones without `filename_as_id=True`
    questions : with the documents that answer them, or without; None to make some: by `llm` if there is one, else
        sentences and headings that are left out of the texts
    out : a folder for the page, the finished runs and the replies of the LLM: a comparison that is run again goes on
        where it ended. None keeps nothing
    methods : their names; None for all that are installed
    embed_model : default that of `Settings`
    transformations : how documents are cut into chunks; default that of `Settings`
    top_k : passages of an answer, at least 1
    context_tokens : of the context for an answer, the same for all systems, at least 1
    read : whether the LLM answers questions without correct answers too, to be read side by side
    count : how many questions are made, at least 1
    seed : of the made questions
    before : called with the estimated work of each system before anything is built. An error that it raises ends the
        comparison
    timed : called before that with about how many seconds each method would take, from indexes of ten chunks that are
        built by rules and asked two questions; None to measure nothing
    head_model : the embedding model of MRAG; by default the heads of a local model, and of others the vectors in parts
    built : called with the name, the index and the retriever of each method once it has been asked

    Raises
    ------
    ConfigurationError
        If there is nothing to search or to ask, a parameter is invalid, or a method is not installed.
    """
    check_count("top_k", top_k, 1)
    check_count("context_tokens", context_tokens, 1)
    check_count("count", count, 1)
    documents = list(documents)
    chosen = installed(methods)
    model = Settings.embed_model if embed_model is None else resolve_embed_model(embed_model)
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    cache = None if folder is None or llm is None else ExtractionCache(folder / "cache.db")
    texts, asked, source = _asked(documents, questions, llm, cache, count, seed)
    nodes = with_stable_ids(run_transformations(texts, transformations or Settings.transformations))
    nodes = [node for node in nodes if embed_text(node).strip()]
    if not nodes or not asked:
        raise ConfigurationError("There is nothing to compare: no text to search, or no question to ask.")
    if len(nodes) < _ENOUGH * top_k:
        logger.warning(
            "There are only %d chunks, and an answer has %d: chance alone finds many, so recall says little.",
            len(nodes), min(top_k, len(nodes)),
        )  # fmt: skip
    # Words alone need no vectors.
    estimates = {name: Estimate(embedded_texts=0 if weight == 1 else len(nodes)) for name, weight in _BASELINES.items()}
    estimates.update({method.name: method.estimate(nodes, llm) for method in chosen})
    answering = Answering.of(asked, context_tokens, llm, cache, read)
    texts_asked = [question.text for question in asked]
    session = _Session(nodes, texts_asked, model, head_model, llm, cache, top_k, show_progress, answering, built)
    if timed is not None:
        timed(session.probe(chosen))
    if before is not None:
        before({**estimates, **answering.estimate(len(estimates))})
    kept = _Kept(folder, session.fingerprint)
    runs = [kept.get(name) or kept.put(session.plain(name, estimates[name])) for name in _BASELINES]
    runs += [kept.get(m.name) or kept.put(session.run(m, estimates[m.name])) for m in chosen]
    titles = {document.id_: _title(document) for document in documents}
    file_of = pages_of_files(documents)
    titles.update({file: Path(file).name for file in file_of.values()})
    comparison = Comparison(asked, source, runs, top_k, titles, file_of, context_tokens)
    if folder is not None:
        comparison.write(folder / "index.html")
    return comparison


def _asked(
    documents: Sequence[Document],
    questions: Sequence[Question | str] | None,
    llm: LLM | None,
    cache: ExtractionCache | None,
    count: int,
    seed: int,
) -> tuple[list[Document], list[Question], str]:
    """The texts to search, the questions, and where these come from."""
    if questions is not None:
        listed = [questions] if isinstance(questions, str) else questions
        given = [Question(question) if isinstance(question, str) else question for question in listed]
        return list(documents), with_documents(given, documents), "yours"
    if llm is not None:
        made = written(documents, llm, cache, count, seed)
        return list(documents), made, "written by the LLM, each about one passage"
    texts, made = held_out(documents, count, seed)
    source = (
        "sentences and headings left out of the texts, to be answered by the documents they are from. They share words "
        "with these, which favours BM25. Questions of your own tell you more."
    )
    return texts, made, source


def _title(document: Document) -> str:
    name = str(document.metadata.get("title") or document.metadata.get("file_name") or document.id_)
    page = document.metadata.get("page_label")
    return f"{name}, p. {page}" if page else name


@dataclass(frozen=True)
class _Kept:
    """Finished runs in a folder; None keeps nothing."""

    folder: Path | None
    fingerprint: str

    def get(self, name: str) -> Run | None:
        return None if self.folder is None else load_run(_run_file(self.folder, name), self.fingerprint)

    def put(self, run: Run) -> Run:
        if self.folder is not None and not run.error and not _is_to_be_asked_again(run):
            save_run(run, _run_file(self.folder, run.name), self.fingerprint)
        return run


def _is_to_be_asked_again(run: Run) -> bool:
    """Whether a question has no answer for another reason than the model's reply."""
    failures = () if run.answers is None else run.answers.failures.values()
    return not all(reason.startswith(ParseError.__name__) for reason in failures)


def _run_file(folder: Path, name: str) -> Path:
    return folder / "runs" / f"{name.lower().replace(' ', '-')}.json"


@dataclass(frozen=True)
class _Session:
    """The texts, the questions and the models, the same for all systems. Chunks are embedded once."""

    nodes: Sequence[BaseNode]
    questions: Sequence[str]
    plain_model: BaseEmbedding
    head_model: BaseEmbedding | None
    llm: LLM | None
    cache: ExtractionCache | None
    top_k: int
    show_progress: bool
    answering: Answering
    built: Callable[[str, Any, BaseRetriever], None] | None

    @property
    def fingerprint(self) -> str:
        """What a finished run depends on."""
        llm = "" if self.llm is None else model_identity(self.llm)
        texts = [[node.ref_doc_id, embed_text(node)] for node in self.nodes]
        heads = "" if self.head_model is None else self.head_model.model_name
        versions = [version("llama-index-ragkit"), *(version(method.package) for method in installed())]
        parts = [versions, texts, list(self.questions), self.plain_model.model_name, heads, llm, self.top_k]
        parts += [self.answering.tokens, [[query.id, *query.answers] for query in self.answering.queries]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def plain(self, baseline: str, work: Estimate) -> Run:
        """A baseline on all questions."""
        self._embed(self.nodes, self.show_progress)
        began = time.perf_counter()
        search = HybridRetriever(
            self.nodes, self._model, similarity_top_k=self.top_k, lexical_weight=_BASELINES[baseline]
        )
        run = self._asked(Run(baseline, True, estimate=work), search, began)
        search.similarity_top_k = self._depth
        return self._answered(run, search)

    def run(self, method: Method, work: Estimate) -> Run:
        """A method on all questions."""
        self._embed(self.nodes, self.show_progress)
        began = time.perf_counter()
        run = Run(method.name, False, estimate=work)
        try:
            index = self._index(method, self.nodes, self.llm, self.cache, self.show_progress)
            retriever = index.as_retriever(similarity_top_k=self.top_k, **method.retriever)
            run = self._asked(run, retriever, began, index)
            if self.built is not None:
                self.built(method.name, index, retriever)
            # As the method answers by default, be it by segments or outlines.
            deep = index.as_retriever(similarity_top_k=self._depth, token_budget=self.answering.tokens)
            return self._answered(run, deep)
        except Exception as error:
            reason = redact(f"{type(error).__name__}: {error}", self.llm, self._model)
            logger.warning("%s is left out: %s", method.name, reason)
            return replace(run, error=reason[:300])

    def probe(self, methods: Sequence[Method]) -> dict[str, float]:
        """About how many seconds each method would take to build and to ask, by rules; one that fails is left out."""
        step = -(-len(self.nodes) // _PROBED)
        nodes = [node.model_copy() for node in self.nodes[::step]]
        self._embed(nodes, show_progress=False)
        found = {}
        for method in methods:
            if method.heads:
                self._heads.get_text_embedding("the model is loaded before the time is taken")
            began = time.perf_counter()
            try:
                index = self._index(method, nodes)
                retriever = index.as_retriever(similarity_top_k=self.top_k, **method.retriever)
                built = time.perf_counter()
                for question in self.questions[:_PROBED_QUESTIONS]:
                    retriever.retrieve(question)
            except Exception as error:
                logger.warning("%s was not probed: %s", method.name, redact(str(error), self.llm, self.plain_model))
                continue
            a_question = (time.perf_counter() - built) / len(self.questions[:_PROBED_QUESTIONS])
            scale = len(self.nodes) / len(nodes)
            found[method.name] = scale * (built - began) + a_question * len(self.questions)
        return found

    def _index(
        self,
        method: Method,
        nodes: Sequence[BaseNode],
        llm: LLM | None = None,
        cache: ExtractionCache | None = None,
        show_progress: bool = False,
    ) -> Any:
        model = self._model
        if method.heads and self._heads is not self.plain_model:
            nodes, model = [node.model_copy(update={"embedding": None}) for node in nodes], self._heads
        return method.build(nodes, model, llm, cache, show_progress)

    def _asked(self, run: Run, retriever: BaseRetriever, began: float, index: Any = None) -> Run:
        built = time.perf_counter()
        bar = tqdm(self.questions, desc=f"Asking {run.name}", disable=not self.show_progress)
        found = [retriever.retrieve(question) for question in bar]
        each = 1000 * (time.perf_counter() - built) / len(self.questions)
        hits = [[self._hit(result, index) for result in results] for results in found]
        logger.info("%s: built in %.1f s, %.0f ms a question.", run.name, built - began, each)
        return replace(run, hits=hits, seconds=built - began, milliseconds=each)

    def _answered(self, run: Run, retriever: BaseRetriever) -> Run:
        if not self.answering.queries:
            return run
        began = time.perf_counter()
        answers = self.answering.answers(run.name, retriever, self.show_progress)
        each = (time.perf_counter() - began) / len(self.answering.queries)
        if answers.failures:
            first = redact(next(iter(answers.failures.values())), self.llm, self._model)[:300]
            logger.warning(
                "%s: %d of %d questions have no answer; no system is compared by its answers to these. The "
                "first: %s", run.name, len(answers.failures), len(self.answering.queries), first,
            )  # fmt: skip
        return replace(run, answers=answers, answer_seconds=each)

    @cached_property
    def _node_of(self) -> dict[str, BaseNode]:
        return {node.node_id: node for node in self.nodes}

    @property
    def _depth(self) -> int:
        """So many passages that even short ones fill a context."""
        return min(len(self.nodes), max(self.top_k, self.answering.tokens // _SHORT))

    @cached_property
    def _model(self) -> BaseEmbedding:
        return knowing_questions(self.plain_model, self.questions, self.show_progress)

    @cached_property
    def _heads(self) -> BaseEmbedding:
        return heads_of(self.plain_model) if self.head_model is None else self.head_model

    def _embed(self, nodes: Sequence[BaseNode], show_progress: bool) -> None:
        """Give chunks their vectors, which every system then uses."""
        bare = [node for node in nodes if node.embedding is None]
        texts = [embed_text(node) for node in bare]
        vectors = run_steps(embed_texts(self._model, texts, show_progress, "chunks"))
        for node, vector in zip(bare, vectors, strict=True):
            node.embedding = vector.tolist()

    def _hit(self, result: NodeWithScore, index: Any) -> Hit:
        node = result.node
        documents = tuple(dict.fromkeys(self._documents(node, index)))
        return Hit(node.node_id, documents, plain_text(node)[:_KEPT], float(result.score or 0.0))

    def _documents(self, node: BaseNode, index: Any) -> Iterator[str]:
        """The document of a chunk, or those of the chunks that a derived node was made from."""
        if node.node_id in self._node_of:
            yield self._node_of[node.node_id].ref_doc_id or node.node_id
            return
        below = node.relationships.get(NodeRelationship.CHILD, [])
        children = [below] if isinstance(below, RelatedNodeInfo) else below
        ids = [child.node_id for child in children]
        if hasattr(index, "leaves_of"):
            ids = [leaf for name in ids for leaf in index.leaves_of(name)]
        for name in ids:
            if name in self._node_of:
                yield self._node_of[name].ref_doc_id or name
