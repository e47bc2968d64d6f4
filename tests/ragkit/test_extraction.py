"""The extraction mechanism: many nodes at once, failures recorded, nothing paid for twice, usable in a pipeline."""

import asyncio
import logging
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from llama_index.core import Settings
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.schema import BaseNode, Document, ImageNode, MetadataMode, TextNode
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field, ValidationError
from tests.llm_server import Asked, LLMServer, Reply

from llama_index.ragkit.cache import ExtractionCache, SQLiteKVStore
from llama_index.ragkit.driver import Steps, arun_steps, offload, run_steps
from llama_index.ragkit.errors import ConfigurationError, ExtractionError, ParseError, StorageError
from llama_index.ragkit.extraction import Estimate, ExtractionContext, NodeExtractor, Record
from llama_index.ragkit.json_output import Pairs, parse_json, parse_pairs
from llama_index.ragkit.llm_calls import RetryPolicy
from llama_index.ragkit.structured import StructuredExtractor

QUICK = RetryPolicy(max_attempts=2, min_wait=0.0)


class Question(BaseModel):
    """Questions that the text answers."""

    questions: list[str] = Field(min_length=1)


class EntitiesAndTriples(NodeExtractor):
    """Two calls, the second of which needs what the first gave."""

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {
        "entities": PromptTemplate("ENTITIES of: {text}"),
        "triples": PromptTemplate("TRIPLES of: {text} with {entities}"),
    }
    lowercase: bool = False

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        entities = yield from context.complete(self.prompt("entities"), parse=parse_json, text=text)
        triples = yield from context.complete(self.prompt("triples"), parse=parse_json, text=text, entities=entities)
        return {"entities": [e.lower() for e in entities] if self.lowercase else entities, "triples": triples}


class WordCounter(NodeExtractor):
    """The kind that needs no LLM."""

    needs_llm: ClassVar[bool] = False

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        return (yield from offload(lambda: {"words": len(text.split())}))


def nodes(*texts: str) -> list[TextNode]:
    return [TextNode(id_=f"n{i}", text=text) for i, text in enumerate(texts)]


def like(server: LLMServer, **kwargs: Any) -> OpenAILike:
    settings = {"model": "m", "api_key": "sk-very-secret-0123456789", "is_chat_model": True, **kwargs}
    return OpenAILike(api_base=server.url, max_retries=0, timeout=5, **settings)


def about(asked: Asked) -> str:
    """The text that a prompt is about."""
    found = re.search(r"of: (\S+)", asked.prompt)
    return found[1] if found else ""


def answer(asked: Asked) -> Reply | str:
    word = about(asked)
    if asked.prompt.startswith("ENTITIES"):
        return f'["{word.upper()}"]'
    return f'[["{word}", "is", "{word}"]]'


@pytest.fixture(params=["sync", "async"])
def drive(request: pytest.FixtureRequest) -> Callable[[Steps[Any]], Any]:
    return run_steps if request.param == "sync" else lambda steps: asyncio.run(arun_steps(steps))


# -- records, failures ---------------------------------------------------------------------------------


def test_every_node_gets_its_own_record_in_order(drive: Any) -> None:
    with LLMServer(lambda asked: Reply(str(answer(asked)), delay=0.05 if about(asked) == "a" else 0.0)) as server:
        extractor = EntitiesAndTriples(llm=like(server), num_workers=3)
        found = drive(extractor.extract(nodes("a", "b", "c")))
    assert [one.node_id for one in found] == ["n0", "n1", "n2"]
    assert [one.record["entities"] for one in found] == [["A"], ["B"], ["C"]]
    assert found[1].record["triples"] == [["b", "is", "b"]]
    assert [(one.error, one.cache_keys) for one in found] == [(None, [])] * 3
    assert "TRIPLES of: b with ['B']" in server.answered


def test_a_failed_node_is_recorded_with_its_reason_and_the_others_go_on(
    drive: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(asked: Asked) -> Reply | str:
        if about(asked) == "bad" and asked.prompt.startswith("TRIPLES"):
            return "I would rather not."
        return answer(asked)

    with LLMServer(broken) as server, caplog.at_level(logging.WARNING, "llama_index.ragkit"):
        cache = ExtractionCache()
        found = drive(EntitiesAndTriples(llm=like(server), retry=QUICK).extract(nodes("a", "bad", "c"), cache=cache))
    assert [one.record is None for one in found] == [False, True, False]
    assert "2 of 2 attempts" in found[1].error
    assert "rather not" in found[1].error
    assert len(found[1].cache_keys) == 1  # its first call succeeded, and is to be released too
    assert "EntitiesAndTriples failed at 1 of 3 nodes" in caplog.text
    assert found[1].error in caplog.text


def test_an_error_in_the_extractor_itself_is_a_failure_too(drive: Any) -> None:
    class Buggy(WordCounter):
        def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
            yield from offload(int)
            raise KeyError("oops")

    (found,) = drive(Buggy().extract(nodes("a")))
    assert found.error == "KeyError: 'oops'"
    assert found.record is None


def test_on_error_raise_starts_nothing_more_and_keeps_what_was_running(drive: Any) -> None:
    ready = threading.Barrier(2)

    def broken(asked: Asked) -> Reply | str:
        if about(asked) in ("a", "bad") and asked.prompt.startswith("ENTITIES"):
            ready.wait(5)  # both are running when one fails
        return Reply("refused", status=400) if about(asked) == "bad" else answer(asked)

    cache = ExtractionCache()
    with LLMServer(broken) as server:
        extractor = EntitiesAndTriples(llm=like(server), num_workers=2)
        with pytest.raises(ExtractionError, match="refused"):
            drive(extractor.extract(nodes("a", "bad", *"cdefghij"), cache=cache, on_error="raise"))
        assert {about(asked) for asked in server.asked} <= {"a", "bad", "c"}
        server.script = answer
        asked_before = len(server.asked)
        drive(extractor.extract(nodes("a"), cache=cache))
        assert len(server.asked) == asked_before  # what was running was kept


@pytest.mark.parametrize("error", [ConfigurationError("wrong"), StorageError("disk full")])
def test_what_is_no_fault_of_a_node_ends_the_run(error: Exception, drive: Any) -> None:
    class Stops(WordCounter):
        def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
            yield from offload(int)
            raise error

    with pytest.raises(type(error)):
        drive(Stops().extract(nodes("a", "b")))


def test_texts_without_a_word_cost_no_call(drive: Any) -> None:
    with LLMServer(answer) as server:
        extractor = EntitiesAndTriples(llm=like(server))
        found = drive(extractor.extract([*nodes("", " \n\t"), ImageNode(id_="image", image_url="x.png")]))
        assert [(one.record, one.error) for one in found] == [({}, None)] * 3
        assert server.asked == []
        assert drive(extractor.extract([])) == []


def test_rules_need_neither_model_nor_cache(drive: Any) -> None:
    Settings.llm = None  # a resolved default would be a MockLLM; nothing may ask for it
    found = drive(WordCounter().extract(nodes("one two", "three"), llm=None))
    assert [one.record for one in found] == [{"words": 2}, {"words": 1}]
    assert WordCounter().estimate(nodes("one two")) == Estimate(0, 0, 0)


def test_a_wrong_on_error_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'record' or 'raise', not 'ignore'"):
        run_steps(WordCounter().extract(nodes("a"), on_error="ignore"))


def test_non_latin_and_odd_texts_pass_through_unharmed(drive: Any) -> None:
    texts = ["日本語。", "עברית", "{braces} {text} {{x}}", 'quote " back \\ slash', "a\x00b", "🎉" * 10]
    with LLMServer(lambda asked: '{"questions": ["q"]}') as server:
        extractor = StructuredExtractor(output_cls=Question, llm=like(server))
        assert all(one.record == {"questions": ["q"]} for one in drive(extractor.extract(nodes(*texts))))
        for text in texts:
            assert any(f">\n{text}\n</text" in asked.prompt for asked in server.asked)


# -- the window ----------------------------------------------------------------------------------------


def test_as_many_calls_run_at_once_as_there_are_workers_and_no_more(drive: Any) -> None:
    with LLMServer(lambda asked: Reply('{"questions": ["q"]}', delay=0.05)) as server:
        extractor = StructuredExtractor(output_cls=Question, llm=like(server), num_workers=8)
        drive(extractor.extract(nodes(*(f"text {i}" for i in range(40)))))
        assert server.most_at_once == 8
        drive(extractor.extract(nodes(*(f"text {i}" for i in range(4))), num_workers=1))
    assert len(server.asked) == 44


def test_the_event_loop_stays_free_during_asynchronous_extraction(tmp_path: Path) -> None:
    late: list[float] = []

    async def heartbeat() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            late.append(time.perf_counter() - before)

    async def main(server: LLMServer) -> None:
        beat = asyncio.ensure_future(heartbeat())
        extractor = StructuredExtractor(output_cls=Question, llm=like(server), num_workers=8)
        await arun_steps(extractor.extract(nodes(*map(str, range(40))), cache=ExtractionCache(tmp_path / "c.db")))
        beat.cancel()

    with LLMServer(lambda asked: Reply('{"questions": ["q"]}', delay=0.2)) as server:
        asyncio.run(main(server))
    assert len(late) > 10  # it would be 5, one for each round of calls, if a call blocked


def test_an_asynchronous_extraction_can_be_cancelled_and_taken_up_again(tmp_path: Path) -> None:
    cache = ExtractionCache(tmp_path / "cache.db")
    many = nodes(*(f"text {i}" for i in range(12)))

    with LLMServer(lambda asked: Reply('{"questions": ["q"]}', delay=0.05)) as server:
        extractor = StructuredExtractor(output_cls=Question, llm=like(server, reuse_client=False), num_workers=2)

        async def main() -> None:
            task = asyncio.ensure_future(arun_steps(extractor.extract(many, cache=cache)))
            while len(server.answered) < 4:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        time.sleep(0.2)
        assert len(server.asked) < 12
        found = run_steps(extractor.extract(many, cache=cache))
        assert all(one.record for one in found)
        assert len(server.asked) <= 12 + 2  # two were in flight


# -- the cache -----------------------------------------------------------------------------------------


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
from llama_index.ragkit.cache import ExtractionCache
from llama_index.ragkit.driver import run_steps
from tests.ragkit.test_extraction import EntitiesAndTriples

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
        command = [sys.executable, "-c", KILLED, server.url, str(tmp_path / "cache.db")]
        root = Path(__file__).parents[2]
        first = subprocess.Popen(command, cwd=root)
        assert half_way.wait(60)
        first.send_signal(signal.SIGKILL)
        first.wait()
        time.sleep(0.2)  # what was in flight reaches its end on the server
        before = len(server.asked)
        assert 20 <= before < 48
        second = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
        assert second.stdout.split() == ["24"]
        twice = [prompt for prompt in set(server.answered) if server.answered.count(prompt) > 1]
        assert len(set(server.answered)) == 48
        assert len(twice) <= 4
        assert len(server.asked) <= 48 + 4
    assert len(SQLiteKVStore(tmp_path / "cache.db").get_all("ragkit_extractions")) == 48


# -- prompts, fingerprints, parameters -----------------------------------------------------------------


def test_prompts_are_seen_and_replaced_as_everywhere_in_llama_index(drive: Any) -> None:
    extractor = EntitiesAndTriples(prompts={"triples": PromptTemplate("TRIPLES of: {text}")})
    assert set(extractor.get_prompts()) == {"entities", "triples"}
    extractor.update_prompts({"entities": PromptTemplate("ENTITIES please of: {text}")})
    with LLMServer(answer) as server:
        drive(extractor.extract(nodes("a"), llm=like(server)))
        assert server.answered == ["ENTITIES please of: a", "TRIPLES of: a"]
    assert EntitiesAndTriples.default_prompts["entities"].get_template() == "ENTITIES of: {text}"
    assert EntitiesAndTriples().get_prompts()["entities"].get_template() == "ENTITIES of: {text}"


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ({"entity": PromptTemplate("{text}")}, r"no prompt 'entity'; it has \['entities', 'triples'\]"),
        ({"entities": PromptTemplate("List {context_str}")}, r"none of the variables \{text\}, only \['context_str'\]"),
    ],
)
def test_prompts_that_cannot_work_are_refused(prompts: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        EntitiesAndTriples(prompts=prompts)
    with pytest.raises(ConfigurationError, match=message):
        EntitiesAndTriples().update_prompts(prompts)


def test_a_prompt_may_map_the_variables_to_its_own(drive: Any) -> None:
    own = PromptTemplate("ENTITIES of: {context_str}", template_var_mappings={"text": "context_str"})
    with LLMServer(answer) as server:
        drive(EntitiesAndTriples(prompts={"entities": own}).extract(nodes("a"), llm=like(server)))
        assert server.answered[0] == "ENTITIES of: a"


def test_fingerprints_tell_what_would_mix_and_nothing_else() -> None:
    plain = EntitiesAndTriples().fingerprint
    assert plain["class"] == "EntitiesAndTriples"
    assert plain["lowercase"] == "false"
    assert all(isinstance(value, str) for value in plain.values())
    other_prompt = EntitiesAndTriples(prompts={"entities": PromptTemplate("ENTITIES in {text}")})
    for other in (EntitiesAndTriples(lowercase=True), other_prompt, WordCounter()):
        assert other.fingerprint != plain
    assert EntitiesAndTriples(llm=MockLLM(), num_workers=9, cache=None, retry=QUICK).fingerprint == plain
    assert StructuredExtractor(output_cls=Question).fingerprint != StructuredExtractor(output_cls=Triple).fingerprint


class Triple(BaseModel):
    subject: str


def test_misspelt_parameters_are_refused() -> None:
    with pytest.raises(ValidationError, match="num_worker"):
        EntitiesAndTriples(num_worker=3)


def test_the_serialised_form_names_prompts_and_model_and_no_key() -> None:
    with LLMServer(answer) as server:
        extractor = EntitiesAndTriples(llm=like(server), cache=ExtractionCache(), lowercase=True)
        text = extractor.to_json()
        assert "secret" not in text
        assert server.url not in text
        assert extractor.fingerprint["prompt triples"] in text
        assert text != EntitiesAndTriples(llm=like(server, model="n"), lowercase=True).to_json()
    again = EntitiesAndTriples.from_json(text)
    assert again.fingerprint == extractor.fingerprint
    StructuredExtractor(output_cls=Question).to_json()


def test_an_estimate_counts_calls_and_tokens_before_anything_is_asked() -> None:
    extractor = EntitiesAndTriples()
    one = extractor.estimate(nodes("some words here"))
    assert one.calls == 2
    assert one.completion_tokens == 2 * EntitiesAndTriples.completion_tokens
    assert one.prompt_tokens > 2 * 3
    both = extractor.estimate(nodes("some words here", "", "some words here"))
    assert both == one + one == sum([one, one])
    with_system = extractor.estimate(nodes("some words here"), MockLLM(system_prompt="Be brief."))
    assert with_system.prompt_tokens > one.prompt_tokens


# -- as a transformation -------------------------------------------------------------------------------


def test_it_works_in_an_ingestion_pipeline_and_an_index_can_take_the_record(drive: Any) -> None:
    text = "One two three. " * 30
    with LLMServer(lambda asked: '{"questions": ["q"]}') as server:
        extractor = StructuredExtractor(output_cls=Question, llm=like(server, reuse_client=False), num_workers=2)
        pipeline = IngestionPipeline(transformations=[SentenceSplitter(chunk_size=40, chunk_overlap=0), extractor])
        documents = [Document(text=text, metadata={"title": "t"}), Document(text="Another.")]
        if drive is run_steps:
            made = pipeline.run(documents=documents, show_progress=False)
        else:
            made = asyncio.run(pipeline.arun(documents=documents))
    assert len(made) > 2
    key = extractor.record_key
    plain = SentenceSplitter(chunk_size=40, chunk_overlap=0)(documents)
    for node, bare in zip(made, plain, strict=True):
        assert node.metadata[key] == {"questions": ["q"]}
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert node.get_content(metadata_mode=mode) == bare.get_content(metadata_mode=mode)
        assert extractor.take_record(node) == {"questions": ["q"]}
        assert extractor.take_record(node) is None
        assert node.hash == bare.hash
        assert node.excluded_embed_metadata_keys == bare.excluded_embed_metadata_keys
        assert node.excluded_llm_metadata_keys == bare.excluded_llm_metadata_keys


def test_a_failed_node_carries_no_record_not_even_an_old_one() -> None:
    with LLMServer(lambda asked: '{"questions": ["q"]}') as server:
        extractor = StructuredExtractor(output_cls=Question, llm=like(server), retry=QUICK)
        (node,) = extractor(nodes("a"))
        server.script = lambda asked: "no"
        extractor([node])
        assert extractor.record_key not in node.metadata


def test_keywords_that_a_pipeline_passes_to_all_its_steps_are_accepted() -> None:
    assert WordCounter()(nodes("a b"), show_progress=True, embed_model=None, anything=1)[0].metadata


def test_nodes_of_one_document_share_nothing_through_the_record() -> None:
    shared: list[str] = []
    one, two = nodes("a", "b c")
    one.excluded_llm_metadata_keys = two.excluded_llm_metadata_keys = shared
    one.metadata = two.metadata = {"title": "t"}
    WordCounter()([one, two])
    assert one.metadata[WordCounter().record_key] == {"words": 1}
    assert two.metadata[WordCounter().record_key] == {"words": 2}
    assert shared == []


def test_an_extractor_travels_to_another_process(tmp_path: Path) -> None:
    prompts = {"entities": PromptTemplate("ENTITIES now of: {text}")}
    with LLMServer(answer) as server:
        extractor = EntitiesAndTriples(llm=like(server), cache=str(tmp_path / "c.db"), prompts=prompts, lowercase=True)
        copy = pickle.loads(pickle.dumps(extractor))
        assert copy.fingerprint == extractor.fingerprint
        assert copy(nodes("a"))[0].metadata[copy.record_key]["entities"] == ["a"]
        extractor(nodes("a"))
        assert len(server.asked) == 2  # over the same file
