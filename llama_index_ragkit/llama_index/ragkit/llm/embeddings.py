"""Embedding calls as steps, and the check that a model matches the one that an index was built with."""

import base64
import logging
import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import QueryType
from numpy.typing import NDArray
from tqdm.auto import tqdm

from llama_index.ragkit.errors import EmbeddingError, EmbeddingModelMismatchError
from llama_index.ragkit.steps import Steps, call, offload
from llama_index.ragkit.text.sentences import sentence_spans
from llama_index.ragkit.text.tokens import count_tokens

__all__ = [
    "PROBE_TEXT",
    "as_matrix",
    "check_description",
    "check_length",
    "check_model",
    "cut_windows",
    "describe_model",
    "embed_query",
    "embed_texts",
    "given_vector",
    "local_model",
    "most_tokens",
    "pooled",
    "query_matrix",
    "same_vectors",
    "strings_to_embed",
]

logger = logging.getLogger(__name__)

PROBE_TEXT = "The quick brown fox jumps over the lazy dog."
_BLOCK = 8192  # texts per call: models return lists of Python numbers, which take eight times the memory of an array
_SHOWN_BATCHES = 8
_PROBE_TOLERANCE = 1e-3  # 1 - cosine; float16 and other batch sizes stay far below it
_FILLED = 0.8  # of the limit, by another tokenizer than the model's


def local_model(name: str) -> str:
    """What `resolve_embed_model` takes for a model of this machine: "local:" and a folder or a model of the hub.

    >>> local_model("BAAI/bge-small-en"), local_model("local:models/bge"), local_model("default")
    ('local:BAAI/bge-small-en', 'local:models/bge', 'default')
    """
    return name if name.split(":")[0] in ("default", "local", "clip") else f"local:{name}"


def embed_texts(
    model: BaseEmbedding, texts: Sequence[str], show_progress: bool = False, name: str = "texts", *, warns: bool = True
) -> Steps[NDArray[np.float32]]:
    """Vectors of texts, shape (len(texts), dimension), float32.

    A text that is longer than the model reads, see :func:`most_tokens`, is cut into windows (:func:`cut_windows`), and
    has the mean of their vectors (:func:`pooled`); a warning tells how many such texts there are. Otherwise the vector
    would say nothing about what comes after the beginning.

    Parameters
    ----------
    show_progress : whether to show a progress bar
    name : what the texts are, for the bar: "phrases", "questions"
    warns : whether to warn of texts that are longer than the model reads

    Raises
    ------
    EmbeddingError
        If the model returns another number of vectors, vectors of different lengths, or NaN or infinity.
    """
    limit = most_tokens(model)
    if limit is None:
        return (yield from _embedded(model, texts, show_progress, name))
    windows = yield from offload(lambda: [cut_windows(text, limit) for text in texts])
    counts = [len(each) for each in windows]
    if max(counts, default=1) == 1:
        return (yield from _embedded(model, texts, show_progress, name))
    if warns:
        _warn(model, texts, name, limit, counts)
    vectors = yield from _embedded(model, list(chain.from_iterable(windows)), show_progress, name)
    return (yield from offload(pooled, vectors, counts))


def _warn(model: BaseEmbedding, texts: Sequence[str], name: str, limit: int, counts: Sequence[int]) -> None:
    longer = [text for text, count in zip(texts, counts, strict=True) if count > 1]
    beyond = sum(len(text) * max(0.0, 1 - limit / count_tokens(text)) for text in longer)
    logger.warning(
        "%d of %d %s are longer than the %d tokens that %s reads, by about %.0f %% of all text. Each is embedded as "
        "the mean of its windows, %d in all. Search is better if the model reads whole chunks: make them smaller.",
        len(longer), len(texts), name, limit, model.model_name,
        100 * beyond / sum(map(len, texts)), sum(count for count in counts if count > 1),
    )  # fmt: skip


def _embedded(model: BaseEmbedding, texts: Sequence[str], show_progress: bool, name: str) -> Steps[NDArray[np.float32]]:
    """Vectors of texts as the model gives them."""
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    # A bar moves once a block, so the blocks of a visible one are smaller; they hold the same batches.
    size = min(_BLOCK, _SHOWN_BATCHES * model.embed_batch_size) if show_progress else _BLOCK
    blocks = []
    with tqdm(total=len(texts), desc=f"Embedding {name}", disable=not show_progress) as bar:
        for start in range(0, len(texts), size):
            block = list(texts[start : start + size])
            vectors = yield from call(model.get_text_embedding_batch, model.aget_text_embedding_batch, block)
            blocks.append(as_matrix(vectors, block))
            bar.update(len(block))
    lengths = sorted({block.shape[1] for block in blocks})
    if len(lengths) > 1:
        raise EmbeddingError(f"The embedding model returned vectors of lengths {lengths}; all must be equal.")
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def as_matrix(
    vectors: Sequence[Sequence[float] | NDArray[np.float32]], texts: Sequence[str], dimension: int | None = None
) -> NDArray[np.float32]:
    """Check vectors and stack them; the error quotes the `texts` of invalid ones."""
    if len(vectors) != len(texts):
        raise EmbeddingError(f"The embedding model returned {len(vectors)} vectors for {len(texts)} texts.")
    lengths = sorted({len(vector) for vector in vectors})
    if len(lengths) > 1 or lengths == [0]:
        raise EmbeddingError(f"The embedding model returned vectors of lengths {lengths}; all must be equal, above 0.")
    check_length(lengths[0], dimension)
    matrix = np.asarray(vectors, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad.size:
        shown = ", ".join(repr(texts[i][:60]) for i in bad[:3])
        raise EmbeddingError(f"The embedding model returned NaN or infinity for {bad.size} texts, among them {shown}.")
    return matrix


def check_length(length: int, dimension: int | None) -> None:
    """Raise an `EmbeddingError` if vectors are not as long as those of an index, of which None is known."""
    if dimension is not None and length != dimension:
        raise EmbeddingError(
            f"Vectors of length {length} do not match the index, whose vectors have length {dimension}."
        )


def embed_query(model: BaseEmbedding, query: QueryType, dimension: int | None) -> Steps[NDArray[np.float32]]:
    """Vector of a question, shape (dimension,), float32.

    Of a bundle it is `embedding`, or else the mean of the vectors of `embedding_strs`, as in core's retrievers. An
    `embedding` of another length, or with NaN or infinity, is passed over: a retriever with another model may have left
    it there.

    Raises
    ------
    EmbeddingModelMismatchError
        If its length is not that of the index's vectors (`dimension`, None when the index has none yet).
    EmbeddingError
        If it contains NaN or infinity.
    """
    given = given_vector(query, dimension)
    if given is not None:
        return given
    texts = strings_to_embed(query)
    if len(texts) == 1:
        vector = yield from call(model.get_query_embedding, model.aget_query_embedding, texts[0])
    else:
        vector = yield from call(model.get_agg_embedding_from_queries, model.aget_agg_embedding_from_queries, texts)
    row: NDArray[np.float32] = query_matrix(model, [vector], texts[:1], dimension)[0]
    return row


def given_vector(query: QueryType, dimension: int | None) -> NDArray[np.float32] | None:
    """The vector that came with a question, if it may be one of the index's model."""
    if isinstance(query, str) or query.embedding is None or len(query.embedding) != dimension:
        return None
    row = np.asarray(query.embedding, dtype=np.float32)
    return row if np.isfinite(row).all() else None


def strings_to_embed(query: QueryType) -> list[str]:
    """What is embedded for a question: its `embedding_strs` that are not blank, or else itself."""
    if isinstance(query, str):
        return [query]
    return [text for text in query.embedding_strs if text.strip()] or [query.query_str]


def query_matrix(
    model: BaseEmbedding,
    vectors: Sequence[Sequence[float] | NDArray[np.float32]],
    queries: Sequence[str],
    dimension: int | None,
) -> NDArray[np.float32]:
    """Check the query vectors of a model, as :func:`embed_query`, and stack them, shape (len(queries), dimension)."""
    matrix = as_matrix(vectors, queries)
    if dimension is not None and matrix.shape[1] != dimension:
        raise EmbeddingModelMismatchError(
            f"The embedding model {model.model_name!r} returns vectors of length {matrix.shape[1]}, "
            f"but the index was built with vectors of length {dimension}. Pass embed_model= of the build."
        )
    return matrix


def describe_model(model: BaseEmbedding) -> Steps[dict[str, Any]]:
    """The stored description of an embedding model: name, dimension, and the vector of a fixed text."""
    probe = yield from embed_texts(model, [PROBE_TEXT])
    # As text: core turns a struct into JSON number by number, twice in every write.
    text = base64.b64encode(probe[0].astype("<f4").tobytes()).decode("ascii")
    return {"name": model.model_name, "dimension": probe.shape[1], "probe": text}


def check_description(known: dict[str, Any]) -> None:
    """Raise an `EmbeddingError` if a stored description of :func:`describe_model`, which may be empty, is malformed."""
    if not known:
        return
    try:
        name, dimension, probe = known["name"], known["dimension"], base64.b64decode(known["probe"], validate=True)
    except (LookupError, TypeError, ValueError):
        name, dimension, probe = None, 0, b""
    if not isinstance(name, str) or type(dimension) is not int or dimension < 1 or len(probe) != 4 * dimension:
        raise EmbeddingError("The stored description of the embedding model has no name, dimension or probe vector.")


def check_model(model: BaseEmbedding, known: dict[str, Any]) -> Steps[None]:
    """Raise an `EmbeddingModelMismatchError` for a model that differs from the one of :func:`describe_model`.

    The same name is accepted without a call. Another name is accepted if the model embeds the probe text to the same
    vector: one model can have several names (a hub name, a folder, a server's alias).
    """
    if not known or model.model_name == known["name"]:
        return
    found = yield from describe_model(model)
    if same_vectors(found, known):
        return
    raise EmbeddingModelMismatchError(
        f"The index was built with the embedding model {known['name']!r} ({known['dimension']} dimensions); "
        f"{model.model_name!r} ({found['dimension']} dimensions) returns different vectors. Pass embed_model= of the "
        "build."
    )


def same_vectors(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two models, of which :func:`describe_model` gave these descriptions, embed the probe text alike."""
    probes = [np.frombuffer(base64.b64decode(each["probe"]), dtype="<f4").astype(np.float64) for each in (one, other)]
    if len(probes[0]) != len(probes[1]):
        return False
    norms = float(np.linalg.norm(probes[0]) * np.linalg.norm(probes[1]))
    return norms == 0 or 1 - float(probes[0] @ probes[1]) / norms <= _PROBE_TOLERANCE


def most_tokens(model: BaseEmbedding) -> int | None:
    """How many tokens of a text a model reads: its `max_length`, or that of the model that it wraps as `embed_model`.

    `HuggingFaceEmbedding` has that attribute, and a class of your own may have it too. None if it is not known; the
    model is then assumed to read all of a text.
    """
    own = getattr(model, "max_length", None)
    if isinstance(own, int) and own > 0:
        return own
    wrapped = getattr(model, "embed_model", None)
    return most_tokens(wrapped) if isinstance(wrapped, BaseEmbedding) else None


def cut_windows(text: str, limit: int | None) -> list[str]:
    """The windows of a text in order, cut at the ends of sentences; the text itself if a model reads all of it.

    `limit` is how many tokens the model reads, at least 1; None for all. LlamaIndex's tokenizer counts them. It is not
    the model's own, so windows are smaller than the limit.

    >>> cut_windows("The lamp is lit. The keeper sleeps. A ship comes in.", 10)
    ['The lamp is lit.', 'The keeper sleeps.', 'A ship comes in.']
    >>> cut_windows("The lamp is lit.", None)
    ['The lamp is lit.']
    """
    short = limit is None or len(text.encode(errors="surrogatepass")) <= limit  # a token has a byte at least
    if limit is None or short or (tokens := count_tokens(text)) <= limit:
        return [text]
    most = max(1, int(_FILLED * limit))
    aim = tokens / math.ceil(tokens / most)  # windows of like length, since each counts alike
    windows: list[str] = []
    start, filled = 0, 0
    for begin, size in _pieces(text, most):
        if filled and (filled + size > most or filled + size / 2 > aim):
            windows.append(text[start:begin].strip())
            start, filled = begin, 0
        filled += size
    return [window for window in [*windows, text[start:].strip()] if window]


def _pieces(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Where each sentence begins, and its tokens; one of more than `most` is halved between two words."""
    waiting = list(reversed(sentence_spans(text)))
    while waiting:
        begin, end = waiting.pop()
        size = count_tokens(text[begin:end])
        if size <= most or end - begin < 2:
            yield begin, size
            continue
        middle = (begin + end) // 2
        cut = max(text.rfind(" ", begin + 1, middle), text.rfind("\n", begin + 1, middle))
        cut = cut if cut > begin else middle
        waiting += [(cut, end), (begin, cut)]


def pooled(vectors: NDArray[np.float32], counts: Sequence[int]) -> NDArray[np.float32]:
    """The vectors of texts, shape (len(counts), d), from those of their windows, shape (sum(counts), d).

    That of several windows is the mean of their directions, of the mean of their lengths; that of one stays as it is.
    """
    starts = np.cumsum([0, *counts[:-1]])
    rows: NDArray[np.float32] = vectors[starts].copy()
    for row, (start, count) in enumerate(zip(starts.tolist(), counts, strict=True)):
        if count > 1:
            own = vectors[start : start + count].astype(np.float64)
            lengths = np.linalg.norm(own, axis=1, keepdims=True)
            mean = (own / np.maximum(lengths, 1e-30)).mean(axis=0)
            rows[row] = mean * (lengths.mean() / max(float(np.linalg.norm(mean)), 1e-30))
    return rows
