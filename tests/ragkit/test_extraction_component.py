"""Extractors as LlamaIndex components: prompts, fingerprints, pipelines, pickles."""

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import Document, MetadataMode
from tests.llm_server import LLMServer
from tests.ragkit.extractors import QUICK, EntitiesAndTriples, Question, Triple, WordCounter, answer, like, nodes

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.structured import StructuredExtractor
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.steps import run_steps


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
        ({"entities": "List {text}"}, r"entities.*PromptTemplate.*, not 'List \{text\}'"),
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


def test_misspelt_parameters_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no parameter 'num_worker'"):
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
        extractor = StructuredExtractor(output_cls=Question, llm=like(server), num_workers=2)
        pipeline = IngestionPipeline(transformations=[TokenTextSplitter(chunk_size=40, chunk_overlap=0), extractor])
        documents = [Document(text=text, metadata={"title": "t"}), Document(text="Another.")]
        if drive is run_steps:
            made = pipeline.run(documents=documents, show_progress=False)
        else:
            made = asyncio.run(pipeline.arun(documents=documents))
    assert len(made) > 2
    key = extractor.record_key
    plain = TokenTextSplitter(chunk_size=40, chunk_overlap=0)(documents)
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
