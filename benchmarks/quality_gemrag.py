"""GEM-RAG in the quality benchmark: `gemrag` with its defaults, `gemrag-off` without questions and themes.

`python -m benchmarks.quality_gemrag --data DIR` prints the curves over the blend of question and text, and where
passages have categories, how well themes follow them.
"""

import argparse
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode
from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor

from benchmarks.data import Corpus
from benchmarks.systems import Dense, Ranking, System, node_depth, source_passages
from llama_index.ragkit import ExtractiveSummarizer, NodeExtractor
from llama_index.ragkit.driver import Steps

__all__ = ["add_arguments", "build"]


class RecordedQuestions(NodeExtractor):
    """The questions that a language model wrote for a passage, from the data."""

    needs_llm: ClassVar[bool] = False
    recorded: dict[str, list[str]]

    def extract_node(self, node: BaseNode, context: Any) -> Steps[dict[str, Any]]:
        """No call; a theme has no recorded questions."""
        return {"questions": self.recorded.get(node.node_id, [])}
        yield


def recorded_questions(corpus: Corpus) -> NodeExtractor | None:
    """An extractor of the corpus's own questions; None where it has none."""
    asked = {n.node_id: list(corpus.records[corpus.passage_of[n.node_id]].get("questions", ())) for n in corpus.nodes}
    return RecordedQuestions(recorded=asked) if any(asked.values()) else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--mode", choices=["argmax", "best_first"], default="argmax")
    parser.add_argument("--paper", action="store_true", help="the literal reading of the paper")


def build(corpus: Corpus, dense: Dense, embed_model: BaseEmbedding, options: argparse.Namespace) -> dict[str, System]:
    """The rows of the table, none of which asks an LLM.

    `gemrag` has key-phrase questions and extractive themes, `gemrag-off` neither; `gemrag-half` is the paper's
    ranking by half question, half text; `gemrag-recorded` has the questions that the data brings.
    """

    def index_of(extractor: NodeExtractor, **kwargs: Any) -> GEMRAGIndex:
        return GEMRAGIndex(
            nodes=corpus.fresh_nodes(),
            embed_model=embed_model,
            extractor=extractor,
            summarizer=ExtractiveSummarizer(),
            **kwargs,
        )

    def system(index: GEMRAGIndex, **kwargs: Any) -> System:
        retriever = index.as_retriever(similarity_top_k=node_depth(corpus), mode=options.mode, **kwargs)

        def rank(question: str) -> Ranking:
            found = retriever.retrieve(question)
            return source_passages(corpus, dense, question, found, lambda name: index.themes[name])

        return rank

    paper = {"paper": True} if options.paper else {}
    on = index_of(KeyphraseQuestionExtractor(), **paper)
    off = index_of(KeyphraseQuestionExtractor(num_questions=0), num_themes=0)
    systems = {"gemrag": system(on), "gemrag-off": system(off), "gemrag-half": system(on, blend=0.5)}
    recorded = recorded_questions(corpus)
    if recorded is not None:
        systems["gemrag-recorded"] = system(index_of(recorded))
    return systems
