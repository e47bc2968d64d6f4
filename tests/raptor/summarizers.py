"""Summarizers whose output says what they saw."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType

from llama_index.ragkit import Summarizer
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.steps import Steps, call


class FirstWords(Summarizer):
    """The first three words of each text. Counts its calls; fails where it is told to."""

    needs_llm: ClassVar[bool] = False

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.calls: list[list[str]] = []
        self.fail_on = "\0"
        self.most_at_once = 0
        self._running = 0
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> dict[str, str]:
        return {"class": "FirstWords"}

    def summarize(self, texts: Sequence[str], *, max_tokens: int, **kwargs: Any) -> Steps[tuple[str, list[str]]]:
        with self._lock:
            self.calls.append(list(texts))
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            if self.seconds:
                yield from call(time.sleep, asyncio.sleep, self.seconds)
        finally:
            with self._lock:
                self._running -= 1
        if any(self.fail_on in text for text in texts):
            raise ExtractionError(f"asked to fail on {self.fail_on!r}")
        return " / ".join(" ".join(text.split()[:3]) for text in texts), []

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        pass


class MostFrequentWords(FirstWords):
    """The three most frequent words of all texts, which one more text seldom changes."""

    def summarize(self, texts: Sequence[str], *, max_tokens: int, **kwargs: Any) -> Steps[tuple[str, list[str]]]:
        yield from super().summarize(texts, max_tokens=max_tokens, **kwargs)
        counts = Counter(word for text in texts for word in text.split())
        return " ".join(sorted(sorted(counts), key=lambda word: -counts[word])[:3]), []


class FirstWordsSlowly(FirstWords):
    """The same, at the pace of a language model."""

    needs_llm: ClassVar[bool] = True
