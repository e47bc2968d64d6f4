"""`KeptLLM`: a language model whose replies are kept on disk, and whose calls and tokens are counted."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr, SerializeAsAny
from llama_index.core.llms import LLM, CustomLLM

from llama_index.ragkit import SQLiteKVStore
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.llm.completion import model_identity
from llama_index.ragkit.llm.context_window import limited
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["UNUSABLE", "KeptLLM"]

UNUSABLE = "unusable"


class KeptLLM(CustomLLM):
    """Asks a model once for each prompt; kept replies are counted like others, as if the run had never been cut off.

    Everything is asked in text, as the papers do.
    """

    model: SerializeAsAny[LLM]
    path: str
    max_tokens: int | None = None
    _store: SQLiteKVStore = PrivateAttr()
    _spent: Counter[str] = PrivateAttr(default_factory=Counter)
    _lock: ProcessLock = PrivateAttr(default_factory=ProcessLock)  # of the counts

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        self._store = SQLiteKVStore(self.path)

    @property
    def spent(self) -> Counter[str]:
        """Calls, tokens of prompts ("read") and of replies ("written") so far, and calls that were paid for ("new").

        Beside them the steps whose replies could not be used (`UNUSABLE`).
        """
        return self._spent

    def count_unusable(self) -> None:
        """Count a step that has failed, however often it asked."""
        with self._lock:
            self._spent[UNUSABLE] += 1

    @property
    def metadata(self) -> LLMMetadata:
        """That of the model, without functions."""
        return self.model.metadata.model_copy(update={"is_function_calling_model": False})

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The kept reply, or that of the model."""
        shown = [[message.role.value, message.content or ""] for message in messages]
        model = limited(self.model, self.max_tokens)
        text = self._kept("chat", shown, lambda: model.chat(messages, **kwargs).message.content or "")
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text))

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The kept reply, or that of the model."""
        model = limited(self.model, self.max_tokens)
        return CompletionResponse(
            text=self._kept("complete", [["", prompt]], lambda: model.complete(prompt, formatted, **kwargs).text)
        )

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """The reply in one piece."""
        yield self.complete(prompt, formatted, **kwargs)

    def _kept(self, kind: str, shown: list[list[str]], ask: Callable[[], str]) -> str:
        identity = json.dumps([model_identity(self.model), kind, shown, self.max_tokens])
        key = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
        kept = self._store.get(key)
        text = ask() if kept is None else str(kept["text"])
        if kept is None:
            self._store.put(key, {"text": text})
        read = sum(count_tokens(content) for _, content in shown)
        with self._lock:
            self._spent.update({"calls": 1, "read": read, "written": count_tokens(text), "new": int(kept is None)})
        return text
