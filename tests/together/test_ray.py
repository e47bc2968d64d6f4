"""Our extractors on Ray, through LlamaIndex's ingestion package for it."""

import os
import sys
from pathlib import Path

import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from tests.cases import ask
from tests.together.plugins import rule_extractor
from tests.together.test_ingestion import READERS, built_from_nodes, documents

ray = pytest.importorskip("ray")
ingestion = pytest.importorskip("llama_index.ingestion.ray")
SPLIT = {"chunk_size": 64, "chunk_overlap": 0}


@pytest.mark.slow
def test_indexes_take_what_extractors_read_on_ray():
    paths = os.pathsep.join([str(Path.cwd()), *sys.path])
    environment = {"env_vars": {"PYTHONPATH": paths}}
    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    except Exception as error:
        pytest.skip(f"Ray does not start here: {error}")
    try:
        steps = [ingestion.RayTransformComponent(SentenceSplitter, transform_kwargs=SPLIT)]
        for case in READERS:  # one after another over the same nodes, each with its own record in them
            extractor = rule_extractor(case)
            given = {name: getattr(extractor, name) for name in extractor.model_fields_set}
            steps.append(ingestion.RayTransformComponent(type(extractor), transform_kwargs=given))
        nodes = ingestion.RayIngestionPipeline(transformations=steps).run(documents=documents())
        # The adapter 0.3.0 calls what core 0.14 has changed; without a docstore it does not come to that.
        with pytest.raises(TypeError, match="effective_strategy"):
            ingestion.RayIngestionPipeline(transformations=steps[:1], docstore=SimpleDocumentStore()).run(
                documents=documents()
            )
    finally:
        ray.shutdown()
    keys = {rule_extractor(case).record_key for case in READERS}
    for case in READERS:
        mine = rule_extractor(case).record_key
        own = []
        for node in nodes:
            node = node.model_copy(deep=True)
            for key in keys - {mine}:  # what other methods read is metadata like any other
                node.metadata.pop(key)
            own.append(node)
        index = built_from_nodes(case, own)
        assert ask(index) == ask(case.from_documents(documents(), transformations=[SentenceSplitter(**SPLIT)]))
