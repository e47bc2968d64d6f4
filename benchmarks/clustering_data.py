"""Vectors to cluster, with the partition that a good clustering should find.

``planted``     a two-level mixture on the unit sphere, with the similarities of sentence embeddings
``documents``   MiniLM embeddings of a corpus under ``RAG_DATA``, and a label of each
``chunks``      the same of its chunks, of about 100 tokens, RAPTOR's leaf size
"""

import gzip
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.embedding import minilm

__all__ = ["chunks", "documents", "planted"]

WORDS_PER_CHUNK = 75


def planted(n: int, dim: int = 384, mean_size: float = 12.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Topics x sub-topics of unequal size; variances fall as 1/i. Returns unit rows and their sub-topics.

    Cosine is about .58 within a sub-topic, .38 within a topic and .13 elsewhere, as in sentence embeddings.
    """
    rng = np.random.default_rng(seed)
    spectrum = 1 / np.sqrt(np.arange(1, dim + 1))

    def noise(rows: int) -> np.ndarray:
        out = rng.standard_normal((rows, dim)) * spectrum
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    subtopics = max(1, round(n / mean_size))
    topics = max(1, round(np.sqrt(subtopics / 2)))
    topic_of = rng.integers(topics, size=subtopics)
    shares = rng.gamma(3.0, size=subtopics)
    labels = rng.choice(subtopics, size=n, p=shares / shares.sum())
    vectors = np.sqrt(0.25) * noise(topics)[topic_of][labels] + np.sqrt(0.20) * noise(subtopics)[labels]
    vectors += np.sqrt(0.42) * noise(n)
    vectors[:, -1] += np.sqrt(0.13)  # what all share
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), labels


def documents(corpus: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of the documents of a corpus, and the number of each one's label."""
    records = _records(corpus)
    texts = [f"{record['title']}\n{record['text']}" for record in records]
    return _embedded(texts), _numbered([record[label] for record in records])


def chunks(corpus: str, label: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of ``rows`` chunks, or of all if there are fewer, and the number of each one's label.

    They come label by label, in random order of the labels: the first n are whole labels, but for the last.
    """
    records = _records(corpus)
    names = np.random.default_rng(0).permutation(sorted({record[label] for record in records}))
    order = {name: i for i, name in enumerate(names)}
    records.sort(key=lambda record: order[record[label]])
    pairs = ((text, record[label]) for record in records for text in _pieces(record["text"]))
    texts, labels = zip(*islice(pairs, rows), strict=True)
    return _embedded(list(texts)), _numbered(list(labels))


def _pieces(text: str) -> Iterator[str]:
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


def _numbered(labels: list[str]) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


def _embedded(texts: list[str]) -> np.ndarray:
    return np.array(minilm().get_text_embedding_batch(texts), dtype=np.float32)
