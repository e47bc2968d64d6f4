"""PG-RAG in the quality benchmark: `pgrag` with its defaults, `pgrag-off` without maps, the paper's search, ablations.

    python -m benchmarks.quality_pgrag --data DIR --out FILE

writes questions for a corpus that has none, made from the facts that `OutlineExtractor` reads in each document: one
fact a document, with one phrase taken out. `python -m benchmarks.quality pgrag --data DIR --queries FILE` asks them.
"""

import argparse
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from benchmarks.data import Corpus, _found, _lines
from benchmarks.systems import HybridZ, Ranking, System, node_depth
from llama_index.pgrag import GivenMindMaps, OutlineExtractor, PGRAGIndex, PGRAGRetriever
from llama_index.pgrag.maps.outline import key_phrases, outline
from llama_index.ragkit.text.passages import read_passage

__all__ = ["add_arguments", "build", "describe", "make_index", "map_of_triples", "questions_of_facts"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the method."""
    parser.add_argument("--outline", action="store_true", help="read outlines even where triples were recorded")
    parser.add_argument("--paper", action="store_true", help="a row of the published search, which embeds all cells")
    parser.add_argument("--ablations", action="store_true", help="also each part of the search left out")


def make_index(corpus: Corpus, embed_model: BaseEmbedding, options: argparse.Namespace) -> PGRAGIndex:
    """The index with its defaults.

    Where the corpus has recorded triples, mind maps are made from them: the words of a real LLM.
    """
    recorded = {
        node.node_id: map_of_triples(corpus.records[corpus.passage_of[node.node_id]])
        for node in corpus.nodes
        if not options.outline and corpus.records[corpus.passage_of[node.node_id]].get("triples")
    }
    titles = {i: corpus.records[corpus.passage_of[i]]["title"] for i in recorded}
    extractor = GivenMindMaps(maps=recorded, topics=titles) if recorded else OutlineExtractor()
    return PGRAGIndex(nodes=corpus.fresh_nodes(), embed_model=embed_model, extractor=extractor)


def build(
    corpus: Corpus, hybrid: HybridZ, embed_model: BaseEmbedding, options: argparse.Namespace
) -> dict[str, System]:
    """`pgrag` gives source passages, `pgrag-off` the same with no weight on maps: nearness alone.

    With `--paper`, `pgrag-paper` is the published search on the same index, with the question as key point; with
    `--ablations`, `paths` gives the sources of fact paths as they are ranked.
    """
    index = make_index(corpus, embed_model, options)
    print(json.dumps(describe(index, corpus)), file=sys.stderr, flush=True)

    def system(**settings: Any) -> System:
        depth = {"similarity_top_k": node_depth(corpus), "return_source": True}
        retriever = index.as_retriever(**{**settings, **depth})

        def rank(question: str) -> Ranking:
            return corpus.passages([found.node.node_id for found in retriever.retrieve(question)])[:100]

        return rank

    def paths(question: str) -> Ranking:
        found = index.as_retriever(similarity_top_k=node_depth(corpus)).retrieve(question)
        return corpus.passages([child.node_id for result in found for child in result.node.child_nodes or []])[:100]

    systems = {
        "pgrag": system(),
        "pgrag-off": system(fact_weight=0, bridge_weight=0),
    }
    if options.paper:
        systems["pgrag-paper"] = system(**{**PGRAGRetriever.paper(), "key_points": "question"})
    if options.ablations:
        systems |= {
            "paths": paths,
            "no-names": system(bridge_weight=0),
            "no-facts": system(fact_weight=0),
            "no-words": system(lexical_weight=0),
        }
    return systems


def map_of_triples(record: Mapping[str, Any]) -> dict[str, Any]:
    """A mind map of recorded triples: relations are routes under the title, objects are facts.

    A subject other than the title is a route above its relations. Malformed triples are left out.
    """
    title = record["title"]
    tree: dict[str, Any] = {}
    for triple in record["triples"]:
        if not (
            isinstance(triple, list) and len(triple) == 3 and all(isinstance(x, str) and x.strip() for x in triple)
        ):
            continue
        subject, relation, fact = (text.strip() for text in triple)
        branch = tree if subject.casefold() == title.casefold() else tree.setdefault(subject, {})
        if isinstance(branch, dict):
            branch.setdefault(relation, []).append(fact) if isinstance(branch.get(relation, []), list) else None
    return {title: tree}


def describe(index: PGRAGIndex, corpus: Corpus) -> dict[str, Any]:
    """The figures of a pseudo-graph in the paper's tables 2 and 3.

    The compression ratio is that of the characters of the texts to those of all cells of the maps, each cell once.
    """
    graph = index.graph
    super_topics = graph.super_topics.nodes()
    cells = sum(
        len(found.topic)
        + sum(len(path[-1]) for path in found.routes.values())
        + sum(len(text) for text in {fact.path: fact.path[-1] for fact in found.facts}.values())
        for found in graph.maps.values()
    )
    joined = sum(map(len, super_topics))
    return {
        "mind maps": len(graph.maps),
        "fact paths": len(graph.map_of),
        "routes": sum(len(found.routes) for found in graph.maps.values()),
        "clusters of topics": len(super_topics),
        "clusters of topics, those of one too": len(super_topics) + len(graph.maps) - joined,
        "maps a cluster of two or more": round(joined / len(super_topics), 2) if super_topics else None,
        "clusters of facts": len(graph.super_facts.nodes()),
        "compression ratio": round(sum(len(node.text) for node in corpus.nodes) / max(1, cells), 3),
    }


def questions_of_facts(texts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """One question a document: a fact of its outline without its weightiest phrase, which is the answer."""
    for name, text in texts.items():
        facts = [path[-1] for path in outline(read_passage(text))[1] if 15 <= len(path[-1]) <= 200]
        facts = [fact for fact in facts if _phrase(fact, text)]
        if facts:
            fact = facts[zlib.crc32(name.encode()) % len(facts)]
            phrase = _phrase(fact, text)
            yield {"id": f"q-{name}", "question": fact.replace(phrase, "", 1), "answer": phrase, "gold": [name]}


def _phrase(fact: str, text: str) -> str:
    return next((phrase for phrase in key_phrases(text, 30) if phrase in fact and len(phrase) < len(fact) / 2), "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write questions made from facts."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality_pgrag", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="data folder with corpus.jsonl[.gz]")
    parser.add_argument("--out", type=Path, required=True, help="file of questions to write")
    options = parser.parse_args(arguments)
    texts = {str(row.get("id", row.get("doc_id"))): row["text"] for row in _lines(_found(options.data, "corpus"))}
    with options.out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in questions_of_facts(texts))


if __name__ == "__main__":
    main()
