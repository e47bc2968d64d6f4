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

# Of nodes, and of documents with their order: each takes seconds to start on Ray.
SOME = [case for case in READERS if case.name in ("hipporag", "sprag")]
SPLIT = {"chunk_size": 64, "chunk_overlap": 0}


@pytest.mark.slow
def test_indexes_take_what_extractors_read_on_ray(monkeypatch: pytest.MonkeyPatch):
    ray, ingestion = pytest.importorskip("ray"), pytest.importorskip("llama_index.ingestion.ray")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # other tests run beside it and would take the processor
    paths = os.pathsep.join([str(Path.cwd()), *sys.path])
    environment = {"env_vars": {"PYTHONPATH": paths}}
    try:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    except Exception as error:
        pytest.skip(f"Ray does not start here: {error}")
    split = SentenceSplitter(**SPLIT)
    try:
        read = {}
        for case in SOME:  # one step a pipeline: each waits for a processor of its own
            extractor = rule_extractor(case)
            given = {name: getattr(extractor, name) for name in extractor.model_fields_set}
            step = ingestion.RayTransformComponent(type(extractor), transform_kwargs=given)
            pipeline = ingestion.RayIngestionPipeline(transformations=[step])
            read[case.name] = pipeline.run(nodes=split(documents()))
        # The adapter 0.3.0 calls what core 0.14 has changed; without a docstore it does not come to that.
        step = ingestion.RayTransformComponent(SentenceSplitter, transform_kwargs=SPLIT)
        with pytest.raises(TypeError, match="effective_strategy"):
            ingestion.RayIngestionPipeline(transformations=[step], docstore=SimpleDocumentStore()).run(
                documents=documents()
            )
    finally:
        ray.shutdown()
    for case in SOME:
        index = built_from_nodes(case, read[case.name])
        assert ask(index) == ask(case.from_documents(documents(), transformations=[split]))
