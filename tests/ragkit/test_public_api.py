"""The public names of ragkit's root: a new one, or one that disappears, is a decision, and is made here."""

import inspect

import llama_index.ragkit as ragkit

PUBLIC = """
AutoRetriever Builder Change ChunkScores ChunkView CombinedExplanation CombinedRetriever DerivedIndex
DerivedPostprocessor DerivedRetriever DerivedStruct Estimate Explanation ExternalVectorStore Extraction ExtractionCache
ExtractionContext ExtractiveSummarizer Failure FailureWatch FallbackEvent Found HybridRetriever IndexContents
IndexKeywords IndexStorage LLMRetrieverKeywords LLMSummarizer LastQuery MatrixVectorStore NodeExtractor NodeFetch
PipelineStore PostprocessorKeywords Prices PromptHolder PromptTexts Query RagKitError Record Records Rejected Resources
RetrieverKeywords RetryPolicy SQLiteKVStore Selection SharedQuestion Snapshot Space SpaceRows Steps StoredChunks Stores
Structure StructuredExtractor Summarizer SummaryBuilder SummaryMethods SummaryWriter ViewContents Words all_failed
arun_steps as_bundle as_matrix call check_model complete content_id count_tokens deepened derived_node embed_texts fence
fetch_derived find_llm find_values fit_tokens fresh gather immediate known_llm load_storage_context match_nodes
node_from_record node_to_record nodes_of offload parse_model parse_pairs passages_of persist plain_answer plain_lines
plain_text query_matrix register_index report_fallback run_steps search_at_once sort_key strip_reasoning take_nodes
texts_of title_of to_plain whole_sentences with_example without_announcement
"""


def test_the_root_exports_these_names_and_no_others() -> None:
    assert sorted(ragkit.__all__) == PUBLIC.split()


def test_every_public_class_and_function_has_a_docstring() -> None:
    found = [(name, getattr(ragkit, name)) for name in ragkit.__all__]
    described = [(name, value) for name, value in found if inspect.isclass(value) or inspect.isfunction(value)]
    assert [name for name, value in described if not inspect.getdoc(value)] == []
