"""GEM-RAG in the quality benchmark: `gemrag` with its defaults, `gemrag-off` without questions and themes.

`python -m benchmarks.quality_gemrag --data DIR` prints the curves over the blend of question and text, and where
passages have categories, how well themes follow them.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from benchmarks.data import Corpus, Task, load
from benchmarks.embedding import minilm
from benchmarks.systems import HybridZ, Ranking, System, node_depth, source_passages
from llama_index.gemrag import GEMRAGIndex, GEMRAGRetriever, KeyphraseQuestionExtractor, PublishedThemes
from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import unit_rows
from llama_index.gemrag.graph.similarity import Rule
from llama_index.gemrag.group_reader import GroupReader
from llama_index.gemrag.memory_rows import MemoryRows
from llama_index.gemrag.themes.eigenthemes import find_themes, oriented, top_components
from llama_index.ragkit import ExtractiveSummarizer, NodeExtractor
from llama_index.ragkit.steps import Steps, run_steps

__all__ = ["add_arguments", "build", "make_index"]


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
    parser.add_argument("--paper", action="store_true", help="a row of the paper's method too")


def make_index(
    corpus: Corpus,
    embed_model: BaseEmbedding,
    options: argparse.Namespace,
    extractor: NodeExtractor | None = None,
    **kwargs: Any,
) -> GEMRAGIndex:
    """The index with its defaults: the questions that were recorded with the corpus, else key phrases."""
    return GEMRAGIndex(
        nodes=corpus.fresh_nodes(),
        embed_model=embed_model,
        extractor=extractor or recorded_questions(corpus) or KeyphraseQuestionExtractor(),
        summarizer=ExtractiveSummarizer(),
        **kwargs,
    )


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """The rows of the table, none of which asks an LLM.

    `gemrag` has recorded or key-phrase questions and extractive themes, `gemrag-off` neither; `gemrag-half` is the
    paper's ranking by half question, half text; `gemrag-phrases` has key phrases where there are recorded questions.
    """

    def system(index: GEMRAGIndex, **kwargs: Any) -> System:
        retriever = index.as_retriever(**{"mode": options.mode, **kwargs, "similarity_top_k": node_depth(corpus)})

        def rank(question: str) -> Ranking:
            found = retriever.retrieve(question)
            return source_passages(corpus, hybrid, question, found, lambda name: index.themes[name])

        return rank

    on = make_index(corpus, embed_model, options)
    off = make_index(corpus, embed_model, options, KeyphraseQuestionExtractor(num_questions=0), num_themes=0)
    systems = {"gemrag": system(on), "gemrag-off": system(off), "gemrag-half": system(on, blend=0.5)}
    if recorded_questions(corpus) is not None:
        systems["gemrag-phrases"] = system(make_index(corpus, embed_model, options, KeyphraseQuestionExtractor()))
    if options.paper:
        published = make_index(corpus, embed_model, options, **GEMRAGIndex.paper())
        systems["gemrag-paper"] = system(published, **GEMRAGRetriever.paper())
    return systems


# -- python -m benchmarks.quality_gemrag ------------------------------------------------------------


def curves(task: Task, embed_model: BaseEmbedding, extractor: NodeExtractor) -> dict[str, list[float]]:
    """hit@1, hit@4 and MRR of the nodes under many rules: the default, and both scores over their weights.

    Only for corpora whose nodes are passages.
    """
    index = GEMRAGIndex(
        nodes=task.corpus.fresh_nodes(),
        embed_model=embed_model,
        extractor=extractor,
        summarizer=ExtractiveSummarizer(),
        num_themes=0,
    )
    layer = index.state.chunk_layer
    prompts = [np.asarray(embed_model.get_query_embedding(q.question), np.float32) for q in task.queries]
    gold = [layer.texts.rows_of(query.gold) for query in task.queries]

    def scored(rule: Rule) -> list[float]:
        ranks = []
        for prompt, rows in zip(prompts, gold, strict=True):
            cosines = layer.cosines(prompt, rule)
            scores = rule.scores(cosines, cosines)
            ranks.append(1 + int((scores > scores[rows].max()).sum()))
        found = np.array(ranks)
        return [float((found <= 1).mean()), float((found <= 4).mean()), float((1 / found).mean())]

    rows = {"text alone (dense)": scored(Rule(0, 0)), "default": scored(Rule())}
    for blend in (0.1, 0.2, 0.3, 0.5, 0.7, 1.0):
        rows[f"blended, question {blend:g}"] = scored(Rule(blend=blend))
    for weight in (0.0, 0.3, 0.6, 1.0):
        rows[f"fused, w = {weight:g}, c = 0.2"] = scored(Rule(question_weight=weight))
    for penalty in (0.0, 0.1, 0.3, 0.4):
        rows[f"fused, w = 0.6, c = {penalty:g}"] = scored(Rule(hub_penalty=penalty))
    return rows


def print_curves(tasks: list[Task], embed_model: BaseEmbedding) -> None:
    """A table for each kind of question, the sides of recorded questions beside one another."""
    kinds: dict[str, Callable[[Corpus], NodeExtractor | None]] = {
        "recorded questions of an LLM, one a node": recorded_questions,
        "key phrases, five a node": lambda corpus: KeyphraseQuestionExtractor(embed_questions=True),
    }
    for kind, extractor in kinds.items():
        extractors = [extractor(task.corpus) for task in tasks]
        found = [curves(t, embed_model, e) for t, e in zip(tasks, extractors, strict=True) if e is not None]
        if not found:
            continue
        print(f"\n{kind}\n\n| score |" + " hit@1 | hit@4 | MRR |" * len(found))
        print("|---|" + "---|---|---|" * len(found))
        for name in found[0]:
            print(f"| {name} | " + " | ".join(f"{x:.3f}" for side in found for x in side[name]) + " |")


def print_themes(corpus: Corpus, embed_model: BaseEmbedding, questions: int) -> None:
    """How well the ten strongest members of themes, clusters and components follow the categories of passages."""
    index = GEMRAGIndex(
        nodes=corpus.fresh_nodes(),
        embed_model=embed_model,
        extractor=KeyphraseQuestionExtractor(num_questions=questions, embed_questions=True),
        summarizer=ExtractiveSummarizer(),
        num_themes=0,
    )
    layer = index.state.chunk_layer
    names = sorted(set(corpus.category_of.values()))
    labels = np.array([names.index(corpus.category_of[corpus.passage_of[i]]) for i in layer.texts.ids])
    graph = run_steps(GroupReader(index.storage, MemoryRows(index.storage), index.config).graph(layer.texts.ids))
    rows: dict[str, list[NDArray[np.intp]]] = {}
    for config in (
        MemoryConfig(num_themes=len(names)),
        MemoryConfig(num_themes=len(names), published=PublishedThemes(rotate=False)),
        MemoryConfig(max_themes=64),
    ):
        how = "by the spectrum" if config.num_themes is None else "25 vectors"
        how += "" if config.published.rotate else ", not rotated"
        rows[f"gemrag, {how}"] = [members.rows for members in find_themes(graph, config)]
    rows |= _peers(unit_rows(layer.texts.matrix.astype(np.float64)), len(names))
    print(f"\n{len(labels)} passages, {len(names)} categories: the ten strongest members of each set")
    print("\n| sets | how many | categories found | mean purity | least |\n|---|---|---|---|---|")
    for name, sets in rows.items():
        counts = [np.bincount(labels[members], minlength=len(names)) for members in sets]
        purity = [count.max() / count.sum() for count in counts]
        found = len({int(count.argmax()) for count in counts})
        print(f"| {name} | {len(sets)} | {found} | {np.mean(purity):.3f} | {np.min(purity):.2f} |")


def _peers(texts: NDArray[np.float64], k: int) -> dict[str, list[NDArray[np.intp]]]:
    from sklearn.cluster import KMeans

    means = KMeans(k, n_init=4, random_state=0).fit(texts)
    near = means.transform(texts)
    clusters = [np.argsort(near[:, i])[:10] for i in range(k)]
    centred = texts - texts.mean(axis=0)
    components = oriented(centred @ np.linalg.svd(centred, full_matrices=False)[2][:k].T)
    return {"k-means": clusters, "PCA": [top_components(column, 10, 0.25).rows for column in components.T]}


def main() -> None:
    """Print the curves of a data folder, and where its passages have categories, how themes follow them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=["curves", "themes"], help="one of the two")
    parser.add_argument("--questions", type=int, default=5, help="key-phrase questions a passage, for themes")
    options = parser.parse_args()
    tasks = load(options.data)
    if options.only != "themes" and len(tasks[0].corpus.nodes) == len(tasks[0].corpus.records):
        print_curves(tasks, minilm())
    if options.only != "curves" and tasks[0].corpus.category_of:
        print_themes(tasks[0].corpus, minilm(), options.questions)


if __name__ == "__main__":
    main()
