"""`paper("article")` of spRAG against what the article prints (its section "spRAG").

The article prints `get_document_context` and `get_best_segments`. Relevance values and parameters, which it
does not, are those of the published code at the time (docs/papers.md).
"""

import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from llama_index.core import Settings
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM
from llama_index.sprag import FirstGenerationContext, SpRAGIndex, SpRAGRetriever

MODEL = HashEmbedding(dim=200)
WORDS = ["loom", "silk", "weaver", "engine", "cards", "gears", "river", "bridge", "boats", "lamp", "oil", "keeper"]


def chunk(number: int, i: int, text: str) -> TextNode:
    return TextNode(
        id_=f"{number}x{i}",
        text=text,
        start_char_idx=1000 * i,
        metadata={"file_name": f"notes_{number}.txt"},
        excluded_embed_metadata_keys=["file_name"],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"D{number}")},
    )


def chunks(sizes: Sequence[int] = (30, 12, 4)) -> list[TextNode]:
    """Documents of so many chunks; those of one place in a document are about one thing."""
    chance = np.random.default_rng(5)
    found = []
    for number, size in enumerate(sizes):
        for i in range(size):
            near = [WORDS[(i // 4 + number) % 12], WORDS[(i // 4 + number + 1) % 12]]
            found.append(chunk(number, i, f"{' '.join(chance.choice([*WORDS, *6 * near], 14))} number{number}x{i}."))
    return found


def context(prompt: str) -> str:
    name = re.findall(r"<file-\w+[^>]*>\n(.*?)\n</file", prompt, re.DOTALL)[-1]
    return f"{name} is about a loom, a weaver, a lamp and oil."


def built(llm: ScriptedLLM, nodes: list[TextNode], **kwargs: object) -> SpRAGIndex:
    return SpRAGIndex(nodes, llm=llm, embed_model=MODEL, **{**SpRAGIndex.paper("article"), **kwargs})


# -- AutoContext ------------------------------------------------------------------------------------


def test_a_model_reads_the_title_a_guidance_and_the_first_6000_tokens():
    """`get_document_context`: max_content_tokens = 6000, document_title, auto_context_guidance, truncation_message."""
    llm = ScriptedLLM(lambda prompt: "This is about a word of numbers.")
    long = [chunk(1, i, "A word of numbers. " * 100) for i in range(20)]
    short = chunk(0, 0, "One word and a number.")
    built(llm, [short, *long], extractor=FirstGenerationContext(guidance="Dates matter."))
    assert len(llm.prompts) == 2
    one, other = sorted(llm.prompts, key=len)
    assert "notes_0.txt" in one
    assert short.text in one
    assert "first 6000 tokens" not in one
    assert "notes_1.txt" in other
    assert "first 6000 tokens" in other
    assert all("Dates matter." in prompt for prompt in llm.prompts)
    assert len(Settings.tokenizer(other)) == pytest.approx(6000, rel=0.05)


def test_summary_and_file_name_stand_before_every_chunk():
    """ "adds it, along with the filename, to the start of each chunk" """
    llm = ScriptedLLM(context)
    MODEL.texts.clear()
    index = built(llm, chunks())
    assert len(llm.prompts) == 3
    embedded = [text for text in MODEL.texts if "number" in text]
    assert len(embedded) == len(index.docstore.docs) == 46
    for text in embedded:
        number = re.findall(r"number(\d)x", text)[0]
        header, _ = text.split("\n\n", 1)
        assert f"notes_{number}.txt" in header
        assert f"notes_{number}.txt is about a loom, a weaver, a lamp and oil." in header


# -- relevant segment extraction --------------------------------------------------------------------


def get_best_segments(
    all_relevance_values: list[list[float]],
    document_splits: list[int],
    max_length: int,
    overall_max_length: int,
    minimum_value: float,
) -> list[tuple[int, int]]:
    """The function that the article prints."""
    best_segments: list[tuple[int, int]] = []
    total_length = rv_index = 0
    bad: list[int] = []
    while total_length < overall_max_length:
        if rv_index >= len(all_relevance_values):
            rv_index = 0
        if len(bad) >= len(all_relevance_values):
            break
        if rv_index in bad:
            rv_index += 1
            continue
        values = all_relevance_values[rv_index]
        best_segment, best_value = None, -1000.0
        for start in range(len(values)):
            if values[start] < 0:
                continue
            for end in range(start + 1, min(start + max_length + 1, len(values) + 1)):
                if values[end - 1] < 0:
                    continue
                if any(start < seg_end and end > seg_start for seg_start, seg_end in best_segments):
                    continue
                if any(start < split < end for split in document_splits):
                    continue
                if total_length + end - start > overall_max_length:
                    continue
                value = sum(values[start:end])
                if value > best_value:
                    best_value, best_segment = value, (start, end)
        if best_segment is None or best_value < minimum_value:
            bad.append(rv_index)
            rv_index += 1
            continue
        best_segments.append(best_segment)
        total_length += best_segment[1] - best_segment[0]
        rv_index += 1
    return best_segments


@pytest.mark.parametrize("question", ["loom loom silk", "engine cards gears", "bridge of boats", "keeper number1x3"])
def test_the_segments_are_those_that_the_article_s_function_chooses(question: str):
    """`get_best_segments`, with 10, 20 and 0.7, and values e^(-rank / 20) - 0.2 of the chunks of the best documents."""
    index = built(ScriptedLLM(context), chunks())
    text_of = {node_id: node.get_content() for node_id, node in index.docstore.docs.items()}
    place = {node_id: tuple(map(int, node_id.split("x"))) for node_id in text_of}
    vector = np.array(MODEL.vector(question))
    near = {i: float(vector @ MODEL.vector(f"{index.header_of(i)}\n\n{text}")) for i, text in text_of.items()}
    ranked = sorted(near, key=lambda i: -near[i])
    value = {i: math.exp(-rank / 20) - 0.2 for rank, i in enumerate(ranked)}
    shown = list(dict.fromkeys(place[i][0] for i in ranked[:7]))
    laid = sorted((i for i in place if place[i][0] in shown), key=lambda i: (shown.index(place[i][0]), place[i]))
    splits = [k for k in range(1, len(laid)) if place[laid[k]][0] != place[laid[k - 1]][0]]
    chosen = get_best_segments([[value[i] for i in laid]], splits, 10, 20, 0.7)
    assert len(chosen) > 1
    wanted = {
        tuple(f"number{i}" for i in laid[start:end]): sum(value[i] for i in laid[start:end]) for start, end in chosen
    }
    found = index.as_retriever(**SpRAGRetriever.paper("article")).retrieve(question)
    segments = [tuple(re.findall(r"number\d+x\d+", result.node.get_content())) for result in found]
    assert segments == sorted(wanted, key=lambda name: -wanted[name])


def test_as_many_segments_as_there_are_chunks_to_fill_are_returned():
    """`while total_length < overall_max_length`: nothing else bounds their number; "find_all" has 200 chunks."""
    index = built(ScriptedLLM(context), chunks((1,) * 40))
    assert len(index.as_retriever(**SpRAGRetriever.paper("find_all")).retrieve("loom loom silk")) == 40
