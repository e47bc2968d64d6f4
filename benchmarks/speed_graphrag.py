"""Speed of Graph RAG: clustering beside graspologic-native, reports after a change, writes, and the page.

`NATIVE_PYTHON` names the Python of an environment with another version of graspologic-native, such as 1.2.5, which the
published pipeline pins; default is the version installed here. With `RAG_DATA`, reports to write after a change are
counted on the recorded run and on the triples of musique too. No model is used: vectors are those of hashed words.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.apart import ONE_THREAD, apart
from benchmarks.graph_data import planted, read, write
from benchmarks.measuring import Times, allocated_mb, peak_mb, repeated, timed
from benchmarks.modularity import modularity
from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.entity_graph import EntityGraph, entity_graph
from llama_index.graphrag.graph.statement_graph import changed, statement_graph
from llama_index.graphrag.published.run import PublishedRun, read_published
from llama_index.graphrag.reports.planning import Planner
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["measurements"]

EDGES = (10_000, 100_000, 1_000_000)
AFTER_A_CHANGE = {  # and what is to be reached
    "planted": "164 of 1,111",
    "carol": "11 of 104",
    "carol, as the published pipeline has its graph": "11 of 104",
    "musique": "8 of 4,809",
}
INSERTS = 150  # of one chunk, at most
STATEMENTS = 100_000
ENTITIES_OF_PAGE = 5_000


def measurements() -> Iterator[dict[str, Any]]:
    """Measure; what must not share memory is in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for edges in EDGES:
            path = Path(folder) / f"{edges}.npz"
            write(path, *planted(edges))
            native = _native(path)
            ours = apart(_clustered, str(path), native.pop("out"), **ONE_THREAD)
            yield {
                "name": f"hierarchy of communities, planted graph of {edges:,} edges",
                **{f"ours_{key}": value for key, value in ours.items()},
                **{f"native_{key}": value for key, value in native.items()},
                "seconds_over_native": ours["s"] / native["s"],
                "cpu_over_native": ours["cpu_s"] / native["cpu_s"],
                "memory_over_native": ours["mb"] / native["mb"],
                "to_reach": "1.3 times its seconds, half its memory, modularity within .005; 1M under 12 s, 400 MB",
            }
    for corpus in AFTER_A_CHANGE if "RAG_DATA" in os.environ else ("planted",):
        yield apart(_reports_after, corpus, **ONE_THREAD)
    yield apart(_writes, STATEMENTS)
    yield apart(_page, ENTITIES_OF_PAGE)


def _native(path: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("native_leiden.py")
    python = os.environ.get("NATIVE_PYTHON", sys.executable)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, str(script), str(path)], capture_output=True, text=True, check=True, env={**environment, **ONE_THREAD}
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _clustered(path: str, native: str) -> dict[str, Any]:
    """Our hierarchy of a stored graph, and the modularity of both top levels."""
    n, (one, other, weights) = read(Path(path))
    graph = EntityGraph.of([f"entity {i:07d}" for i in range(n)], one, other, weights)
    clustering = AgglomerativeClustering(leaf_tokens=None)
    clustering.cluster(EntityGraph.of(["a", "b"], [0], [1]))  # it imports a part of SciPy, as an index has long done
    found, seconds, cpu_s = timed(lambda: clustering.cluster(graph))
    peak = peak_mb()
    with np.load(native) as stored:
        top = stored["top"]
    labels = np.where(top < 0, n + np.arange(n), top)
    return {
        "s": seconds,
        "cpu_s": cpu_s,
        "mb": allocated_mb(lambda: clustering.cluster(graph)),
        "peak_mb": peak,
        "communities": len(found),
        "modularity": modularity(graph, found.partition(0)),
        "modularity_of_native": modularity(graph, np.unique(labels, return_inverse=True)[1].reshape(-1)),
    }


def _reports_after(corpus: str) -> dict[str, Any]:
    """Reports whose entities or inner relations differ after an insert, mean and median of some inserts.

    Beside them, how many of these hold a relation that was inserted, which no clustering can avoid; and, where there
    are texts, how many are longer than a report, so that writing them takes a call.
    """
    if corpus == "planted":
        n, (one, other, weights) = planted(EDGES[0])
        names = [f"entity {i:07d}" for i in range(n)]

        def graph_of(kept: np.ndarray) -> Any:
            return EntityGraph.of(names, one[kept], other[kept], weights[kept])

        places = np.arange(EDGES[0]) % 100
        whole = _Reports(graph_of(places >= 0))
        rows = []
        for i in range(3):
            new = {(names[a], names[b]) for a, b in zip(one[places == i], other[places == i], strict=True)}
            rows.append(whole.differing(_Reports(graph_of(places != i)), new))
        change = "1 % of the edges"
    elif corpus.endswith("graph"):
        from benchmarks.quality_graphrag import published_tables

        run = read_published(published_tables(Path(os.environ["RAG_DATA"]) / "graphrag_christmas_carol"))
        whole = _Reports(_published_graph(run))
        rows = []
        for unit in run.texts:
            ends = {tuple(sorted(row.names)) for row in run.relations.values() if unit in row.units}
            rows.append(whole.differing(_Reports(_published_graph(run, unit)), ends))
        change = f"1 chunk of {len(run.texts)}"
    else:
        graph = statement_graph(_chunks(corpus))
        chunks = sorted(graph.chunks, key=lambda chunk: graph.chunks[chunk].order)
        whole = _Reports(entity_graph(graph), graph)
        rows = []
        for chunk in random.Random(0).sample(chunks, min(INSERTS, len(chunks))):
            pairs = {tuple(sorted(s.entities)) for s in graph.statements(chunk) if len(s.entities) == 2}
            rows.append(whole.differing(_Reports(entity_graph(changed(graph, [chunk]).graph)), pairs))
        change = f"1 chunk of {len(chunks)}"
    differing, unavoidable, calls = np.mean(rows, axis=0).tolist()
    return {
        "name": f"reports that differ after an insert of {change}, {corpus}",
        "differing": differing,
        "differing_median": float(np.median([row[0] for row in rows])),
        "of_these_hold_what_is_new": unavoidable,
        **({} if whole.planner is None else {"of_these_take_a_call": calls}),
        "reports": len(whole.contents),
        "inserts": len(rows),
        "to_reach": AFTER_A_CHANGE[corpus],
    }


def _published_graph(run: PublishedRun, without: str = "") -> EntityGraph:
    """The graph of the published pipeline: names as written, weights that are numbers of text units."""
    known = {name for row in run.entities.values() for name in row.names}
    units: Counter[tuple[str, ...]] = Counter()
    for row in run.relations.values():
        if known.issuperset(row.names) and len(set(row.names)) == 2:
            units[tuple(sorted(row.names))] += sum(unit != without for unit in row.units)
    weights = +units
    names = sorted({name for pair in weights for name in pair})
    place = {name: row for row, name in enumerate(names)}
    one, other = ([place[pair[side]] for pair in weights] for side in (0, 1))
    return EntityGraph.of(names, one, other, list(weights.values()))


class _Reports:
    """The communities of at least two entities, by content."""

    def __init__(self, graph: EntityGraph, statements: Any = None) -> None:
        self.hierarchy = AgglomerativeClustering(leaf_tokens=None).cluster(graph)
        self.planner = None
        if statements is not None:
            self.planner = Planner(statements, graph, self.hierarchy, GraphRAGConfig(), "", count_tokens)
        self.contents = {}
        for community in np.flatnonzero(self.hierarchy.sizes > 1).tolist():
            members = self.hierarchy.members(community).tolist()
            inside = set(members)
            edges = frozenset(
                (graph.names[row], graph.names[graph.indices[entry]], int(graph.weights[entry]))
                for row in members
                for entry in range(graph.indptr[row], graph.indptr[row + 1])
                if row < graph.indices[entry] and int(graph.indices[entry]) in inside
            )
            self.contents[frozenset(graph.names[row] for row in members), edges] = community

    def differing(self, before: "_Reports", new: set[Any]) -> tuple[int, int, int]:
        """How many were not there before; how many of them hold one of some pairs; how many take a call."""
        changed_ones = self.contents.keys() - before.contents.keys()
        holding = sum(any((a, b) in new for a, b, _ in edges) for _, edges in changed_ones)
        calls = 0
        if self.planner is not None:
            calls = sum(not self.planner.plan(self.contents[content]).verbatim for content in changed_ones)
        return len(changed_ones), holding, calls


def _chunks(corpus: str) -> list[Any]:
    """What the chunks of a recorded corpus state."""
    from benchmarks.data import load
    from benchmarks.quality_graphrag import extractor_of, published_tables
    from llama_index.graphrag.graph.statement import ChunkStatements
    from llama_index.ragkit.steps import run_steps

    folder = Path(os.environ["RAG_DATA"])
    if corpus == "carol":
        return list(read_published(published_tables(folder / "graphrag_christmas_carol")).chunks)
    (task,) = load(folder / corpus)
    nodes = task.corpus.fresh_nodes()
    found = run_steps(extractor_of(task.corpus).extract(nodes))
    return [
        ChunkStatements.from_record(each.record, node.node_id, node.hash)
        for node, each in zip(nodes, found, strict=True)
        if each.record is not None
    ]


def _recorded(statements: int) -> tuple[list[Any], dict[str, Any]]:
    """Nodes of ten statements each about a planted graph, and their records."""
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    _, (one, other, _) = planted(statements)
    order = np.argsort(one, kind="stable")
    nodes, records = [], {}
    for number in range(statements // 10):
        pairs = [
            (f"entity {a}", f"entity {b}")
            for a, b in zip(*(e[order][number * 10 :][:10] for e in (one, other)), strict=True)
        ]
        document = f"document {number // 10}"
        node = TextNode(
            id_=f"chunk {number}",
            text=" ".join(f"{a} met {b}." for a, b in pairs),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
            start_char_idx=number % 10,
        )
        nodes.append(node)
        relations = [[a, b, f"{a} met {b}."] for a, b in pairs]
        records[node.node_id] = {
            "entities": [[name] for name in sorted({x for p in pairs for x in p})],
            "relations": relations,
        }
    return nodes, records


def _writes(statements: int) -> dict[str, Any]:
    """An insert and a delete of one chunk, and of one document of ten, without models, and the first question after."""
    from llama_index.graphrag import GraphRAGIndex, RecordedExtractor
    from llama_index.ragkit import ExtractiveSummarizer
    from llama_index.ragkit.testing import HashEmbedding

    nodes, records = _recorded(statements)
    # The last document of ten chunks is inserted later.
    built, later = nodes[:-10], nodes[-10:]
    index, build_s, _ = timed(
        lambda: GraphRAGIndex(
            nodes=built,
            extractor=RecordedExtractor(records),
            summarizer=ExtractiveSummarizer(),
            embed_model=HashEmbedding(),
        )
    )
    inserts, deletes, documents = Times(), Times(), Times()
    for node in later:
        inserts.run(partial(index.insert_nodes, [node]))
        deletes.run(partial(index.delete_nodes, [node.node_id], delete_from_docstore=True))
    for _ in range(3):
        index.insert_nodes(later)
        documents.run(partial(index.delete_ref_doc, str(later[0].ref_doc_id), delete_from_docstore=True))
    _, cluster_s, cluster_cpu_s = timed(lambda: index.communities)
    retriever = index.as_retriever(similarity_top_k=10)
    retriever.retrieve("Who met entity 5?")
    questions = repeated(lambda: retriever.retrieve("Who met entity 7?"), 5)
    return {
        "name": f"writes at {statements:,} statements, {len(index.state.graph.entities):,} entities",
        **{
            key: value
            for name, times in {"insert": inserts, "delete": deletes, "delete_of_ten_chunks": documents}.items()
            for key, value in {
                f"{name}_ms": times.median_ms,
                f"{name}_cpu_ms": 1000 * float(np.median(times.cpu_s)),
            }.items()
        },
        "communities_after_a_write_s": cluster_s,
        "communities_after_a_write_cpu_s": cluster_cpu_s,
        "local_question_ms": questions.median_ms,
        "build_s": build_s,
        "peak_mb": peak_mb(),
        "to_reach": "insert and delete under 100 ms",
    }


def _page(entities: int) -> dict[str, Any]:
    """The page of a graph of many entities."""
    from llama_index.graphrag import GraphRAGIndex, RecordedExtractor
    from llama_index.ragkit import ExtractiveSummarizer
    from llama_index.ragkit.testing import HashEmbedding

    nodes, records = _recorded(entities * 2)
    index = GraphRAGIndex(
        nodes=nodes,
        extractor=RecordedExtractor(records),
        summarizer=ExtractiveSummarizer(),
        embed_model=HashEmbedding(),
    )
    with tempfile.TemporaryDirectory() as folder:
        path, seconds, _ = timed(lambda: index.visualize(Path(folder) / "page.html", query="Who met entity 7?"))
        size = path.stat().st_size
    return {
        "name": f"page of {len(index.state.graph.entities):,} entities",
        "s": seconds,
        "mb": size / 2**20,
    }
