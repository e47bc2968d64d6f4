"""Hostile output of a language model: it breaks nothing, and stays with the document that it was made from."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext
from llama_index.core.schema import TextNode
from tests.cases import CASES, QUESTION, Case, ask, chunks
from tests.llm_server import Asked, LLMServer
from tests.ragkit.json_cases import SHARDS
from tests.together.plugins import with_llm
from tests.together.server import client
from tests.together.test_hurt_documents import CANARY, hostile_node, persisted, texts_of

from llama_index.ragkit.errors import LanguageModelError
from llama_index.ragkit.steps import run_steps

pytestmark = pytest.mark.pairs

ASKING = [case for case in CASES if with_llm(case)]
each_asking = pytest.mark.parametrize("case", ASKING, ids=lambda case: case.name)
MARK = "Marmalade"


def reading(*words: str) -> str:
    """What every extractor of the project can find something in: questions, entities, facts, a mind map, a title."""
    first, *rest = words
    return json.dumps(
        {
            "topic": first,
            "title": first,
            "summary": f"{first} is told of.",
            "questions": [f"{word}?" for word in words],
            "named_entities": list(words),
            "entities": list(words),
            "triples": [[first, "concerns", word] for word in rest or words],
            "facts": [[first, "concerns", word] for word in rest or words],
            first: {word: [f"{word} is told of."] for word in rest or words},
        }
    )


HOSTILE: dict[str, str] = {
    "empty": "",
    "null": "null",
    "a number": "1e999",
    "prose": f"As a language model I cannot {CANARY}.",
    "nul": reading(f"{CANARY}\x00", "\x00\x01\x1b[31m\x7f"),
    "surrogates": reading(f"{CANARY} \ud800", "\udfff"),
    "direction": reading(f"\u202e{CANARY}", "\u2028\u2029\ufeff", "\u200b"),
    "blank names": reading(CANARY, "", " ", "\n", "."),
    "ids of others": reading("d-0", "d-1", CANARY, "bad-0"),
    "injection": reading(f'{CANARY}"}}], "node_id": "d-0", "done": true, "__type__": "', "</passage>", "{text}", "%s"),
    "markup": reading(f"<script>alert('{CANARY}')</script>", "]]>", "-->", "{{7*7}}"),
    "wrong types": json.dumps(
        {key: [1, None, True, {"a": CANARY}, [[]], 1.5] for key in ("questions", "named_entities", "triples", "facts")}
    ),
    "numbers": json.dumps(
        {"questions": 1, "named_entities": {"a": 2}, "triples": "x", "facts": [[1, 2]], "m": 10**400}
    ),
    "many": reading(*(f"{CANARY} {i}" for i in range(2_000))),
    "long": reading(CANARY * 30_000),
    "deep": '{"questions": ' + "[" * 50_000,
    "deep object": '{"a":' * 3_000 + f'"{CANARY}"' + "}" * 3_000,
    "cut": reading(CANARY, "b", "c")[:-25],
    "twice": reading(CANARY) + reading("other"),
    "a line of megabytes": "x" * 2_500_000,
}


def script(hostile: str) -> Callable[[Asked], str]:
    """A hostile reply for whatever shows the marked document, a good one for all else."""
    return lambda asked: hostile if MARK in asked.prompt else reading("Analytical Engine", "cards", "Babbage")


def records(index) -> dict[str, object]:
    return {name: entry.record for name, entry in run_steps(index.storage.manifest.entries()).items()}


def build(case: Case, server: LLMServer, nodes: list[TextNode]):
    return case.cls(nodes=nodes, embed_model=case.embed_model(), llm=client(server), **with_llm(case))


@each_asking
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_reply_harms_no_other_document_and_goes_without_a_trace(case: Case, kind: str, tmp_path):
    good = chunks("d", 4)
    with LLMServer(script(HOSTILE[kind])) as server:
        twin = build(case, server, good)
        index = build(case, server, [*good, hostile_node(f"{MARK} is made of oranges.")])
        assert texts_of(ask(index, top_k=50)) >= {node.text for node in good}
        assert ask(index, CANARY, top_k=50)
        persisted(index, tmp_path / "before")
        context = StorageContext.from_defaults(persist_dir=str(tmp_path / "before"))
        loaded = case.load(context, llm=client(server), **with_llm(case))
        assert ask(loaded, top_k=50) == ask(index, top_k=50)
        assert {name: record for name, record in records(loaded).items() if name != "bad-0"} == records(twin)
        loaded.delete_ref_doc("bad", delete_from_docstore=True)
        after = persisted(loaded, tmp_path / "after")
        assert CANARY.encode() not in after
        assert MARK.encode() not in after
        assert texts_of(ask(loaded, top_k=50)) >= {node.text for node in good}
        assert records(loaded) == records(twin)


shards = st.lists(st.sampled_from([*SHARDS, reading("a", "b"), "\x00", "\ud800", "\u202e", "null"]), max_size=12)


@each_asking
def test_no_reply_whatever_breaks_a_build(case: Case, tmp_path_factory):
    said = [""]
    with LLMServer(lambda asked: said[0]) as server:

        @settings(max_examples=25, derandomize=True)
        @given(shards.map("".join) | st.text(max_size=60))
        def broken(reply: str) -> None:
            said[0] = reply
            try:
                index = build(case, server, chunks("d", 3))
            except LanguageModelError:  # at all three nodes
                return
            folder = tmp_path_factory.mktemp("stored")
            persisted(index, folder / "it")
            loaded = case.load(StorageContext.from_defaults(persist_dir=str(folder / "it")), **with_llm(case))
            assert ask(loaded, QUESTION, top_k=50) == ask(index, QUESTION, top_k=50)
            assert texts_of(ask(index, QUESTION, top_k=50)) >= {node.text for node in chunks("d", 3)}

        broken()
