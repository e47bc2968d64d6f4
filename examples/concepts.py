"""The picture at the top of each method's guide, drawn from an index over six passages.

    python -m examples.concepts [FOLDER]       FOLDER/METHOD/concept.svg for each method; by default docs

No LLM is used. What is drawn is what the pages of the indexes have: the tree, the themes, the graph, the communities,
the maps, the votes, the segments, and the path to the answer of the question at the top.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from benchmarks.embedding import minilm, minilm_folder
from examples.concept_svg import Cell, Column, Line, columns, dots
from llama_index.core import Document, Settings
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter

from llama_index.gemrag import GEMRAGIndex, KeyphraseQuestionExtractor
from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.mrag import MRAGIndex, MultiHeadEmbedding
from llama_index.pgrag import OutlineExtractor, PGRAGIndex
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.html import Graph, Node
from llama_index.raptor import GraphClustering, RaptorIndex
from llama_index.sprag import RuleContext, SpRAGIndex

ROOT = Path(__file__).resolve().parents[1]
PASSAGES = (
    "Tern Rock Lighthouse was kept by Ada Hale from 1871 until 1893.",
    "Ada Hale was born in Port Ellis, the daughter of a ropemaker.",
    "Port Ellis has the oldest ropewalk on the coast.",
    "Marl Head Lighthouse was built by Otto Lind.",
    "Otto Lind came from Velsin, and drew forty bridges.",
    "Whoever keeps a lighthouse writes down the weather.",
)
QUESTION = "Where was the keeper of Tern Rock born?"
ASPECTS = "Who kept Tern Rock Lighthouse, who built the lighthouse at Marl Head, and what is made in Port Ellis?"
OUTLINES = (
    "# Tern Rock Lighthouse\n\n## Keepers\n\nAda Hale kept it from 1871 until 1893.\n\n"
    "## Lamp\n\nIt burned whale oil.\n",
    "# Ada Hale\n\n## Childhood\n\nShe was born in Port Ellis.\n\n## Father\n\nHe was a ropemaker.\n",
    "# Marl Head Lighthouse\n\n## Builder\n\nOtto Lind drew it.\n\n## Lamp\n\nIt burned paraffin.\n",
)
REPORT = (
    "# Harbour report of 1931\n\nThe harbour was dredged in spring. The pilots came back to work in May. "
    "Dues rose to forty crowns. They had been thirty since 1902. "
    "Wages fell by a tenth. The quay was mended. The lamp used less oil than before."
)
LONGEST = 66


def passages() -> list[Document]:
    return [Document(text=text, id_=f"passage {i}") for i, text in enumerate(PASSAGES)]


def short(text: str) -> str:
    return shorten(text, LONGEST, placeholder=" …")


def view(index: Any, question: str, **search: Any) -> Graph:
    """The graph on the page of an index."""
    return index.visualize(query=question, **search).page.view


def of(graph: Graph, *groups: str) -> list[Node]:
    return [node for node in graph.nodes if node.group in groups]


def cells(nodes: Iterable[Node], hot: Callable[[Node], bool] = lambda node: node.highlighted) -> list[Cell]:
    """One for each node, in the order of the passages where the text is one of them."""
    place = {text: i for i, text in enumerate(PASSAGES)}
    ordered = sorted(nodes, key=lambda node: (place.get(node.text, len(place)), node.text))
    return [
        Cell(node.id, short(node.label if node.label and node.group != "chunk" else node.text), hot(node))
        for node in ordered
    ]


def lines(graph: Graph, parts: Sequence[Column]) -> list[Line]:
    """The edges between cells of neighbouring columns."""
    at = {cell.id: i for i, part in enumerate(parts) for cell in part.cells}
    found = []
    for edge in graph.edges:
        one, other = sorted((edge.source, edge.target), key=lambda name: at.get(name, -1))
        if one in at and other in at and at[other] - at[one] == 1:
            found.append(Line(one, other))
    return found


def raptor() -> str:
    index = RaptorIndex.from_documents(
        passages(),
        summarizer=ExtractiveSummarizer(),
        clustering=GraphClustering(target_size=2, min_size=2),
        max_root_children=2,
        summary_tokens=32,
    )
    graph = view(index, QUESTION, similarity_top_k=2, summary_margin=None)
    parts = [
        Column("Root", cells(of(graph, "summary 2"))),
        Column("Summaries of clusters", cells(of(graph, "summary 1"))),
        Column("Chunks", cells(of(graph, "chunk"))),
    ]
    return columns("RAPTOR: chunks, summaries of clusters, and a root above them", QUESTION, parts, lines(graph, parts))


def gemrag() -> str:
    index = GEMRAGIndex.from_documents(
        passages(),
        extractor=KeyphraseQuestionExtractor(num_questions=1),
        summarizer=ExtractiveSummarizer(),
        group_by=None,
    )
    graph = view(index, QUESTION, similarity_top_k=2)
    chunks = [replace(node, label="") for node in graph.nodes if node.level == 1]  # their groups are those of themes
    owned = {edge.target for edge in graph.edges if edge.source in {chunk.id for chunk in chunks}}
    themes = [
        Node(node.id, text=f"Theme: {node.text}", highlighted=node.highlighted)
        for node in graph.nodes
        if node.level == 2
    ]
    questions = [node for node in of(graph, "question") if node.id in owned]
    parts = [
        Column("Themes", cells(themes)),
        Column("Chunks", cells(chunks)),
        Column("Questions they answer", cells(questions)),
    ]
    return columns(
        "GEM-RAG: themes, chunks, and the questions of chunks", QUESTION, parts, lines(graph, parts), anchor=1
    )


def hipporag() -> str:
    index = HippoRAGIndex.from_documents(passages(), extractor=NounPhraseExtractor())
    found = {why.text: why for why in index.as_retriever(similarity_top_k=2).explain(QUESTION)}
    way = {phrase for why in found.values() for fact in why.facts for phrase in (fact[0], fact[2])}
    graph = view(index, QUESTION, similarity_top_k=len(PASSAGES))
    phrases = [
        Cell(cell.id, f"{cell.text} (in the question)" if cell.id in linked else cell.text, cell.text in way)
        for linked in [{node.id for node in of(graph, "linked")}]
        for cell in cells(of(graph, "linked", "phrase"))
    ]
    rows = [Cell(node.id, short(node.text), node.text in found) for node in of(graph, "passage")]
    rows.sort(key=lambda cell: [short(text) for text in PASSAGES].index(cell.text))
    parts = [Column("Phrases of the graph", phrases, 0.8), Column("Passages", rows)]
    return columns(
        "HippoRAG: the walk from a name to passages that do not have it", QUESTION, parts, lines(graph, parts)
    )


def graphrag() -> str:
    index = GraphRAGIndex.from_documents(
        passages(), extractor=CooccurrenceExtractor(), summarizer=ExtractiveSummarizer()
    )
    best = {found.text for found in index.as_retriever(similarity_top_k=2).retrieve(QUESTION)}
    graph = view(index, QUESTION, similarity_top_k=len(PASSAGES))
    chunks = of(graph, "chunk")
    ends = {edge.source for edge in graph.edges for chunk in chunks if chunk.id == edge.target and chunk.text in best}
    above = {edge.source for edge in graph.edges if edge.target in ends}
    parts = [
        Column("Communities", cells(of(graph, "community"), lambda node: node.id in above)),
        Column("Entities", cells(of(graph, "linked", "entity"), lambda node: node.id in ends), 0.8),
        Column("Chunks", cells(chunks, lambda node: node.text in best)),
    ]
    return columns(
        "Graph RAG: communities of entities, and the chunks that state them", QUESTION, parts, lines(graph, parts)
    )


def pgrag() -> str:
    texts = [Document(text=text, id_=f"document {i}") for i, text in enumerate(OUTLINES)]
    question = "What did the lamp of Tern Rock burn?"
    graph = view(PGRAGIndex.from_documents(texts, extractor=OutlineExtractor()), question, similarity_top_k=1)
    parts = [
        Column("Topics", cells(of(graph, "topic")), 0.9),
        Column("Routes", cells(of(graph, "route")), 0.8),
        Column("Facts", cells(of(graph, "fact"))),
    ]
    return columns("PG-RAG: mind maps, from topics over routes to facts", question, parts, lines(graph, parts))


def mrag() -> str:
    model = MultiHeadEmbedding(minilm_folder(), max_length=256)
    index = MRAGIndex.from_documents(passages(), embed_model=model)
    explained = index.as_retriever(similarity_top_k=len(PASSAGES)).explain(ASPECTS)
    aspects = sorted(explained[0].aspects, key=lambda aspect: (len(aspect) == len(ASPECTS), ASPECTS.find(aspect)))
    rows = [Cell(why.text, short(why.text), place < len(aspects) - 1) for place, why in enumerate(explained)]
    sizes = {why.text: [why.aspects[aspect] for aspect in aspects] for why in explained}
    heads = {str(i + 1): aspect.strip(",") for i, aspect in enumerate(aspects[:-1])} | {"all": ""}
    return dots("MRAG: how far the heads agree on each passage, for every aspect", ASPECTS, heads, rows, sizes)


def sprag() -> str:
    question = "How did dues and wages change?"
    document = Document(text=REPORT, id_="report")
    splitter = SentenceSplitter(chunk_size=24, chunk_overlap=0, include_metadata=False)
    index = SpRAGIndex.from_documents([document], extractor=RuleContext(), transformations=[splitter])
    (segment, *_) = index.as_retriever(token_budget=80, fill=False).explain(question)
    held = {chunk.node_id: chunk for chunk in segment.chunks}
    nodes = sorted(index.docstore.docs.values(), key=lambda node: REPORT.find(node.get_content()[:20]))
    chunks = [
        Cell(
            node.node_id,
            f"{node.get_content()} ({held[node.node_id].value:+.2f})" if node.node_id in held else node.get_content(),
            node.node_id in held,
        )
        for node in nodes
    ]
    header = ": ".join(index.header_of(nodes[0].node_id).splitlines()[:2])
    parts = [
        Column("Header", [Cell("header", shorten(header, LONGEST, placeholder=" …"), True)], 0.8),
        Column("Chunks below it", chunks),
        Column("Segment", [Cell("segment", segment.text, True)]),
    ]
    joined = [Line("header", cell.id) for cell in chunks] + [Line(name, "segment") for name in held]
    title = "spRAG: a header before every chunk, and neighbouring chunks as one segment"
    return columns(title, question, parts, joined, anchor=1)


PICTURES: dict[str, Callable[[], str]] = {
    "raptor": raptor,
    "gemrag": gemrag,
    "hipporag": hipporag,
    "graphrag": graphrag,
    "pgrag": pgrag,
    "mrag": mrag,
    "sprag": sprag,
}


def draw(method: str) -> str:
    """The picture of a method, with the models that all pictures have."""
    Settings.llm, Settings.embed_model = MockLLM(), minilm()
    return PICTURES[method]()


def main() -> None:
    """Write all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    for method in PICTURES:
        path = folder / method / "concept.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(draw(method), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
