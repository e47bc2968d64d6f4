"""An index for a server in a process of its own."""

from llama_index.core import Document

from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.ragkit.testing import HashEmbedding

TEXTS = {
    "lamp": "Otto Lindqvist built the Old Lamp at Lake Tovel.",
    "glass": "The Bergslund Glassworks was founded by Otto Lindqvist in 1871.",
    "bread": "Bread is baked at night in the village.",
}


def load() -> HippoRAGIndex:
    documents = [Document(text=text, id_=name, metadata={"kind": name}) for name, text in TEXTS.items()]
    return HippoRAGIndex.from_documents(documents, extractor=NounPhraseExtractor(), embed_model=HashEmbedding())


def nothing() -> None:
    return None
