"""Errors are logged and stored, so their messages must hold no secret."""

import base64
import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr, SecretStr
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index.ragkit import NodeExtractor
from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.external_store import ExternalVectorStore

SECRET = "Zk81Rq3vTn0Xw7"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJaazgxUnEzdlRuMFh3NyJ9.c2lnbmF0dXJlLVprODE"
LEAKS = {
    "query string": f"GET https://host/v1/embed?model=m&api_key={SECRET}&n=1 failed",
    "short query key": f"https://host/v1?key={SECRET}",
    "signed URL": f"https://host/o?X-Amz-Credential=AB&X-Amz-Signature={SECRET}&X-Amz-Security-Token={SECRET}",
    "Azure signature": f"https://host/o?sv=2024&sig={SECRET}",
    "user and password": f"could not connect to postgresql+psycopg2://user:{SECRET}@host:5432/db",
    "user only": f"redis://{SECRET}@host",
    "password with signs": f"amqp://u:{SECRET}@{SECRET}:@host",
    "Basic": "Authorization: Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "Basic alone": "Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode() + " was refused",
    "Bearer": f"401 for Bearer {SECRET}",
    "bearer": f"401 for bearer {SECRET}, sorry",
    "Bearer in a dictionary": f"{{'Authorization': 'Bearer {SECRET}', 'Accept': '*/*'}}",
    "header": f"x-api-key: {SECRET}\r\nAccept: */*",
    "Azure header": f'"Ocp-Apim-Subscription-Key": "{SECRET}"',
    "AWS header": f"Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101, Signature={SECRET}",
    "cookie": f"Cookie: session={SECRET}; other={SECRET}",
    "JSON": f'{{"password": "{SECRET}", "user": "u"}}',
    "client secret": f"client_secret={SECRET}",
    "AWS secret": f"aws_secret_access_key = {SECRET}",
    "environment": f"OPENAI_API_KEY={SECRET} is wrong",
    "connection string": f"Server=h;User Id=u;Password={SECRET};AccountKey={SECRET};",
    "JWT": f"token is {JWT} and expired",
    "AWS key": f"key AKIA{'A' * 9}{SECRET.upper()}",
    "GitHub": f"ghp_{SECRET}{SECRET}{SECRET}",
    "GitHub fine": f"github_pat_{SECRET}_{SECRET}",
    "OpenAI": f"Incorrect API key provided: sk-proj-{SECRET}",
    "Hugging Face": f"hf_{SECRET}",
    "Google": f"AIza{SECRET}{SECRET}",
    "Slack": f"xoxb-{SECRET}",
    "password in a query": f"cannot reach postgresql://h/db?password={SECRET}&sslpassword={SECRET}",
    "options in a query": f"sqlite+driver:///file.db?options=-c%20role%3D{SECRET}, sorry",
    "key file in a query": f"could not open redis://h/0?ssl_keyfile=/keys/{SECRET}&x=1",
    "password with every sign": f"mysql://u:p/a?s#s@{SECRET}@h/db",
    "quoted with blanks": f"password='my own {SECRET}' user=u",
    "JSON with blanks": f'{{"client_secret": "my own {SECRET}"}}',
    "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", LEAKS)
def test_no_common_form_of_a_secret_is_shown(kind: str) -> None:
    shown = redact(LEAKS[kind])
    assert "***" in shown
    assert SECRET.lower() not in shown.lower()
    assert JWT.split(".")[2] not in shown
    assert base64.b64encode(f"user:{SECRET}".encode()).decode() not in shown


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached for gpt-4o: limit 30000, used 29000 tokens per min.",
        "max_tokens=4096 is too large: at most 2048 completion tokens",
        "Basic authentication failed",
        "The bearer of bad news",
        "https://host:8080/v1/models returned 404",
        "https://host/v1/models?model=small&n=3 returned 404",
        "could not connect to postgresql://host:5432/db",
        "This token limit: 512",
        "No module named 'secretstorage'",
        "KeyError: 'text'",
        "Invalid signature of the function call",
    ],
)
def test_messages_without_secrets_stay_as_they_are(message: str) -> None:
    assert redact(message) == message


class Client:
    """A model's client with secrets in the fields that clients have them in."""

    def __init__(self) -> None:
        self.api_key = SecretStr("aa bb cc 11")
        self.default_headers = {"X-Auth": "dd ee ff 22", "nested": {"deep": "gg hh ii 33"}}
        self.db_password = "p@ss w/rd%"
        self.model = "model-name-is-shown"
        self.password = "short"


def test_the_values_of_secret_fields_are_hidden_wherever_they_occur() -> None:
    said = "aa bb cc 11, dd ee ff 22, gg hh ii 33, p@ss w/rd%, p%40ss%20w%2Frd%25, model-name-is-shown, short"
    assert redact(said, Client()) == "***, ***, ***, ***, ***, model-name-is-shown, short"
    assert redact(said, None) == said


class PrivateEmbedding(MockEmbedding):
    """As many clients do, it keeps its key in a private attribute of pydantic."""

    _api_key: str = PrivateAttr(default="plain words as a key")

    def _get_text_embedding(self, text: str) -> list[float]:
        raise RuntimeError(f"refused: {self._api_key} at https://u:{SECRET}@host")


class NeedsEmbedding(NodeExtractor):
    needs_llm = False

    def extract_node(self, node: Any, context: Any) -> Any:
        context.embed_model.get_text_embedding(node.text)
        return {}
        yield


def test_errors_of_embedding_models_are_stored_and_logged_without_their_keys(caplog: pytest.LogCaptureFixture) -> None:
    model: BaseEmbedding = PrivateEmbedding(embed_dim=2)
    steps = NeedsEmbedding().extract([TextNode(text="a")], embed_model=lambda: model)
    with caplog.at_level(logging.DEBUG):
        (found,) = run_steps(steps)
    for text in (found.error, caplog.text):
        assert text is not None
        assert "refused: *** at https://***@host" in text


class LeakyStore(SimpleVectorStore):
    def add(self, nodes: Any, **kwargs: Any) -> list[str]:
        raise RuntimeError(f"could not connect to postgresql://u:{SECRET}@host")

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        raise RuntimeError(f"api_key={SECRET}")


def test_errors_of_vector_stores_are_raised_and_logged_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        store = ExternalVectorStore(LeakyStore())
    with pytest.raises(StorageError, match=r"postgresql://\*\*\*@host") as caught:
        run_steps(store.add_vectors(["a"], np.ones((1, 2), np.float32)))
    assert SECRET not in str(caught.value) + caplog.text


@given(st.text(max_size=200), st.text(min_size=6, max_size=30))
def test_any_key_in_any_message_is_hidden(text: str, key: str) -> None:
    class Model:
        api_key = ""

    model = Model()
    model.api_key = key
    assert key not in redact(f"{text}{key}{text}", model) or key in "***"


@pytest.mark.parametrize("piece", ["a", "secret", "eyJ", "://", "Bearer ", "token=", "authorization: x ", "sk-", '"'])
def test_long_messages_are_cut(piece: str) -> None:
    assert len(redact(piece * 1_000_000)) < 100_000  # quadratic patterns would take hours


@pytest.mark.parametrize("shown", [1, 7, len(SECRET) - 1])
def test_no_part_of_a_key_is_shown_where_a_long_message_is_cut(shown: int) -> None:
    class Model:
        def __init__(self) -> None:
            self.api_key = SECRET

    told = redact(("a " * 10_000)[: 20_000 - shown] + SECRET, Model())
    assert len(told) <= 20_000
    assert SECRET[:shown] not in told


def test_a_model_without_fields_is_no_error() -> None:
    assert redact("m", MockLLM(), object(), 1) == "m"
