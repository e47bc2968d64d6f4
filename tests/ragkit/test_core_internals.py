"""Private parts of llama-index-core that the packages use: each still there, and still doing what it is used for."""

import pytest
from llama_index.core.constants import DATA_KEY, TYPE_KEY
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.index_store import SimpleIndexStore

from llama_index.ragkit.core_internals import docstore_tables, index_entries, may_send_json_schema, with_system_prompt
from llama_index.ragkit.errors import UnsupportedStoreError


def test_the_collections_hold_what_they_are_named_for() -> None:
    docstore = SimpleDocumentStore()
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    docstore.add_documents([TextNode(id_="n", text="oil", relationships=source)])
    docstore.set_document_hash("d", "hash")
    tables = docstore_tables(docstore)
    assert set(tables.kvstore.get_all(collection=tables.nodes)) == {"n"}
    assert tables.kvstore.get("n", collection=tables.metadata)["ref_doc_id"] == "d"
    assert tables.kvstore.get("d", collection=tables.metadata)["doc_hash"] == "hash"
    assert tables.kvstore.get("d", collection=tables.ref_docs)["node_ids"] == ["n"]
    assert tables.batch_size >= 1


def test_the_entries_of_an_index_store_have_type_and_data() -> None:
    store = SimpleIndexStore()
    struct = IndexDict()
    store.add_index_struct(struct)
    assert index_entries(store) == {struct.index_id: {TYPE_KEY: struct.get_type(), DATA_KEY: struct.to_json()}}
    assert index_entries(object()) == {}  # type: ignore[arg-type]


def test_a_docstore_without_a_key_value_store_is_refused() -> None:
    with pytest.raises(UnsupportedStoreError, match="keeps no key-value store"):
        docstore_tables(object())  # type: ignore[arg-type]


def test_the_system_prompt_comes_first() -> None:
    asked = [ChatMessage(role="user", content="Which lamp?")]
    sent = with_system_prompt(MockLLM(system_prompt="Be brief."), asked)
    assert [(message.role.value, message.content) for message in sent] == [
        ("system", "Be brief."), ("user", "Which lamp?"),
    ]  # fmt: skip
    assert with_system_prompt(MockLLM(), asked) == asked
    assert len(asked) == 1


def test_openai_models_say_whether_they_send_a_json_schema() -> None:
    openai = pytest.importorskip("llama_index.llms.openai")
    new = openai.OpenAI(model="gpt-4o-mini", api_key="k", api_base="http://localhost")
    old = openai.OpenAI(model="gpt-3.5-turbo", api_key="k", api_base="http://localhost")
    assert (may_send_json_schema(new), may_send_json_schema(old)) == (True, False)
    assert may_send_json_schema(MockLLM())
