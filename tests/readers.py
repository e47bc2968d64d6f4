"""The functions of all packages that read text, found by their signatures."""

import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import TextNode

from llama_index.gemrag import KeyphraseQuestionExtractor
from llama_index.graphrag import CooccurrenceExtractor
from llama_index.hipporag import NounPhraseExtractor
from llama_index.pgrag import OutlineExtractor
from llama_index.pgrag.maps.name_links import CellNames, NodeNames
from llama_index.pgrag.retriever import KeyPoints
from llama_index.ragkit import ExtractionContext, NodeExtractor, RetryPolicy, Steps
from llama_index.ragkit.extraction.extractive_summarizer import _split
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.text.characters import normalise
from llama_index.ragkit.text.held import TextWords
from llama_index.ragkit.text.known_names import KnownNames, names_part, possible_mentions
from llama_index.ragkit.text.names import Mention, names
from llama_index.ragkit.text.passages import PassageText
from llama_index.sprag import RuleContext
from llama_index.sprag.config import ContextConfig

__all__ = ["READERS", "TEXT_PARAMETERS"]

PACKAGES = (
    "ragkit.text", "ragkit.extraction", "ragkit.llm.json", "hipporag.text", "gemrag.extraction", "pgrag.maps",
    "pgrag.extraction", "graphrag.extraction", "graphrag.search", "sprag.context", "mrag.text",
)  # fmt: skip
MODULES = (
    "ragkit.llm.reasoning", "ragkit.llm.echoes", "ragkit.llm.announcements", "ragkit.redaction",
    "ragkit.evaluation.answers", "ragkit.html.labels", "graphrag.replies",
)  # fmt: skip
EXTRACTORS = (
    NounPhraseExtractor, KeyphraseQuestionExtractor, OutlineExtractor, CooccurrenceExtractor, RuleContext
)  # fmt: skip


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _one(text: str) -> list[str]:
    return [text]


def _itself(text: str) -> str:
    return text


def _mentions(text: str) -> list[Mention]:
    return [Mention(text[start : start + 5], start, start + 5) for start in range(0, len(text), 20)]


class _Names(dict[str, tuple[str, ...]]):
    """Known names, and what reads names from a text."""

    def __call__(self, text: str) -> list[Mention]:
        return names(text)


TEXT_PARAMETERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(
        (
            "about", "answer", "formatted", "header", "key", "line", "message", "name", "opening", "page", "phrase",
            "prediction", "question", "reference", "reply", "sentence", "summary", "text", "title", "topic", "value",
            "word",
        ),
        _itself,
    ),
    **dict.fromkeys(("aspects", "lines", "phrases", "sentences"), _lines),
    **dict.fromkeys(("answers", "texts"), _one),
    "chunks": lambda text: [(text, None), (text[len(text) // 2 :], ("document", 0))],
    "metadata": lambda text: {"title": text, "file_name": text},
    "nodes": lambda text: [TextNode(text=text)],
    "pages": lambda text: [text[: len(text) // 2], text[len(text) // 2 :]],
    "passage": lambda text: PassageText(text[:200], text),
    "term_counts": lambda text: [Counter(text.split())],
    "words": str.split,
}  # fmt: skip
"""Parameters that are texts, and how each is made of a text."""

OTHERS: Mapping[str, Callable[[str], Any]] = {
    "config": lambda _: ContextConfig(),
    "count": lambda _: 5,
    "cut": lambda _: True,
    "goes_on": lambda _: [False],
    "join_lists": lambda _: True,
    "known": lambda text: frozenset(text.casefold().split()[::2]),
    "language": lambda _: "en",
    "length": lambda _: 150,
    "mentions": _mentions,
    "min_in_text": lambda _: 0.3,
    "mode": lambda _: "unicode",
    "model": lambda _: KeyPoints,
    "most": lambda _: 100,
    "names": lambda text: _Names.fromkeys(_names_in(text), ()),
    "prompt": lambda _: PromptTemplate('Such as {{"a": ["b"]}}: {text}'),
    "repeated": lambda _: frozenset({"a"}),
    "running": lambda _: frozenset({"a"}),
    "scope": lambda _: "",
    "size_of": lambda _: len,
    "siblings": lambda _: [],
    "start": lambda _: 0,
    "subject": _one,
    "title_key": lambda _: None,
    "unwanted": lambda _: [{"a": ["b"]}],
    "user": lambda _: "",
    "what": lambda _: "names",
}
"""Other required parameters."""


def _modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(f"llama_index.{name}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(module.name)
    yield from (importlib.import_module(f"llama_index.{name}") for name in MODULES)


def _given(function: Callable[..., Any]) -> Mapping[str, Callable[[str], Any]] | None:
    """How the required parameters of a function are made of a text; None for a function that reads none."""
    needed = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
    ]
    unknown = [p.name for p in needed if p.annotation is str and p.name not in {*TEXT_PARAMETERS, *OTHERS}]
    if unknown:
        raise LookupError(f"{function.__module__}.{function.__qualname__}: {unknown} are texts, or what else?")
    texts = [parameter.name for parameter in needed if parameter.name in TEXT_PARAMETERS]
    made = {**OTHERS, **TEXT_PARAMETERS}
    return {p.name: made[p.name] for p in needed} if texts and all(p.name in made for p in needed) else None


def _call(function: Callable[..., Any], given: Mapping[str, Callable[[str], Any]], text: str) -> Any:
    begins = "[" if "start" in given else ""  # where a value of JSON begins
    result = function(**{name: make(begins + text) for name, make in given.items()})
    return list(result) if inspect.isgenerator(result) else result


def _found() -> Iterator[tuple[str, Callable[[str], Any]]]:
    for module in _modules():
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and function.__module__ == module.__name__ and (given := _given(function)):
                yield f"{module.__name__.removeprefix('llama_index.')}.{name}", partial(_call, function, given)


def _names_in(text: str) -> list[str]:
    """A few names of the beginning of a text, as an index has them."""
    return list(dict.fromkeys(filter(None, map(normalise, text[:70].split()))))


def _held(text: str) -> Any:
    words = TextWords(text)
    return words.share(text), words.lacking(text)


def _extracted(extractor: type[NodeExtractor], text: str) -> Any:
    context = ExtractionContext(None, None, "test", RetryPolicy())
    steps: Steps[Any] = extractor().extract_node(TextNode(text=text), context)
    return run_steps(steps)


READERS: Mapping[str, Callable[[str], Any]] = {
    **dict(_found()),
    **{extractor.__name__: partial(_extracted, extractor) for extractor in EXTRACTORS},
    "TextWords": _held,
    "KnownNames": lambda text: KnownNames(_names_in(text)).find(text),
    "CellNames": lambda text: CellNames(_names_in(text)).names_in(text),
    "ExtractiveSummarizer": lambda text: _split([text], None),
    "names of a question to Graph RAG": lambda text: possible_mentions(names_part(text)),
    "names of a node of PG-RAG": lambda text: NodeNames.of([("Lamp", text)], CellNames(_names_in(text))),
}
"""Functions that read text, by name."""
