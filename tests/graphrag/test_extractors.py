"""What a chunk states: by a model, by rules, from records; and what is checked of it."""

import json
from collections.abc import Callable

import pytest
from llama_index.core.schema import TextNode
from tests.graphrag.carol import needs_recording, run, table
from tests.graphrag.scripted import answer

from llama_index.graphrag import CooccurrenceExtractor, EntityExtractor, RecordedExtractor, published_nodes
from llama_index.graphrag.extraction.cooccurrence import cooccurrences
from llama_index.graphrag.extraction.entity_extractor import checked
from llama_index.graphrag.graph.statement import ChunkStatements, EntityStatement, RelationStatement
from llama_index.graphrag.graph.statement_graph import statement_graph
from llama_index.ragkit import RetryPolicy
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import ScriptedLLM
from llama_index.ragkit.text.held import TextWords

TEXT = "Ada Byron wrote to Charles Babbage. Babbage built the Engine."
ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)


def extract(script: Callable[[str], str] | str, text: str = TEXT, **options):
    extractor = EntityExtractor(llm=ScriptedLLM(script), retry=ONCE, **options)
    (found,) = run_steps(extractor.extract([TextNode(text=text)]))
    return found


@pytest.mark.parametrize(
    "reply",
    [
        '{"entities": [{"name": "Ada Byron", "type": "person", "description": "d"}], "relations": []}',
        'Here it is:\n```json\n{"entities": [["Ada Byron", "person", "d"]]}\n```',
        '{"entities": ["Ada Byron"], "relations": "none"} {"entities": [["Ada Byron", "person", "d"]]}',
        '{"entities": [{"entity_name": "Ada Byron", "entity_type": "person", "description": "d"}, 7.5, null, {}]}',
        '{"entities": [["Ada Byron", "person", "d"], ["Nobody", "person", "x"]], "relations": [["Nobody", "One"]]}',
    ],
)
def test_every_common_shape_of_an_answer_is_understood(reply: str) -> None:
    assert extract(reply).record["entities"] == [["Ada Byron", "person", "d"]]


@pytest.mark.parametrize(
    "reply",
    ["", "I cannot.", '{"relations": []}', '{"entities": [{"name": "Otto Lindqvist"}]}', '{"entities": {"a": 1}}'],
)
def test_what_is_not_understood_is_a_failure_and_never_an_empty_success(reply: str) -> None:
    found = extract(reply)
    assert found.record is None
    assert found.error


def test_an_explicitly_empty_answer_is_a_success() -> None:
    assert extract('{"entities": [], "relations": []}').record == {
        "entities": [],
        "relations": [],
        "dropped": {"entities": 0, "relations": 0},
    }


def test_strengths_are_read_as_models_write_them() -> None:
    relations = [["Ada Byron", "Babbage", "wrote to", "9/10"], ["Ada Byron", "Engine", "knew", "high"]]
    reply = json.dumps({"entities": ["Ada Byron", "Babbage", "Engine"], "relations": relations})
    assert [row[3] for row in extract(reply).record["relations"]] == [9.0, 1.0]


def test_gleanings_ask_for_what_was_missed_with_what_was_found() -> None:
    prompts: list[str] = []

    def script(prompt: str) -> str:
        prompts.append(prompt)
        if "missed" in prompt:
            return '{"entities": [["Engine", "thing", "built"]], "relations": []}'
        return '{"entities": [["Ada Byron", "person", "d"]], "relations": []}'

    record = extract(script, gleanings=1).record
    assert [row[0] for row in record["entities"]] == ["Ada Byron", "Engine"]
    assert len(prompts) == 2
    assert "Ada Byron: d" in prompts[1]
    with pytest.raises(ConfigurationError, match="gleanings"):
        EntityExtractor(gleanings=-1)


CLAIM = {
    "subject": "Babbage",
    "object": "Engine",
    "type": "authorship",
    "status": "TRUE",
    "start_date": "1837",
    "end_date": "NONE",
    "description": "Babbage built the Engine.",
    "source_text": "Babbage  built the engine",
}


def claiming(*claims: object) -> Callable[[str], str]:
    """Entities for the first prompt, these claims for the second."""
    entities = json.dumps({"entities": ["Babbage", "Engine"], "relations": []})
    return lambda prompt: json.dumps({"claims": claims}) if "List the claims" in prompt else entities


def test_claims_are_statements_whose_quotation_the_text_has() -> None:
    invented = {**CLAIM, "source_text": "Babbage burned the Engine"}
    elsewhere = {**CLAIM, "subject": "Napoleon"}
    bare = {**CLAIM, "source_text": ""}
    record = extract(claiming(CLAIM, invented, elsewhere, bare, 7), claims=True).record
    row = [
        "Babbage",
        "Engine",
        "authorship",
        "true",
        "1837",
        "",
        "Babbage built the Engine.",
        "Babbage built the engine",
    ]
    assert record["claims"] == [row]
    assert record["dropped"] == {"entities": 0, "relations": 0, "claims": 3}
    assert "claims" not in extract(claiming(CLAIM)).record
    chunk = ChunkStatements.from_record(json.loads(json.dumps(record)), "n", "h")
    assert ChunkStatements.from_record(chunk.record(), "n", "h") == chunk
    graph = statement_graph([chunk])
    (statement,) = (s for s in graph.statements("n") if s.is_claim)
    said = 'Claim (authorship, true, from 1837): Babbage built the Engine. "Babbage built the engine"'
    assert (statement.entities, statement.text) == (("babbage", "engine"), said)
    assert set(graph.links["babbage"]) == {"engine"}


def test_claims_that_cannot_be_read_fail_and_none_are_none() -> None:
    assert "claims" not in extract(claiming(), claims=True).record
    for claims in ([{**CLAIM, "source_text": "not there"}], [{"object": "Engine"}]):
        assert extract(claiming(*claims), claims=True).error
    estimate = EntityExtractor(claims=True, gleanings=1).estimate([TextNode(text=TEXT)])
    assert (estimate.calls, EntityExtractor().estimate([TextNode(text=TEXT)]).calls) == (3, 1)


def test_a_name_of_a_relation_that_the_text_has_becomes_an_entity() -> None:
    relations = (RelationStatement("Ada Byron", "Engine"), RelationStatement("Ada Byron", "Zeppelin"))
    given = ChunkStatements("", "", entities=(EntityStatement("Ada Byron"),), relations=relations)
    found = checked(given, TEXT)
    assert found.completed == ("Engine",)
    assert found.dropped_relations == 1
    assert [relation.target for relation in found.statements.relations] == ["Engine"]


def test_words_of_a_name_are_found_up_to_their_endings() -> None:
    assert TextWords("the nephew of old Scrooge").has_all("Scrooge's nephew")
    assert TextWords("он жил в Москве").has_all("Москва")
    assert TextWords("东京是首都").has_all("东京")
    assert not TextWords("the nephew").has_all("Scrooge's nephew")


def test_names_in_a_sentence_are_related_and_the_sentence_is_the_statement() -> None:
    record = run_steps(CooccurrenceExtractor().extract([TextNode(text=TEXT)]))[0].record
    assert record["relations"] == [
        ["Ada Byron", "Charles Babbage", "Ada Byron wrote to Charles Babbage.", 1.0],
        ["Babbage", "Engine", "Babbage built the Engine.", 1.0],
    ]
    titled = TextNode(text="It has a Lamp. It shines.", metadata={"title": "Tern Rock"})
    record = run_steps(CooccurrenceExtractor().extract([titled]))[0].record
    assert [row[:3] for row in record["relations"]] == [["Lamp", "Tern Rock", "It has a Lamp."]]
    assert run_steps(CooccurrenceExtractor(title_key=None).extract([titled]))[0].record["relations"] == []


def test_a_name_that_two_others_divide_is_two_names() -> None:
    text = "They say that Ada Byron and Charles Babbage met in London."
    record = run_steps(CooccurrenceExtractor().extract([TextNode(text=text)]))[0].record
    assert {name for name, *_ in record["entities"]} == {"Ada Byron", "Charles Babbage", "London"}


def test_a_long_list_joins_each_name_with_the_next_ones_only() -> None:
    names = [f"N{i:02}" for i in range(40)]
    text = " ".join(names) + "."
    spans = [(name, text.index(name), text.index(name) + 3) for name in names]
    _, relations = cooccurrences(text, lambda _: spans)
    assert len(relations) == sum(min(12, 39 - i) for i in range(40))


def test_records_are_found_by_id_and_by_text() -> None:
    record = {"entities": [["Ada"]], "relations": [["Ada", "Bede"]]}
    extractor = RecordedExtractor({"n": record, "some  text": record})
    found = run_steps(
        extractor.extract([TextNode(id_="n", text="x"), TextNode(text="some text"), TextNode(text="other")])
    )
    assert [each.error is None for each in found] == [True, True, False]
    assert found[0].record == {"entities": [["Ada", "", ""]], "relations": [["Ada", "Bede", "", 1.0]]}
    with pytest.raises(ConfigurationError, match="relations"):
        RecordedExtractor({"n": {"entities": []}})


def test_a_fallback_reads_what_has_no_record_with_its_own_model_and_prompts() -> None:
    record = {"entities": [["Ada"]], "relations": []}
    llm, other = ScriptedLLM(answer), ScriptedLLM(answer)
    extractor = RecordedExtractor({"n": record}, fallback=EntityExtractor(llm=llm))
    given = [TextNode(id_="new", text=TEXT), TextNode(id_="n", text="x"), TextNode(text="")]
    found = run_steps(extractor.extract(given, llm=other))
    assert found[1].record == {"entities": [["Ada", "", ""]], "relations": []}
    assert {name for name, *_ in found[0].record["entities"]} >= {"Ada Byron", "Charles Babbage"}
    assert (len(llm.prompts), len(other.prompts)) == (1, 0)
    assert extractor.needs_llm
    assert not RecordedExtractor().needs_llm
    assert extractor.estimate(given).calls == 1
    assert RecordedExtractor({"n": record}).estimate(given).calls == 0
    assert extractor.fingerprint == RecordedExtractor().fingerprint
    assert "fallback:extract" in extractor.get_prompts()
    with pytest.raises(ConfigurationError, match="fallback"):
        RecordedExtractor(fallback=EntityExtractor)


def test_scripted_answers_pass_their_own_check() -> None:
    record = extract(answer).record
    assert record["dropped"] == {"entities": 0, "relations": 0}
    assert record["relations"]


@needs_recording
def test_the_recorded_run_is_read_as_it_was_written() -> None:
    assert (len(run().chunks), len(run().communities), len(run().reports)) == (42, 122, 122)
    pairs = {frozenset((row["source"], row["target"])) for row in table("relationships")}
    assert (len(table("entities")), len(pairs)) == (529, 935)
    graph = statement_graph(run().chunks)
    assert sum(map(len, graph.links.values())) // 2 <= 935
    assert len(published_nodes(run())) == 42
    extractor = RecordedExtractor.from_published(run())
    found = run_steps(extractor.extract(published_nodes(run())))
    assert all(each.error is None for each in found)


def test_a_statement_has_no_marks_and_a_heading_that_is_a_name_is_none():
    text = "## Marl Head\n\n- Ada Hale kept Tern Rock.\n\n### Otto Lindqvist rowed\n"

    def spans(text):
        found = ("Marl Head", "Ada Hale", "Tern Rock", "Otto Lindqvist")
        return [(name, text.index(name), text.index(name) + len(name)) for name in found]

    entities, relations = cooccurrences(text, spans)
    assert {(entity.name, entity.description) for entity in entities} == {
        ("Marl Head", ""),
        ("Ada Hale", ""),
        ("Tern Rock", ""),
        ("Otto Lindqvist", "Otto Lindqvist rowed"),
    }
    assert [relation.description for relation in relations] == ["Ada Hale kept Tern Rock."]


def test_a_statement_keeps_its_code_in_which_no_names_are_looked_for() -> None:
    text = (
        "Call `store.open(Path('Otto'))` with Ada Byron. It is by Charles Babbage and Ada Byron, see https://x.example/a_b.\n\n"
        "| name | see |\n|---|---|\n| Tern Rock burned near Ada Hale | `Lamp.x` 3 4 |\n\n"
        "The png_set_gray() function is of Marl Head and Gull Reef."
    )
    record = run_steps(CooccurrenceExtractor().extract([TextNode(text=text)]))[0].record
    assert ["Ada Byron", "", "Call store.open(Path('Otto')) with Ada Byron."] in record["entities"]
    assert [row[:3] for row in record["relations"]] == [
        ["Ada Byron", "Charles Babbage", "It is by Charles Babbage and Ada Byron, see https://x.example/a_b."],
        ["Ada Hale", "Tern Rock", "Tern Rock burned near Ada Hale"],
        ["Gull Reef", "Marl Head", "The png_set_gray() function is of Marl Head and Gull Reef."],
    ]
