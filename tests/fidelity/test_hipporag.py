"""`paper()` of HippoRAG against a slow copy written from the paper (arXiv 2405.14831).

The published code has a copy of its own (tests/hipporag/published.py). Where the paper leaves something open, the copy
takes the reading of docs/hipporag/differences.md: edges weigh as many facts as join two phrases, plus their cosine
where they are synonyms.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index.hipporag import (
    Demonstration,
    HippoRAGIndex,
    HippoRAGRetriever,
    IRCoTRetriever,
    LateInteractionRetriever,
    OpenIEExtractor,
)
from llama_index.hipporag.prompts import PUBLISHED_PROMPTS
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import HashEmbedding, ScriptedLLM

MODEL = HashEmbedding(dim=160)
PASSAGES = [
    "Ada Byron met Charles Babbage in London.",
    "Charles Babbage designed Analytical Engine. Charles Babbage hated organ grinders.",
    "Analytical Engine used punched cards.",
    "Punched cards came from Jacquard Loom.",
    "Jacquard Loom wove silk in Lyon.",
    "Lyon lies on Rhone. Rhone meets Saone in Lyon.",
    "The Analytical Engine of Charles filled London.",
    "Silk came from Lyon.",
]
VERB = re.compile(r" (met|designed|hated|used|came from|wove|lies on|meets|filled) ")


def triples(passage: str) -> list[list[str]]:
    """Head, verb and tail of each sentence."""
    parts = (VERB.split(sentence.strip(" ."), maxsplit=1) for sentence in passage.split(". "))
    return [list(part) for part in parts if len(part) == 3]


def fenced(prompt: str, name: str) -> str:
    return re.findall(rf"<{name}-\w+[^>]*>\n(.*?)\n</{name}", prompt, re.DOTALL)[-1]


def names(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*", text)))


def reply(prompt: str) -> str:
    if "<question-" in prompt:
        return json.dumps({"named_entities": names(fenced(prompt, "question").split(" ", 1)[1])})
    if "<entities-" in prompt:
        return json.dumps({"triples": triples(fenced(prompt, "text"))})
    return json.dumps({"named_entities": names(fenced(prompt, "text"))})


def built(llm: ScriptedLLM | None = None, **kwargs: Any) -> HippoRAGIndex:
    nodes = [TextNode(id_=f"p{i}", text=text) for i, text in enumerate(PASSAGES)]
    keywords = {**HippoRAGIndex.paper(), "extractor": OpenIEExtractor.paper(), **kwargs}
    return HippoRAGIndex(nodes, llm=llm or ScriptedLLM(reply), embed_model=MODEL, **keywords)


# -- offline indexing (section 2.3) -----------------------------------------------------------------


def test_named_entities_come_first_and_go_into_the_prompt_for_triples():
    """Section 2.3: "We then add the named entities to the OpenIE prompt", by "1-shot prompting"; appendix I."""
    llm = ScriptedLLM(reply)
    built(llm)
    second = [prompt for prompt in llm.prompts if "<entities-" in prompt]
    assert len(second) == len(PASSAGES)
    assert len(llm.prompts) == 2 * len(PASSAGES)
    for passage in PASSAGES:
        (prompt,) = (prompt for prompt in second if fenced(prompt, "text") == passage)
        assert json.loads(fenced(prompt, "entities")) == {"named_entities": names(passage)}
    for prompt in PUBLISHED_PROMPTS.values():
        assert [message.role.value for message in prompt.message_templates] == ["system", "user", "assistant", "user"]


def processed(phrase: str) -> str:
    return re.sub("[^A-Za-z0-9 ]", " ", phrase.lower()).strip()


def embedded(text: str) -> np.ndarray:
    return np.array(MODEL.vector(text))


def facts() -> list[list[tuple[str, str]]]:
    """Head and tail of each triple of each passage."""
    return [[(processed(head), processed(tail)) for head, _, tail in triples(text)] for text in PASSAGES]


PHRASES = sorted({end for passage in facts() for fact in passage for end in fact})  # the nodes N


def counts() -> np.ndarray:
    """The matrix P: how often each noun phrase of the KG is in a passage, as its triples have it."""
    found = np.zeros((len(PASSAGES), len(PHRASES)))
    for row, passage in enumerate(facts()):
        for end in (end for fact in passage for end in fact):
            found[row, PHRASES.index(end)] += 1
    return found


def weights() -> np.ndarray:
    """The edges E and E': facts, and phrases with a cosine above the threshold of 0.8."""
    found = np.zeros((len(PHRASES),) * 2)
    for passage in facts():
        for head, tail in passage:
            i, j = PHRASES.index(head), PHRASES.index(tail)
            found[i, j] += 1
            found[j, i] += 1
    for i, j in combinations(range(len(PHRASES)), 2):
        cosine = embedded(PHRASES[i]) @ embedded(PHRASES[j])
        if cosine > 0.8:
            found[i, j] += cosine
            found[j, i] += cosine
    return found


# -- online retrieval (section 2.3) -----------------------------------------------------------------


def query_nodes(entities: Sequence[str]) -> list[int]:
    """r_i = e_k with k = argmax_j cosine_similarity(M(c_i), M(e_j))."""
    return [
        int(np.argmax([embedded(processed(entity)) @ embedded(phrase) for phrase in PHRASES])) for entity in entities
    ]


def seeds(rows: Sequence[int]) -> np.ndarray:
    """Equal probability, multiplied by node specificity s_i = 1 / |P_i|."""
    found = np.zeros(len(PHRASES))
    for row in rows:
        found[row] = 1 / (counts()[:, row] > 0).sum()
    return found / found.sum()


def pagerank(start: np.ndarray, damping: float = 0.5) -> np.ndarray:
    """Personalized PageRank, which goes on along an edge with this probability, and else restarts (section 3.4)."""
    w = weights()
    step = w / w.sum(axis=1, keepdims=True)
    n = np.linalg.solve(np.eye(len(w)) - damping * step.T, (1 - damping) * start)
    return n / n.sum()


def unit_range(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.min()) / (scores.max() - scores.min())


QUESTIONS = [
    "What did Charles Babbage design?",
    "Which cards did Analytical Engine use?",
    "What joins Lyon to Jacquard Loom?",
    "Who met Ada in London?",
]


def ranked(question: str, version: Any, **kwargs: Any) -> dict[str, float]:
    found = built().as_retriever(**{**HippoRAGRetriever.paper(version), "similarity_top_k": 99, **kwargs})
    return {result.node.node_id: result.get_score() for result in found.retrieve(question)}


def shares(scores: np.ndarray) -> dict[str, float]:
    return {f"p{i}": score / scores.max() for i, score in enumerate(scores) if score > 1e-12}


@pytest.mark.parametrize("question", QUESTIONS)
def test_passages_have_the_probability_of_their_phrases(question: str):
    """p = n' P after Personalized PageRank, with node specificity."""
    start = seeds(query_nodes(names(question.split(" ", 1)[1])))
    found = {name: score for name, score in ranked(question, "v1").items() if score > 1e-9}
    best = max(found.values())
    assert {name: score / best for name, score in found.items()} == pytest.approx(shares(counts() @ pagerank(start)))


def test_without_a_walk_the_query_nodes_alone_score():
    """Table 5, row 5: "the query node probability n multiplied by node specificity values"."""
    question = QUESTIONS[2]
    start = seeds(query_nodes(names(question.split(" ", 1)[1])))
    found = {name: score for name, score in ranked(question, "v1_nodes").items() if score > 1e-9}
    best = max(found.values())
    assert {name: score / best for name, score in found.items()} == pytest.approx(shares(counts() @ start))


@pytest.mark.parametrize("threshold", [0.99, 0.1])
def test_an_uncertain_link_averages_in_the_dense_scores(threshold: float):
    """Appendix F.2: the average of both, each scaled to 0 to 1 over all passages, if a link is below the threshold."""
    question = "Which cards did Analytical Machine use?"
    entities = names(question.split(" ", 1)[1])
    rows = query_nodes(entities)
    weakest = min(
        embedded(processed(entity)) @ embedded(PHRASES[row]) for entity, row in zip(entities, rows, strict=True)
    )
    assert 0.1 < weakest < 0.99
    scores = counts() @ pagerank(seeds(rows))
    dense = np.array([embedded(question) @ embedded(text) for text in PASSAGES])
    wanted = (unit_range(scores) + unit_range(dense)) / 2 if weakest < threshold else scores
    published = replace(HippoRAGRetriever.paper("v1_ensemble")["published"], recognition_threshold=threshold)
    found = ranked(question, "v1_ensemble", published=published)
    assert sorted(found, key=lambda name: -found[name])[:4] == [f"p{i}" for i in np.argsort(-wanted, kind="stable")[:4]]


# -- late interaction (section 3.4) -----------------------------------------------------------------


class Words:
    """A token encoder: a vector for each word, near for words that begin alike."""

    def encode_query(self, text: str) -> np.ndarray:
        return self.encode_document([text])[0]

    def encode_document(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.array([self._of(word) for word in processed(text).split() or [""]], np.float32) for text in texts]

    def _of(self, word: str) -> np.ndarray:
        vector = np.zeros(64)
        for i in range(len(word) - 1):
            vector[sum(map(ord, word[i : i + 2])) * 7 % 64] += 1 / (1 + i)
        return vector if vector.any() else vector + 1


def maxsim(question: str, text: str) -> float:
    """The sum over tokens of the question of the largest cosine with one of the text, as a share of its own."""
    encoder = Words()

    def total(one: np.ndarray, other: np.ndarray) -> float:
        return sum(max(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for b in other) for a in one)

    asked = encoder.encode_query(question)
    return total(asked, encoder.encode_query(text)) / total(asked, asked)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_baseline_ranks_by_late_interaction(question: str):
    """Section 3.2: ColBERTv2."""
    nodes = [TextNode(id_=f"p{i}", text=text) for i, text in enumerate(PASSAGES)]
    found = LateInteractionRetriever(nodes, Words(), similarity_top_k=5).retrieve(question)
    wanted = sorted((maxsim(question, text) for text in PASSAGES), reverse=True)[:5]
    assert [result.get_score() for result in found] == pytest.approx(wanted, abs=1e-5)


def test_tensors_of_torch_are_compared_like_arrays():
    torch = pytest.importorskip("torch")

    class Tensors(Words):
        def encode_document(self, texts: Sequence[str]) -> list[Any]:
            return [torch.tensor(array).double().requires_grad_() for array in super().encode_document(texts)]

    nodes = [TextNode(id_=f"p{i}", text=text) for i, text in enumerate(PASSAGES)]
    found, same = (LateInteractionRetriever(nodes, model).retrieve(QUESTIONS[0]) for model in (Words(), Tensors()))
    assert [(r.node_id, r.score) for r in found] == [(r.node_id, r.score) for r in same]


def test_a_text_without_a_token_is_like_nothing_and_one_vector_a_text_is_refused():
    class Letters(Words):
        def encode_document(self, texts: Sequence[str]) -> list[np.ndarray]:
            arrays = zip(super().encode_document(texts), texts, strict=True)
            return [array if any(map(str.isalpha, text)) else np.zeros((0, 64)) for array, text in arrays]

    class Whole(Words):
        def encode_document(self, texts: Sequence[str]) -> list[np.ndarray]:
            return [array.mean(axis=0) for array in super().encode_document(texts)]

    nodes = [TextNode(id_=name, text=name) for name in ("***", "a lamp", "!!")]
    found = LateInteractionRetriever(nodes, Letters()).retrieve("the lamp")
    assert [r.node_id for r in found] == ["a lamp", "***", "!!"]
    assert [r.score for r in found][1:] == [0, 0]
    assert {r.score for r in LateInteractionRetriever(nodes, Letters()).retrieve("?")} == {0}
    with pytest.raises(ConfigurationError, match=r"\(64,\).*MultiVectorEncoder"):
        LateInteractionRetriever(nodes, Whole()).retrieve("the lamp")


def test_entities_are_linked_by_late_interaction():
    """Section 3.4: the retriever M may be ColBERTv2, which links the entities of a question too."""
    question = "Which cards did Analytical Engines use in Londonium?"
    entities = names(question.split(" ", 1)[1])
    linked = [max(PHRASES, key=lambda phrase, e=entity: maxsim(processed(e), phrase)) for entity in entities]
    rows = [PHRASES.index(phrase) for phrase in linked]
    assert rows != query_nodes(entities)
    found = {name: s for name, s in ranked(question, "v1", phrase_encoder=Words()).items() if s > 1e-9}
    best = max(found.values())
    wanted = shares(counts() @ pagerank(seeds(rows)))
    assert {name: score / best for name, score in found.items()} == pytest.approx(wanted)


# -- IRCoT (appendix H) -----------------------------------------------------------------------------


class Table(BaseRetriever):
    """Passages with the scores that a table has for a question."""

    def __init__(self, score: Callable[[str, str], float]) -> None:
        self.score, self.asked = score, list[str]()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        nodes = [TextNode(id_=text, text=text) for text in PASSAGES]
        results = [NodeWithScore(node=node, score=self.score(query_bundle.query_str, node.text)) for node in nodes]
        return sorted(results, key=lambda result: -result.get_score())[:3]


@pytest.mark.parametrize("data", ["musique", "hotpotqa"])
def test_a_thought_is_the_next_query_and_passages_keep_their_highest_score(data: Any):
    """Appendix H: 2 or 4 reasoning steps, top-10 passages, "the highest historical score", a demonstration."""
    thoughts = ["Babbage designed the Analytical Engine.", "It used cards.", "Cards came from a Loom.", "And silk?"]
    said = iter(thoughts)
    llm = ScriptedLLM(lambda prompt: next(said))
    inner = Table(maxsim)
    shown = Demonstration(
        ["Lake {Tovel} has pike."], "What has pike?", ["A lake does.", "So the answer is: Lake Tovel."]
    )
    chain = IRCoTRetriever(inner, llm=llm, demonstrations=[shown], **IRCoTRetriever.paper(data))
    found = chain.retrieve(QUESTIONS[0])
    steps = 4 if data == "musique" else 2
    queries = [QUESTIONS[0], *thoughts[: steps - 1]]
    assert inner.asked == queries
    best: dict[str, float] = {}
    for query in queries:
        for text in sorted(PASSAGES, key=lambda text, q=query: -maxsim(q, text))[:3]:
            best[text] = max(best.get(text, 0.0), maxsim(query, text))
    assert [result.get_score() for result in found] == pytest.approx(sorted(best.values(), reverse=True)[:10])
    for prompt in llm.prompts:
        assert "Lake {Tovel} has pike." in prompt
        assert (
            prompt.index("A lake does.") < prompt.index("So the answer is: Lake Tovel.") < prompt.rindex("Steps so far")
        )


def test_a_step_with_the_answer_ends_the_chain():
    inner = Table(maxsim)
    chain = IRCoTRetriever(inner, llm=ScriptedLLM("So the answer is: silk."), **IRCoTRetriever.paper())
    chain.retrieve(QUESTIONS[0])
    assert inner.asked == [QUESTIONS[0]]


@pytest.mark.parametrize("thoughts", [[], "So the answer is: silk."])
def test_a_demonstration_has_steps(thoughts: Any):
    with pytest.raises(ConfigurationError, match="at least one step"):
        Demonstration(["A passage."], "A question?", thoughts)
