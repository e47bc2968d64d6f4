"""Cells that a question names."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import TextNode

from llama_index.pgrag import GivenMindMaps, OutlineExtractor, PGRAGIndex
from llama_index.pgrag.maps.name_links import CellNames, MapNames, NameLinks, cell_name
from llama_index.pgrag.search.name_walk import NameWalk, walk_names
from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.vectors.question_scores import Nearness

TOPICS = ("Ada", "ADA", "Ada (poet)", "Great Wall", "The Who", "東京", "東京タワー", "東京か", "", "?", "x" * 200)
FACTS = (
    "Ada",
    "wall",
    "The Great Wall was seen by Ada and by the men of the Who from afar.",
    "A long story in which nobody of them is named, whoever may read it.",
    "東京タワーは、東京都港区芝公園にある高さ三百三十三メートルの電波塔であり、港区のシンボルである。",
    "The tower of 東京 (東京か\u3099) is one that Ada saw from the Great Wall.",
)
some_paths = st.lists(st.sampled_from(FACTS), min_size=1, max_size=3)
a_node = st.builds(lambda topic, facts: [(topic, fact) for fact in facts], st.sampled_from(TOPICS), some_paths)
some_writes = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), a_node | st.just([]), min_size=1, max_size=2), min_size=1, max_size=8
)


def after_each(writes):
    """The nodes after each write, and their names."""
    names, nodes = MapNames(), {}
    for write in writes:
        names = names.changed(write)
        nodes = {i: own for i, own in {**nodes, **write}.items() if own}
        yield nodes, names


def test_key_phrases_that_stand_for_a_title_are_no_name_and_titles_with_commas_are_one():
    index = PGRAGIndex(
        [TextNode(id_="a", text="Maie sighed for a fish. Her husband, Maie said, had no fish.")],
        extractor=OutlineExtractor(),
        embed_model=HashEmbedding(),
    )
    (topic,) = {path.path[0] for path in index.graph.of_node["a"]}
    assert "Maie" in topic.split(" · ")
    assert cell_name(topic) == ""
    assert cell_name("Paris, Texas (film)") == "paris texas"


@given(some_writes)
def test_names_follow_every_change(writes):
    """Inserts, changes and deletes one after the other leave what a build from what is left gives."""
    for nodes, names in after_each(writes):
        names.known.find("Who is Ada?")
        at_once = MapNames().changed(nodes)
        assert (names.nodes, names.counts, names.topics) == (at_once.nodes, at_once.counts, at_once.topics)
        found, wanted = ({word: sorted(ids) for word, ids in each.words.nodes.items()} for each in (names, at_once))
        assert found == wanted
        phrases = {name: names.known.phrases[row] for name, row in names.known.numbers.items()}
        assert phrases == {name: name for name in names.counts}


@given(some_writes, st.lists(st.permutations("abcdefgh"), min_size=8, max_size=8))
def test_links_follow_every_change(writes, orders):
    """Links that follow writes are those made at once, to the order in which a walk adds them up."""
    links = NameLinks()
    for (nodes, names), order in zip(after_each(writes), orders, strict=False):
        rows = [names.nodes.get(i) for i in order if i in nodes or i < "d"]  # and nodes without names
        links, at_once = links.changed(names.known, rows), NameLinks().changed(names.known, rows)
        assert links.mentions == at_once.mentions
        for found, wanted in zip(vars(links.part(None)).values(), vars(at_once.part(None)).values(), strict=True):
            parts = ("data", "indices", "indptr") if hasattr(wanted, "indptr") else ("T",)
            assert all(np.array_equal(getattr(found, part), getattr(wanted, part)) for part in parts)


@given(some_writes, st.lists(st.booleans(), min_size=8, max_size=8))
def test_links_of_arrays_are_those_that_were_stored(writes, allowed):
    names = [names for _, names in after_each(writes)][-1]
    links = NameLinks().changed(names.known, list(map(names.nodes.get, "abcdefgh")))
    opened = NameLinks.of_arrays(links.arrays())
    assert list(opened.names) == [name for name in links.names if name]
    assert list(opened.mentions.values()) == list(NameLinks.of_arrays(opened.arrays()).mentions.values())
    columns = [links.known.numbers[name] for name in opened.names]
    for mask in (None, np.array(allowed)):
        stored, found = (each.part(mask) for each in (links, opened))
        assert (stored.from_names[:, columns] != found.from_names).nnz == 0
        assert (stored.from_nodes[columns] != found.from_nodes).nnz == 0
        assert (stored.frequency[columns] == found.frequency).all()
    said = [name.rows for name in opened.known.find("Who is Ada? The Who?")]
    assert said == [tuple(columns.index(row) for row in name.rows) for name in links.known.find("Who is Ada? The Who?")]


def test_what_stands_in_brackets_is_no_part_of_a_name():
    names = CellNames([cell_name(text) for text in ("The Glass Wall (film)", "the glass wall", "Glass")])
    assert names.names_in("Who directed The Glass Wall?") == ["the glass wall"]
    assert names.names_in("Who directed it?") == []


MAPS = {
    "shane": {"Maxwell Shane": {"wife": ["Evelyn"], "born in": ["Paterson"]}},
    "wall": {"The Glass Wall (film)": {"director": ["Maxwell Shane"], "year": ["1953"]}},
    "town": {"Paterson": {"state": ["New Jersey"]}},
    **{f"film {i}": {f"Film {i}": {"country": ["Italy"]}} for i in range(12)},
}


def index_of(maps) -> PGRAGIndex:
    nodes = [TextNode(id_=name, text=f"text of {name}") for name in maps]
    return PGRAGIndex(nodes=nodes, embed_model=HashEmbedding(dim=256), extractor=GivenMindMaps(maps=maps))


def walked(index: PGRAGIndex, question: str, nearest: str, allowed=None) -> tuple[NameWalk, dict[str, float]]:
    """A walk for a question to which one node is near, and its share of each node."""
    ids = index.graph.chunks.ids
    near = np.array([float(node_id == nearest) for node_id in ids])
    mask = None if allowed is None else np.isin(ids, allowed)
    scores = np.where(mask, near, -np.inf) if allowed else near
    walk = walk_names(index.graph.name_links, [question], Nearness(near, np.zeros_like(near), 0.0, scores), mask)
    return walk, dict(zip(ids, walk.shares.tolist(), strict=True))


def test_a_walk_goes_from_the_names_of_a_question_over_the_maps_that_share_names():
    walk, shares = walked(index_of(MAPS), "Where was the director of The Glass Wall born?", "wall")
    assert walk.named[0] == "the glass wall"
    assert shares["wall"] == 1.0
    assert shares["wall"] > shares["shane"] > shares["town"] > shares["film 1"] == 0
    assert walk.trust > 0.5


def test_a_longer_fact_leads_to_the_topics_that_it_mentions():
    maps = {
        "sentence": {"Notes": {"life": ["She was married to Maxwell Shane, a director of films, for years."]}},
        **MAPS,
    }
    assert walked(index_of(maps), "What do the Notes say?", "sentence")[1]["shane"] > 0


def test_a_question_without_a_name_is_answered_by_nearness_and_says_so():
    index = index_of(MAPS)
    walk, shares = walked(index, "what is it about", "wall")
    assert (walk.trust, set(shares.values())) == (0.0, {0.0})
    assert "names nothing" in walk.reason
    (why, *_) = index.as_retriever(return_source=True).explain("what is it about")
    assert "names nothing" in why.fallback
    assert (why.trust, why.names, why.share) == (0.0, [], 0.0)


def test_a_walk_that_leads_everywhere_is_trusted_less_than_one_that_leads_to_few():
    index = index_of(MAPS)
    few = walked(index, "Who is Evelyn?", "shane")[0].trust
    many = walked(index, "Which films are from Italy?", "film 3")[0].trust
    assert few > 2 * many
    assert walked(index, "Who is Evelyn?", "film 7")[0].trust < 0.5 * few  # the nearest node is elsewhere


def test_hidden_nodes_are_no_part_of_a_walk():
    walk, shares = walked(index_of(MAPS), "Who is Maxwell Shane of Paterson?", "wall", ["wall", "film 3"])
    assert walk.named == ["maxwell shane"]
    assert {node_id for node_id, share in shares.items() if share} == {"wall"}


def test_what_is_named_is_found_although_it_is_not_near_and_gone_when_it_is_deleted():
    maps = {name: MAPS[name] for name in ("shane", "wall", "town")}
    index = index_of({**maps, **{f"x{i}": {f"Thing {i}": {"text": f"wall {i}"}} for i in range(30)}})
    question = "Where was the director of The Glass Wall born?"

    def rank(**options) -> list[str]:
        return [
            r.node.node_id
            for r in index.as_retriever(return_source=True, similarity_top_k=40, **options).retrieve(question)
        ]

    assert rank().index("town") < rank(bridge_weight=0).index("town")
    assert rank().index("town") <= 3
    index.delete_nodes(["shane"])  # which led there
    assert rank().index("town") > 3


def test_scores_are_between_zero_and_one():
    index = index_of({"a": {"Paterson": {"state": ["New Jersey"]}}})
    question = index.graph.maps[next(iter(index.graph.maps))].facts[0].text
    for options in ({}, {"return_source": True}, {"walk_weight": 2.0, "bridge_weight": 9.0}, {"ranking": "support"}):
        scores = [result.get_score() for result in index.as_retriever(**options).retrieve(question)]
        assert scores
        assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("asked", [False, True])
def test_the_links_of_names_are_those_of_the_maps_whatever_the_order_of_writes(asked: bool):
    at_once = index_of(MAPS).graph.name_links
    grown = index_of({"extra": {"Extra": {"of": ["Paterson"]}}})
    grown.resources.extractor = GivenMindMaps(maps=MAPS)
    for name in reversed(MAPS):
        if asked:
            grown.as_retriever().retrieve("Who was born in Paterson?")
        grown.insert_nodes([TextNode(id_=name, text=f"text of {name}")])
    grown.delete_nodes(["extra"])
    links = grown.graph.name_links
    order = [grown.graph.chunks.ids.index(node_id) for node_id in index_of(MAPS).graph.chunks.ids]
    columns = [links.known.numbers[name] for name in at_once.names]
    assert sorted(filter(None, links.names)) == at_once.names
    assert (links.weights[order][:, columns] != at_once.weights).nnz == 0


def test_a_copy_holds_no_name_of_a_deleted_node():
    index = index_of(MAPS)
    assert "maxwell shane" in index.graph.name_links.known.numbers
    index.delete_nodes(["shane", "wall"])
    assert b"maxwell" not in pickle.dumps(index.state.names)
    assert b"paterson" in pickle.dumps(index.state.names)
