"""The recorded run on A Christmas Carol, as this package reads it: counts, communities, and tokens of reports."""

import gzip
import json
import os
import subprocess
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import llama_index.core
import numpy as np
import pytest
import tiktoken
from llama_index.core.schema import TextNode
from tests.graphrag.carol import RAG_DATA, needs_recording, run, table

from llama_index.graphrag import CooccurrenceExtractor, GraphRAGIndex
from llama_index.graphrag.clustering.hierarchy import hierarchy
from llama_index.graphrag.graph.statement_graph import statement_graph
from llama_index.graphrag.published.run import citations
from llama_index.graphrag.reports.report import check_findings
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.text.characters import normalise

pytestmark = needs_recording


@cache
def pairs() -> dict[frozenset[str], float]:
    """The weight of each pair; of reversed ones the last row's stays, as in the published code."""
    return {frozenset((row["source"], row["target"])): row["weight"] for row in table("relationships")}


def test_the_counts_are_those_that_were_recorded() -> None:
    names = {row["title"] for row in table("entities")}
    assert (len(names), len(pairs()), len(table("relationships"))) == (529, 935, 978)
    ends = [(row["source"], row["target"]) for row in table("relationships")]
    assert sum(not names.issuperset(pair) for pair in ends) == 84
    degrees = Counter(name for pair in pairs() for name in pair)
    assert all(row["degree"] == degrees[row["title"]] for row in table("entities"))


def test_a_dangling_relation_keeps_its_ends() -> None:
    """The published pipeline drops the entities that only relations name; here they are entities."""
    graph = statement_graph(run().chunks)
    known = {normalise(row["title"]) for row in table("entities")}
    dangling = [row for row in table("relationships") if not known >= set(map(normalise, _ends(row)))]
    assert len(dangling) == 84
    (document,) = graph.documents
    for row in dangling:
        one, other = (graph.key(name, document) for name in _ends(row))
        assert set(row["text_unit_ids"]) <= set(graph.entities[one]) & set(graph.entities[other])
        assert one == other or set(row["text_unit_ids"]) <= set(graph.links[one][other])
    assert len(graph.entities.keys() - known) == 32


def _ends(row: dict[str, Any]) -> tuple[str, str]:
    return row["source"], row["target"]


NATIVE = """
import json, sys
import graspologic_native
edges = [tuple(edge) for edge in json.load(sys.stdin)]
found = graspologic_native.hierarchical_leiden(
    edges, resolution=1.0, randomness=0.001, iterations=1, use_modularity=True, max_cluster_size=10, seed=0xDEADBEEF)
print(json.dumps([[entry.level, entry.cluster, entry.node] for entry in found]))
"""


@pytest.mark.skipif(
    "NATIVE_PYTHON" not in os.environ, reason="NATIVE_PYTHON names no Python with graspologic-native 1.2.5"
)
def test_native_1_2_5_gives_the_recorded_communities() -> None:
    import networkx as nx

    graph = nx.Graph([tuple(pair) for pair in pairs() if len(pair) == 2])
    largest = max(nx.connected_components(graph), key=len)
    edges = sorted((*sorted(pair), weight) for pair, weight in pairs().items() if len(pair) == 2 and pair <= largest)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [os.environ["NATIVE_PYTHON"], "-c", NATIVE],
        input=json.dumps(edges),
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    members: dict[tuple[int, int], set[str]] = {}
    for level, cluster, name in json.loads(done.stdout):
        members.setdefault((level, cluster), set()).add(name)
    known = {row["title"] for row in table("entities")}
    found = Counter((level, frozenset(names & known)) for (level, _), names in members.items())
    recorded = Counter((community.level, frozenset(community.names)) for community in run().communities.values())
    assert recorded == found


def test_the_tokens_of_the_cuts_are_those_that_were_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level of the hierarchy with each entity once, as a share of the book's tokens."""
    files = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(files))
    count = tiktoken.get_encoding("o200k_base").encode
    book = sum(row["n_tokens"] for row in table("text_units"))
    tokens = {number: len(count(report.text)) for number, report in run().reports.items()}
    assert (book, sum(tokens.values())) == (50_288, 117_499)
    communities = run().communities
    parents = {(c.parent, communities[c.parent].level) for c in communities.values() if c.parent >= 0}
    opened = {number for number, _ in parents}
    shares = []
    for deepest in range(3):
        cut = [n for n, c in communities.items() if c.level == deepest or (c.level < deepest and n not in opened)]
        names = [name for number in cut for name in communities[number].names]
        assert len(names) == len(set(names))
        shares.append(sum(tokens[number] for number in cut) / book)
    assert [round(share, 2) for share in shares] == [0.54, 1.37, 1.66]


def test_recorded_communities_are_a_hierarchy() -> None:
    names = sorted({name for community in run().communities.values() for name in community.names})
    place = {name: row for row, name in enumerate(names)}
    labels = np.zeros(len(names), np.int64)
    levels = []
    for level in range(1 + max(community.level for community in run().communities.values())):
        labels = labels.copy()
        for number, community in run().communities.items():
            if community.level == level:
                labels[[place[name] for name in community.names]] = number
        levels.append(np.unique(labels, return_inverse=True)[1].reshape(-1))
    found = hierarchy(len(names), levels)
    sizes = Counter(len(community.names) for community in run().communities.values())
    assert Counter(found.sizes.tolist()) == sizes


def test_recorded_reports_as_replies_lose_what_they_cite_of_other_communities() -> None:
    cited = dropped = 0
    for number, report in run().reports.items():
        sources = {entity: run().entities[entity].units for entity in run().communities[number].entities}
        for summary, explanation in report.findings:
            for kind, record in citations(explanation):
                if kind == "entities":
                    cited += 1
                    dropped += check_findings([(summary, [record])], sources).dropped_citations
    assert (cited, dropped) == (1803, 29)


def test_chinese_news_have_communities() -> None:
    """Names without capitals and spaces: the entities of a community are stated together, in Chinese."""
    path = Path(RAG_DATA or "") / "zh_news" / "corpus.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        given = [TextNode(id_=row["doc_id"], text=row["text"]) for row in map(json.loads, islice(lines, 20))]
    index = GraphRAGIndex(
        given,
        extractor=CooccurrenceExtractor(),
        summarizer=ExtractiveSummarizer(),
        embed_model=HashEmbedding(),
    )
    found = index.communities
    joined = [community for community in range(len(found)) if found.sizes[community] > 2]
    assert len(joined) > 10
    for community in joined:
        assert all(any("\u4e00" <= letter <= "\u9fff" for letter in f.text) for f in index.report(community).findings)
    names = [name for community in joined for name in index.community_names(community)]
    assert sum(any("\u4e00" <= letter <= "\u9fff" for letter in name) for name in names) > 0.8 * len(names)
