"""Self-retrieval over the chunks of a write; see :mod:`~llama_index.ragkit.vectors.self_retrieval`."""

from collections.abc import Sequence

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.ragkit.llm.embeddings import embed_texts
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.vectors.self_retrieval import FEWEST_SENTENCES, TEXTS, Cloze, can_measure, cloze, word_advantage

__all__ = ["measure_advantage", "taken_out"]


def measure_advantage(
    nodes: Sequence[BaseNode],
    texts: Sequence[str],
    vectors: NDArray[np.float32],
    known: tuple[float, int],
    embed_model: BaseEmbedding,
    *,
    show_progress: bool = False,
) -> Steps[tuple[float, int]]:
    """The advantage of words over cosines, and the number of chunks that it was measured with.

    It is measured by the first write of 160 chunks or more, and again by one of twice as many, until they are 1,000.
    One sentence for eight chunks, so 125 at most, and the chunks without them are embedded.

    Parameters
    ----------
    nodes : the new chunks, in canonical order
    texts, vectors : by which they are searched
    known : what earlier writes have measured; zeros if none has
    """
    if not can_measure(len(nodes), known[1]):
        return known
    asked = yield from offload(taken_out, nodes, texts)
    name = "sentences taken out of chunks"
    of_asked = yield from embed_texts(embed_model, asked.texts, show_progress, name, warns=False)
    found = yield from offload(word_advantage, texts[:TEXTS], vectors[:TEXTS], asked, of_asked)
    return found, len(nodes)


def taken_out(nodes: Sequence[BaseNode], texts: Sequence[str]) -> Cloze:
    """The sentences taken out of new chunks, of many chunks out of the first, since their order is that of hashes; none
    where they are too few.
    """
    asked = cloze([plain_text(node) for node in nodes[:TEXTS]], texts[:TEXTS])
    return asked if len(asked.rows) >= FEWEST_SENTENCES else cloze((), ())
