"""Extraction and its cache: nothing is paid for twice, not after a kill either, and nothing secret is stored."""

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import BaseNode
from tests.llm_server import Asked, LLMServer, Reply
from tests.processes import Worker
from tests.ragkit.extractors import QUICK, EntitiesAndTriples, answer, like, nodes

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.extraction.node_extractor import ExtractionContext, NodeExtractor, Record
from llama_index.ragkit.llm.cache import ExtractionCache, SQLiteKVStore
from llama_index.ragkit.llm.json.output import Pairs, parse_json, parse_pairs
from llama_index.ragkit.steps import Steps


def test_what_was_bought_is_not_bought_again(tmp_path: Path, drive: Any) -> None:
    with LLMServer(answer) as server:
        first = drive(
            EntitiesAndTriples(llm=like(server)).extract(nodes("a", "b"), cache=ExtractionCache(tmp_path / "c"))
        )
        again = drive(
            EntitiesAndTriples(llm=like(server)).extract(nodes("a", "b"), cache=ExtractionCache(tmp_path / "c"))
        )
        assert again == first
        assert [len(one.cache_keys) for one in first] == [2, 2]
        assert len(server.asked) == 4


def test_another_prompt_model_or_setting_is_another_purchase(drive: Any) -> None:
    cache = ExtractionCache()
    with LLMServer(answer) as server:

        def calls(extractor: NodeExtractor) -> int:
            before = len(server.asked)
            drive(extractor.extract(nodes("a"), cache=cache))
            return len(server.asked) - before

        assert calls(EntitiesAndTriples(llm=like(server))) == 2
        assert calls(EntitiesAndTriples(llm=like(server, api_key="another-key-1"), lowercase=True)) == 0
        assert calls(EntitiesAndTriples(llm=like(server, model="n"))) == 2
        assert calls(EntitiesAndTriples(llm=like(server, temperature=0.7))) == 2
        changed = EntitiesAndTriples(llm=like(server))
        changed.update_prompts({"triples": PromptTemplate("TRIPLES of: {text} given {entities}")})
        assert calls(changed) == 1


def test_nodes_with_the_same_text_are_paid_for_once_and_each_counts_as_a_user(drive: Any) -> None:
    cache = ExtractionCache()
    with LLMServer(lambda asked: Reply(str(answer(asked)), delay=0.02)) as server:
        extractor = EntitiesAndTriples(llm=like(server), num_workers=8)
        found = drive(extractor.extract(nodes("a", "a", "b", "a"), cache=cache, user_prefix="index:"))
        assert len(server.asked) == 4
        assert found[0].record == found[1].record == found[3].record
        drive(cache.release("index:n0", found[0].cache_keys))
        drive(cache.release("index:n1", found[1].cache_keys))
        drive(extractor.extract(nodes("a"), cache=cache, user_prefix="other:"))
        assert len(server.asked) == 4  # n3 still uses the entries
        drive(cache.release("index:n3", found[3].cache_keys))
        drive(cache.release("other:n0", found[0].cache_keys))
        drive(extractor.extract(nodes("a"), cache=cache))
        assert len(server.asked) == 6


def test_failures_are_not_cached(drive: Any) -> None:
    cache = ExtractionCache()
    with LLMServer(lambda asked: "nothing") as server:
        extractor = EntitiesAndTriples(llm=like(server), retry=QUICK)
        assert drive(extractor.extract(nodes("a"), cache=cache))[0].error
        server.script = answer
        assert drive(extractor.extract(nodes("a"), cache=cache))[0].record


def test_a_reply_that_the_parser_no_longer_accepts_is_bought_anew(drive: Any) -> None:
    class Strict(EntitiesAndTriples):
        def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
            def parse(text: str) -> Any:
                if "!" not in text:
                    raise ParseError("no exclamation mark")
                return parse_json(text)

            return {"entities": (yield from context.complete(self.prompt("entities"), parse=parse, text="a"))}

    cache = ExtractionCache()
    with LLMServer(answer) as server:
        drive(EntitiesAndTriples(llm=like(server)).extract(nodes("a"), cache=cache))
        server.script = lambda asked: '["new!"]'
        (found,) = drive(Strict(llm=like(server)).extract(nodes("a"), cache=cache))
        assert found.record == {"entities": ["new!"]}
        assert len(found.cache_keys) == 1
        (found,) = drive(Strict(llm=like(server)).extract(nodes("a"), cache=cache))
        assert len(server.asked) == 3


def test_another_sample_of_the_same_prompt_is_another_reply(drive: Any) -> None:
    class Twice(EntitiesAndTriples):
        def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
            ask = partial(context.complete, self.prompt("entities"), parse=parse_json, text="a")
            return {"samples": [(yield from ask(sample=0)), (yield from ask(sample=1)), (yield from ask(sample=0))]}

    with LLMServer(lambda asked: f"[{len(server.asked)}]") as server:
        (found,) = drive(Twice(llm=like(server)).extract(nodes("a"), cache=ExtractionCache()))
    assert found.record == {"samples": [[1], [2], [1]]}


def test_duplicate_keys_survive_the_cache(drive: Any) -> None:
    class MindMap(EntitiesAndTriples):
        def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
            tree = yield from context.complete(self.prompt("entities"), parse=parse_pairs, text="a")
            assert isinstance(tree, Pairs)
            return {"paths": [[key, value] for key, value in tree]}

    cache = ExtractionCache()
    with LLMServer(lambda asked: '{"place": "Tarn", "place": "Cove"}') as server:
        for _ in range(2):
            (found,) = drive(MindMap(llm=like(server)).extract(nodes("a"), cache=cache))
            assert found.record == {"paths": [["place", "Tarn"], ["place", "Cove"]]}
        assert len(server.asked) == 1


def test_no_key_and_no_address_is_stored(tmp_path: Path, drive: Any) -> None:
    with LLMServer(answer) as server:
        drive(EntitiesAndTriples(llm=like(server)).extract(nodes("a"), cache=ExtractionCache(tmp_path / "c.db")))
        port = server.url.split(":")[2]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"very-secret" not in stored
    assert port.encode() not in stored


KILLED = """
import sys
from llama_index.core.schema import TextNode
from llama_index.llms.openai_like import OpenAILike
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.steps import run_steps
from tests.ragkit.extractors import EntitiesAndTriples

llm = OpenAILike(model="m", api_base=sys.argv[1], api_key="none", is_chat_model=True, max_retries=0, timeout=20)
nodes = [TextNode(id_=f"n{i}", text=f"text-{i}") for i in range(24)]
found = run_steps(EntitiesAndTriples(llm=llm, num_workers=4).extract(nodes, cache=ExtractionCache(sys.argv[2])))
print(sum(one.record is not None for one in found))
"""


def test_a_killed_run_is_taken_up_again_and_pays_only_for_what_was_in_flight(tmp_path: Path) -> None:
    half_way = threading.Event()

    def slowly(asked: Asked) -> Reply:
        if len(server.answered) >= 20:
            half_way.set()
        return Reply(str(answer(asked)), delay=0.03)

    with LLMServer(slowly) as server:
        first = Worker(KILLED, server.url, str(tmp_path / "cache.db"))
        assert half_way.wait(60)
        first.kill()
        first.wait()
        time.sleep(0.2)  # what was in flight reaches its end on the server
        before = len(server.asked)
        assert 20 <= before < 48
        assert Worker(KILLED, server.url, str(tmp_path / "cache.db")).communicate().split() == ["24"]
        twice = [prompt for prompt in set(server.answered) if server.answered.count(prompt) > 1]
        assert len(set(server.answered)) == 48
        assert len(twice) <= 4
        assert len(server.asked) <= 48 + 4
    assert len(SQLiteKVStore(tmp_path / "cache.db").get_all("ragkit_extractions")) == 48
