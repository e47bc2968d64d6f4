"""MultiHeadEmbedding on tiny random models: its heads, times the output projection, are the layer's attention."""

import asyncio
import json
import pickle
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from tests.mrag.tiny import MODELS, attention_outputs, make, project

from llama_index.mrag import MRAGIndex, MultiHeadEmbedding
from llama_index.ragkit.errors import ConfigurationError

# Not imported before a test runs: that takes seconds, in each process that collects tests.
pytestmark = pytest.mark.skipif(
    not (find_spec("torch") and find_spec("transformers")), reason="torch or transformers is missing"
)
TEXTS = ["the lamp", "a keeper of the light in the tower and the storm", "sea", "who rope the bell", "cake and fiddle"]
DECODERS = ("llama", "mistral", "qwen3", "gpt2", "opt")
each_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def embedding(folder, **kwargs) -> MultiHeadEmbedding:
    return MultiHeadEmbedding(folder, device="cpu", **kwargs)


@each_model
@pytest.mark.parametrize("layer", [-1, 1])
@pytest.mark.parametrize("pooling", ["last", "cls", "mean"])
def test_heads_times_the_projection_are_the_attention(torch, name, layer, pooling, tmp_path):
    model = embedding(make(name, tmp_path), layers=[layer], pooling=pooling)
    flat = model.get_text_embedding_batch(TEXTS)
    encoder = model.encoder
    for text, vector in zip(TEXTS, flat, strict=True):
        (ids,) = encoder.tokens([text])
        tokens, dense = attention_outputs(name, encoder.model, ids, layer % 3)
        wanted = {"last": tokens[-1], "cls": tokens[0], "mean": tokens.mean(0)}[pooling]
        heads = torch.tensor(model.split(vector)).flatten() * 1024
        torch.testing.assert_close(project(dense, heads), wanted, atol=2e-6, rtol=1e-4)


@each_model
@pytest.mark.parametrize("stored", ["cls_token", "lasttoken", None])
def test_flat_vectors_have_the_cosines_of_the_models_own_embedding(torch, name, stored, tmp_path):
    folder = make(name, tmp_path)
    if stored:  # as Sentence Transformers say it
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{stored}": True}))
    model = embedding(folder, pooling="mean")
    flat = np.array(model.get_text_embedding_batch(TEXTS))
    encoder = model.encoder
    own = []
    for row in encoder.tokens(TEXTS):
        with torch.no_grad():
            states = encoder.model(**encoder.batch([row])).last_hidden_state[0]
        own.append({"cls_token": states[0], "lasttoken": states[-1], None: states.mean(0)}[stored].numpy())
    own = np.array(own) / np.linalg.norm(own, axis=1, keepdims=True)
    np.testing.assert_allclose(flat[:, : own.shape[1]], own, atol=2e-6)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    np.testing.assert_allclose(flat @ flat.T, own @ own.T, atol=1e-4)


def test_heads_alone_are_those_beside_the_own_embedding(tmp_path):
    both = embedding(make("bert", tmp_path))
    alone = embedding(tmp_path, own_embedding=False)
    assert (both.own_of(64), alone.own_of(32)) == (32, 0)
    flat = [np.array(model.get_text_embedding_batch(TEXTS), np.float32) for model in (both, alone)]
    np.testing.assert_allclose(both.split(flat[0]) * 1024, alone.split(flat[1]), rtol=1e-4, atol=1e-6)


@each_model
def test_heads_are_query_heads_of_the_projections_width(name, tmp_path):
    model = embedding(make(name, tmp_path))
    head_dim = 16 if name == "qwen3" else 8
    assert (model.num_heads, model.head_dim) == (4, head_dim)
    assert model.split(model.get_text_embedding("the lamp")).shape == (4, head_dim)
    assert model.split(model.get_text_embedding_batch(TEXTS)).shape == (5, 4, head_dim)


@each_model
def test_neither_batch_nor_padding_side_changes_anything(name, tmp_path):
    folder = make(name, tmp_path)
    alone = [embedding(folder).get_text_embedding(text) for text in TEXTS]
    for kwargs in ({"batch_size": 2}, {"batch_size": 5}, {"tokenizer_kwargs": {"padding_side": "left"}}):
        together = embedding(folder, **kwargs).get_text_embedding_batch(TEXTS)
        np.testing.assert_allclose(together, alone, atol=2e-6)
    backwards = embedding(folder).get_text_embedding_batch(TEXTS[::-1])
    np.testing.assert_allclose(backwards[::-1], alone, atol=2e-6)


@each_model
def test_eager_and_sdpa_attention_agree(name, tmp_path):
    folder = make(name, tmp_path)
    ways = [embedding(folder, model_kwargs={"attn_implementation": way}) for way in ("eager", "sdpa")]
    a, b = (way.get_text_embedding_batch(TEXTS) for way in ways)
    np.testing.assert_allclose(a, b, atol=2e-6)


@each_model
def test_decoders_are_read_at_the_end_token_and_encoders_over_all(name, tmp_path):
    encoder = embedding(make(name, tmp_path)).encoder
    assert encoder.pooling == ("last" if name in DECODERS else "mean")
    end = encoder.tokenizer.eos_token_id
    ends = [row[-1] == end for row in encoder.tokens(TEXTS)]
    assert ends == [name in DECODERS] * len(TEXTS)


def test_an_end_token_is_there_once_even_of_a_long_text(tmp_path):
    by_tokenizer = embedding(make("llama", tmp_path / "a", marks="end"), max_length=6).encoder
    by_us = embedding(make("llama", tmp_path / "b"), max_length=6).encoder
    for encoder in (by_tokenizer, by_us):
        end = encoder.tokenizer.eos_token_id
        for row in encoder.tokens(["lamp", "lamp " * 30, ""]):
            assert row[-1] == end
            assert row.count(end) == 1
            assert len(row) <= 6


def test_a_tokenizer_with_an_end_token_of_its_own_keeps_it(tmp_path):
    encoder = embedding(make("llama", tmp_path, marks="bert")).encoder
    assert encoder.end == encoder.tokenizer.sep_token_id
    assert [row[-1] for row in encoder.tokens(TEXTS)] == [encoder.end] * len(TEXTS)
    assert embedding(tmp_path, append_eos=False).encoder.end is None


def test_special_tokens_of_an_encoder_are_read_too(tmp_path):
    model = embedding(make("bert", tmp_path, marks="bert"), pooling="cls")
    (ids,) = model.encoder.tokens(["the lamp"])
    assert [ids[0], ids[-1]] == [model.encoder.tokenizer.cls_token_id, model.encoder.tokenizer.sep_token_id]


def test_several_layers_stand_side_by_side(tmp_path):
    folder = make("qwen3", tmp_path)
    both = embedding(folder, layers=[0, -1], own_embedding=False)
    assert (both.num_heads, both.head_dim) == (8, 16)
    single = [
        embedding(folder, layers=[layer], own_embedding=False).get_text_embedding("the lamp") for layer in (0, -1)
    ]
    np.testing.assert_allclose(both.get_text_embedding("the lamp"), [*single[0], *single[1]], atol=1e-6)


def test_instructions_stand_before_questions_and_texts(tmp_path):
    folder = make("llama", tmp_path)
    plain, told = embedding(folder), embedding(folder, query_instruction="who what ", text_instruction="a ")
    assert told.get_query_embedding("lamp") == plain.get_query_embedding("who what lamp")
    assert told.get_query_embedding_batch(["lamp", "sea"])[0] == pytest.approx(
        told.get_query_embedding("lamp"), abs=2e-6
    )
    assert told.get_text_embedding("lamp") == plain.get_text_embedding("a lamp")


def test_other_dtypes(torch, tmp_path):
    folder = make("llama", tmp_path)
    full = np.array(embedding(folder).get_text_embedding("the lamp"))
    half = embedding(folder, dtype="bfloat16")
    assert half.encoder.dtype == torch.bfloat16
    np.testing.assert_allclose(half.get_text_embedding("the lamp"), full, atol=0.05)
    with pytest.raises(ConfigurationError, match="float33"):
        embedding(folder, dtype="float33").get_text_embedding("x")


def test_batches_in_threads_do_not_mix(tmp_path):
    folder = make("bert", tmp_path)
    texts = [" ".join(TEXTS[i % 5].split()[: 1 + i % 4]) + " lamp" * (i % 7) for i in range(60)]
    alone = embedding(folder, batch_size=1).get_text_embedding_batch(texts)
    shared = embedding(folder, embed_batch_size=5, num_workers=4)
    together = asyncio.run(shared.aget_text_embedding_batch(texts))
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_it_is_a_llama_index_embedding(tmp_path):
    model = embedding(make("bert", tmp_path))
    nodes = [TextNode(text=text, id_=str(i)) for i, text in enumerate(TEXTS)]
    assert (
        VectorStoreIndex(nodes, embed_model=model).as_retriever(similarity_top_k=1).retrieve(TEXTS[3])[0].node_id == "3"
    )
    index = MRAGIndex(nodes, embed_model=model)
    assert index.num_heads == 4
    assert index.as_retriever(similarity_top_k=1).retrieve(TEXTS[3])[0].node_id == "3"
    assert index.storage.struct.params["mrag"]["own"] == 32
    again = pickle.loads(pickle.dumps(model))
    assert again.get_text_embedding("sea") == model.get_text_embedding("sea")
    assert "encoder" not in model.to_dict()


def test_models_and_options_that_cannot_work_are_refused(tmp_path):
    folder = make("bert", tmp_path)
    with pytest.raises(ConfigurationError, match="-3 to 2"):
        embedding(folder, layers=[3]).get_text_embedding("x")
    with pytest.raises(ConfigurationError, match="projection="):
        embedding(folder, projection="nothing").get_text_embedding("x")
    with pytest.raises(ConfigurationError, match=r"32 \+ 4 x 8"):
        embedding(folder).split([0.0] * 30)
    with pytest.raises(ValueError, match="pooling"):
        embedding(folder, pooling="max")


def test_without_torch_the_error_names_the_extra(tmp_path, monkeypatch):
    for name in [
        m for m in sys.modules if m.startswith("llama_index.mrag.") and m.split(".")[-1] in ("encoder", "heads")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"llama-index-mrag\[hf\]"):
        embedding(tmp_path).get_text_embedding("x")
