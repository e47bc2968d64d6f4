"""Explanations of retrieved nodes: text, nearest question, and the edge by which a node was reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from llama_index.core.schema import NodeWithScore

from llama_index.gemrag.search.memory_scores import MemoryScores
from llama_index.ragkit import Explanation
from llama_index.ragkit.index.results import result_fields
from llama_index.ragkit.text.lexical_index import lexical_terms, question_terms
from llama_index.ragkit.text.stems import stems
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["GEMRAGExplanation", "explain"]


@dataclass(frozen=True, kw_only=True)
class GEMRAGExplanation(Explanation):
    """Why a node was retrieved.

    Attributes
    ----------
    nearness : dense and lexical score in standard deviations, less the margin of a theme
    lexical : BM25 score of the prompt and the node with its questions; 0 for a theme, or with `lexical_weight=0`
    lexical_weight : weight of the BM25 score in nearness for this prompt, in [0, 1]
    is_theme : whether it is a theme, a summary of chunks
    text_similarity : cosine of the prompt and the node's text
    question, question_similarity : the question of the node that is nearest to the prompt, and its cosine; None and 0
        for a node without questions. If its questions are not embedded, the one that shares most words with the prompt,
        and 0
    hub : mean cosine of the node's text with all questions of the index, which lowers its score
    via : in a best-first search, the node whose edge led here; None if reached from the prompt
    themes : ids of the themes that contain the chunk and pass the filter
    sources : ids of the chunks that a theme was made from; a chunk is its own source
    by : the class that wrote the theme, or else its questions or those of the chunk, in place of an LLM that failed
    """

    nearness: float
    lexical: float
    lexical_weight: float
    is_theme: bool
    text_similarity: float
    question: str | None
    question_similarity: float
    hub: float
    via: str | None = None
    themes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def explain(
    scores: MemoryScores,
    allowed: Mask | None,
    via: Mapping[str, str | None],
    nodes: Sequence[NodeWithScore],
    plain: Mapping[str, Sequence[str]],
    by: Mapping[str, str],
    prompt: str,
    fallback: str,
) -> list[GEMRAGExplanation]:
    """One explanation for each result, in the same order.

    `via` has the nodes whose edges led to results, `plain` the questions of nodes where they are not embedded, and `by`
    the classes that extracted the questions of chunks because another failed.
    """
    state = scores.state
    mask = state.theme_mask(allowed)
    names = state.theme_layer.texts.ids
    shown = set(names) if mask is None else {names[row] for row in np.flatnonzero(mask)}
    explained = []
    for result in nodes:
        node_id = result.node.node_id
        is_theme = node_id in state.written
        theme = state.written.get(node_id, {})
        layer = state.theme_layer if is_theme else state.chunk_layer
        match = scores.match(node_id)
        explained.append(
            GEMRAGExplanation(
                **result_fields(result),
                nearness=scores.score(node_id),
                lexical=scores.lexical_of(node_id),
                lexical_weight=scores.lexical_weight,
                is_theme=is_theme,
                text_similarity=match.text,
                question=_by_words(plain.get(node_id, ()), prompt)
                if match.question_id is None
                else layer.question_text(match.question_id),
                question_similarity=match.question,
                hub=match.hub,
                via=via[node_id],
                themes=[name for name in state.themes_of.get(node_id, ()) if name in shown],
                sources=sorted(state.themes[node_id].members) if is_theme else [node_id],
                by=str(theme.get("by") or theme.get("asked_by") or by.get(node_id, "")),
                fallback=fallback,
            )
        )
    return explained


def _by_words(questions: Sequence[str], prompt: str) -> str | None:
    """The first question with most words of the prompt; None if no question has any."""
    asked, language = question_terms(prompt)
    wanted = set(stems(list(asked), language))
    shared = [len(wanted.intersection(stems(list(lexical_terms(question)), language))) for question in questions]
    return questions[shared.index(max(shared))] if any(shared) else None
