"""The public names of ragkit's root: a new one, or one that disappears, is a decision, and is made here."""

import inspect

import llama_index.ragkit as ragkit

PUBLIC = """
AutoRetriever Builder Change CombinedExplanation CombinedRetriever DerivedIndex DerivedPostprocessor DerivedRetriever
DerivedStruct Estimate Explanation Extraction ExtractionCache ExtractionContext ExtractiveSummarizer Failure
FallbackEvent Found HybridRetriever IndexKeywords LLMRetrieverKeywords LLMSummarizer LastQuery MatrixVectorStore
NodeExtractor PipelineStore PostprocessorKeywords Prices Query RagKitError Records RetrieverKeywords RetryPolicy
SQLiteKVStore Selection Snapshot SpaceRows Steps StructuredExtractor Summarizer content_id load_storage_context offload
persist register_index
"""


def test_the_root_exports_these_names_and_no_others() -> None:
    assert sorted(ragkit.__all__) == PUBLIC.split()


def test_every_public_class_and_function_has_a_docstring() -> None:
    found = [(name, getattr(ragkit, name)) for name in ragkit.__all__]
    described = [(name, value) for name, value in found if inspect.isclass(value) or inspect.isfunction(value)]
    assert [name for name, value in described if not inspect.getdoc(value)] == []
