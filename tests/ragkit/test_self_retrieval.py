"""How much better words find a corpus's own texts than cosines do."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.testing import HashEmbedding
from llama_index.ragkit.text.lexical_index import LexicalIndex, lexical_terms
from llama_index.ragkit.vectors.self_retrieval import TEXTS, Cloze, can_measure, cloze, word_advantage

WORDS = ["loom", "silk", "lamp", "bell", "coal", "ship", "mill", "paper", "clock", "tern", "rock", "oban", "ledger"]


def prose(count: int, seed: int = 0) -> list[str]:
    """Texts of three sentences of seven words, among them a name that only this text has."""
    chosen = random.Random(seed)

    def sentence(name: str) -> str:
        return " ".join([name, *chosen.choices(WORDS, k=6)]) + "."

    names = [f"Q{chr(97 + i // 26)}{chr(97 + i % 26)}{chr(97 + seed % 26)}x" for i in range(count)]
    return [" ".join(sentence(name) for _ in range(3)) for name in names]


def vectors_of(texts, dim: int = 256) -> np.ndarray:
    return np.array(HashEmbedding(dim=dim).get_text_embedding_batch(list(texts)), np.float32)


def noise(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 16)).astype(np.float32)


def slowly(texts, vectors, asked: Cloze, of_asked) -> float:
    """One sentence after the other, against every text."""
    m, of_asked = len(asked.rows), of_asked.astype(float)
    texts, vectors = list(texts), [v / np.linalg.norm(v) for v in vectors.astype(float)]
    for row, rest, vector in zip(asked.rows, asked.rests, of_asked[m:], strict=True):
        texts[row], vectors[row] = rest, vector / np.linalg.norm(vector)
    index = LexicalIndex.of({str(i): " ".join(lexical_terms(text).elements()) for i, text in enumerate(texts)})
    found = []
    for row, sentence, vector in zip(asked.rows, asked.sentences, of_asked[:m], strict=True):
        scores = dict(zip(index.ids[0], index.scores(sentence)[0], strict=True))
        words = [scores[str(i)] for i in range(len(texts))]
        cosines = [round(float(v @ (vector / np.linalg.norm(vector))), 9) for v in vectors]
        ranks = []
        for by in (words, cosines):
            others = [s for i, s in enumerate(by) if i != row and sentence not in texts[i]]
            ranks.append(1 + sum(s > by[row] for s in others) + sum(s == by[row] for s in others) / 2)
        found.append([1 / rank for rank in ranks])
    by_words, by_cosines = np.array(found).T
    if by_words.mean() < 1 / 3:
        return 0.0
    relative = by_words / by_words.mean() - by_cosines / by_cosines.mean()
    advantage, error = math.log(by_words.mean() / by_cosines.mean()), relative.std() / math.sqrt(m)
    return max(0.0, advantage - 2 * error) + min(0.0, advantage + 2 * error)


@settings(max_examples=20)
@given(st.integers(160, 200), st.integers(0, 99), st.booleans())
def test_the_measure_is_that_of_a_slow_loop(count, seed, knows):
    texts = prose(count, seed)
    asked = cloze(texts, texts)
    of_texts, of_asked = (
        vectors_of(some) if knows else noise(len(some), seed + k) for k, some in enumerate((texts, asked.texts))
    )
    assert word_advantage(texts, of_texts, asked, of_asked) == pytest.approx(slowly(texts, of_texts, asked, of_asked))


def test_it_is_large_for_a_model_that_knows_nothing_and_not_above_0_for_one_that_finds_the_texts():
    texts = prose(200)
    asked = cloze(texts, texts)
    assert word_advantage(texts, noise(200), asked, noise(len(asked.texts), 1)) > 0.5
    same = np.eye(200, dtype=np.float32)  # every sentence has the vector of its text
    assert word_advantage(texts, same, asked, same[np.tile(asked.rows, 2)]) <= 0


def test_it_is_less_than_0_where_the_model_finds_what_words_do_not():
    """Every other text has its middle sentence in words that the rest of it does not have."""
    texts = [text if i % 2 else text.replace(". Q", ". Z", 1) for i, text in enumerate(prose(400))]
    asked = cloze(texts, texts)
    same = np.eye(400, dtype=np.float32)
    assert word_advantage(texts, same, asked, same[np.tile(asked.rows, 2)]) < -0.1


def test_where_words_find_few_sentences_they_say_nothing():
    chosen = random.Random(0)
    texts = [" ".join(" ".join(chosen.choices(WORDS, k=6)) + "." for _ in range(3)) for _ in range(200)]
    asked = cloze(texts, texts)
    assert len(asked.rows) == 25
    assert word_advantage(texts, noise(200), asked, noise(50, 1)) == 0


def test_a_model_with_one_vector_for_all_finds_nothing():
    texts = prose(200)
    asked = cloze(texts, texts)
    ones = np.ones((200, 8), np.float32)
    assert word_advantage(texts, ones, asked, np.ones((len(asked.texts), 8), np.float32)) > 0.5


def test_lengths_of_vectors_do_not_matter():
    texts = prose(170)
    asked = cloze(texts, texts)
    of_texts, of_asked = noise(170), noise(len(asked.texts), 1)
    expected = word_advantage(texts, of_texts, asked, of_asked)
    assert word_advantage(texts, 4 * of_texts, asked, of_asked / 8) == expected
    with_zero = np.zeros_like(of_texts)
    assert math.isfinite(word_advantage(texts, with_zero, asked, of_asked))


def test_a_text_that_repeats_the_sentence_is_no_rival():
    texts = prose(170)
    asked = cloze(texts, texts)
    m = len(asked.rows)
    of_texts, of_asked = vectors_of(texts), vectors_of(asked.texts)
    expected = word_advantage(texts, of_texts, asked, of_asked)
    overlapping = [*texts, asked.sentences[0] + " And more."]
    nearest = np.concatenate([of_texts, of_asked[:1]])
    found = word_advantage(overlapping, nearest, asked, of_asked)
    assert found == pytest.approx(slowly(overlapping, nearest, asked, of_asked))
    assert abs(found - expected) < 1 / m  # its words are a little less rare, no more


def test_fewer_than_twenty_sentences_say_nothing():
    texts = prose(159)
    asked = cloze(texts, texts)
    assert len(asked.rows) == 19
    assert word_advantage(texts, noise(159), asked, noise(38, 1)) == 0


def test_the_middle_sentence_is_taken_out_of_the_text_without_its_title():
    bodies = ["Only one sentence is here."] * 7 + [
        "One lamp burns here. The keeper rings a bell. Ships pass by at night."
    ]
    texts = [f"title: The keeper\n\n{body}" for body in bodies]
    asked = cloze(bodies, texts)
    assert asked.rows.tolist() == [7]
    assert asked.sentences == ["The keeper rings a bell."]
    assert asked.rests == ["title: The keeper\n\nOne lamp burns here.   Ships pass by at night."]
    assert asked.texts == [*asked.sentences, *asked.rests]


@pytest.mark.parametrize("body", ["", " \n ", "Yes. No. Oh. Ah.", "one", "A. B. C."])
def test_a_text_without_a_long_middle_sentence_is_left_out(body):
    assert cloze([body] * 8, [body] * 8) == Cloze(pytest.approx(np.zeros(0)), [], [])


def test_a_body_that_is_not_in_the_embedded_text_is_left_out():
    assert not cloze(prose(8), ["another text"] * 8).sentences


def test_a_script_without_spaces_has_sentences_too():
    body = "灯塔看守人每天晚上点燃油灯。风暴来临时他敲响铜钟。渔船回到港口。"
    assert cloze([body] * 8, [body] * 8).sentences == ["风暴来临时他敲响铜钟。"]


def test_one_sentence_is_asked_for_eight_texts():
    texts = prose(600)
    assert [len(cloze(texts[:n], texts[:n]).rows) for n in (7, 8, 400, 600)] == [0, 1, 50, 75]


def test_it_is_measured_by_the_first_160_and_by_writes_of_twice_as_many_up_to_a_thousand():
    assert not can_measure(159, 0)
    assert can_measure(160, 0)
    assert not can_measure(319, 160)
    assert can_measure(320, 160)
    assert not can_measure(10 * TEXTS, TEXTS)
