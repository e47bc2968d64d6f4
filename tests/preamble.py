"""What the examples of the docs assume: some texts, and models that need neither key nor network.

Source text, since the examples also run in clean environments where this folder is not installed.
"""

PREAMBLE = '''
import hashlib
from pathlib import Path

from llama_index.core import Settings
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, MockLLM


class HashedWords(BaseEmbedding):
    """Texts that share words are near; the same in every process."""

    def _vector(self, text):
        vector = [0.001] * 32
        for word in text.lower().split():
            vector[hashlib.sha256(word.encode()).digest()[0] % 32] += 1.0
        norm = sum(x * x for x in vector) ** 0.5
        return [x / norm for x in vector]

    def _get_text_embedding(self, text):
        return self._vector(text)

    def _get_query_embedding(self, query):
        return self._vector(query)

    async def _aget_query_embedding(self, query):
        return self._vector(query)


class SaysTheSame(MockLLM):
    """An LLM with one answer to everything."""

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text="The keeper lit the lamp at dusk.")


Settings.embed_model = HashedWords(model_name="hashed-words")
Settings.llm = SaysTheSame()
TEXTS = {
    "lighthouse": "The keeper lit the lamp at dusk. The lamp burned whale oil, later paraffin. Ships steered by it.",
    "harbour": "The harbour silted up in the storm. Dredgers cleared the channel. The pilots went back to work.",
    "museum": "The museum shows the old lamp and the logbooks of the keepers. Schools visit it in spring.",
}
Path("data").mkdir(exist_ok=True)
for name, text in TEXTS.items():
    Path("data", f"{name}.txt").write_text(text * 3, encoding="utf-8")
'''
