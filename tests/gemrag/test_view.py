"""The memory as a page and as a networkx graph."""

import pytest
from tests.chromium import CHROMIUM, Browser
from tests.gemrag.test_index import build
from tests.page_data import page_data


def test_the_page_holds_everything_and_lights_the_answer(tmp_path):
    index = build()
    page = page_data(index.visualize(tmp_path / "memory.html", query="whether bread oven flour yeast number4 bread.?"))
    nodes = {node["id"]: node for node in page["view"]["nodes"]}
    state = index.state
    kinds = {
        name: sum(node_id in ids for node_id in nodes)
        for name, ids in (("chunks", set(state.chunks.ids)), ("themes", set(state.themes)))
    }
    assert (kinds, len(nodes)) == ({"chunks": 48, "themes": 4}, 3 * 52)
    assert nodes["n3-04"]["lit"]
    assert nodes["n3-04"]["score"] > 0.5
    highlighted = {node["text"] for node in nodes.values() if node.get("lit") and node["group"] == "question"}
    assert "whether bread oven flour yeast number4 bread.?" in highlighted
    themes = state.themes_of["n3-04"]
    assert all(nodes[name]["lit"] for name in themes)
    assert nodes["n3-04"]["group"] in themes  # each theme has a colour, and a name of salient terms
    names = {group["label"] for group in page["view"]["groups"]}
    assert any("bread" in name for name in names)
    assert page["subtitle"].startswith("Question: whether bread")
    assert page["panels"][0]["title"] == "Retrieved"


def test_a_large_memory_is_shown_in_part_with_the_answer_in_it(tmp_path):
    index = build()
    page = page_data(index.visualize(tmp_path / "memory.html", query=index.docstore.docs["n2-07"].text, max_chunks=12))
    chunks = [node["id"] for node in page["view"]["nodes"] if node["id"] in index.state.chunks]
    assert len(chunks) == 12
    assert "n2-07" in chunks
    assert page["covers"] == "The page has 12 of 48 chunks."


def test_an_empty_memory_has_a_page_too(tmp_path):
    assert page_data(build([]).visualize(tmp_path / "memory.html"))["view"]["nodes"] == []


@pytest.mark.skipif(not CHROMIUM.exists(), reason="no chromium")
def test_the_page_opens_and_answers_a_click_and_a_search(tmp_path):
    path = build().visualize(tmp_path / "memory.html", query="bread oven")
    with Browser() as browser:
        browser.open(path)
        browser.key("/")
        browser.write("number7")
        text = browser.run("document.body.innerText")
        assert "GEM-RAG memory" in text
        assert "number7" in text
        assert browser.problems == []


def test_the_networkx_graph_has_kinds_texts_and_weights():
    index = build()
    graph = index.to_networkx(neighbours=3)
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    assert (kinds.count("chunk"), kinds.count("theme"), kinds.count("question")) == (48, 4, 104)
    assert graph.nodes["n0-00"] == {
        "kind": "chunk",
        "text": index.docstore.docs["n0-00"].text,
        "document": "doc0-0",
    }
    similar = [(a, b) for a, b, kind in graph.edges(data="kind") if kind == "similar"]
    assert len(similar) >= 48 * 3 / 2
    assert all(len({a[:2], b[:2]}) == 1 for a, b in similar)
    assert not [1 for *_, kind in index.to_networkx(0).edges(data="kind") if kind == "similar"]
    name, members = next(iter(index.themes.items()))
    assert {b for _, b, kind in graph.edges(name, data="kind") if kind == "member"} == set(members)
    assert len(build([]).to_networkx()) == 0
