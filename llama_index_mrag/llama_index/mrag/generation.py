"""Generation of documents and multi-aspect questions by an LLM, the paper's method to evaluate retrieval.

Section 3 of Besta et al. 2024: largely unrelated categories, documents of each, and for n categories a story that
combines one document of each. Existing documents with categories can be used; otherwise they are generated too.
"""

import logging
import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, Document
from pydantic import Field

from llama_index.mrag.prompts import ARTICLE_PROMPT, STORY_PROMPT, TOPICS_PROMPT
from llama_index.ragkit import RetryPolicy, Steps, content_id
from llama_index.ragkit.errors import ConfigurationError, ParseError
from llama_index.ragkit.evaluation import LabelledQuery, LLMStep
from llama_index.ragkit.llm.announcements import plain_answer, whole_sentences
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.json.shapes import Reply, TextList, read_reply
from llama_index.ragkit.steps import asynchronous, gather, synchronous
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.validation import check_count

__all__ = ["Generated", "MultiAspectGenerator"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
_SHORTEST = 100  # characters of a story, as published
_FIVE_ATTEMPTS = RetryPolicy(max_attempts=5)  # as published
_WORD = re.compile(r"\w+")


class Topics(Reply):
    """The schema of the LLM's reply with topics."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"topics": ("topic", "titles", "articles", "list")}
    items: ClassVar[str] = "topics"

    topics: TextList = Field(min_length=1)


@dataclass(frozen=True)
class Generated:
    """The generated questions, and the reasons for failures.

    Attributes
    ----------
    queries : each with the ids of its documents as gold; its id begins with their number, as in `n05-003`
    failures : id -> reason
    """

    queries: list[LabelledQuery]
    failures: dict[str, str] = field(default_factory=dict)


class MultiAspectGenerator(LLMStep):
    """Generates stories that need several documents of different categories, and such documents.

    Parameters
    ----------
    llm : default `Settings.llm`, resolved at first use
    prompts : {"story": ..., "topics": ..., "article": ...} to replace the defaults
    num_workers : concurrent LLM calls
    retry : attempts for a story that is too short or omits a title [5 attempts, as published]
    show_progress : whether to show a progress bar
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {
        "story": STORY_PROMPT,
        "topics": TOPICS_PROMPT,
        "article": ARTICLE_PROMPT,
    }

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        num_workers: int = 4,
        retry: RetryPolicy = _FIVE_ATTEMPTS,
        show_progress: bool = False,
    ) -> None:
        super().__init__(llm, prompts=prompts, retry=retry)
        self._num_workers = num_workers
        self._show_progress = show_progress

    # -- questions ----------------------------------------------------------------------------------

    @synchronous
    def generate_queries(
        self,
        documents: Sequence[BaseNode],
        aspects: Sequence[int] = (1, 5, 10, 15, 20),
        per_count: int = 25,
        *,
        category_key: str = "category",
        title_key: str = "title",
        seed: int = 0,
    ) -> Steps[Generated]:
        """Generate questions with `aspects` aspects, `per_count` for each number of aspects.

        Parameters
        ----------
        documents : documents or nodes, with a category and a title in their metadata; their ids are the gold
        seed : seed for the choice of documents

        Raises
        ------
        ConfigurationError
            If a document has no category or title, or there are fewer categories than aspects.
        """
        by_id = {document.node_id: document for document in documents}
        for name, document in by_id.items():
            lacking = [key for key in (category_key, title_key) if not document.metadata.get(key)]
            if lacking:
                raise ConfigurationError(f"Document {name!r} has no {' and no '.join(lacking)} in its metadata.")
        category_of = {name: str(document.metadata[category_key]) for name, document in by_id.items()}
        chosen = _sample_aspects(category_of, aspects, per_count, seed)
        names = [f"n{len(gold):02d}-{i % per_count:03d}" for i, gold in enumerate(chosen)]
        jobs = [partial(self._story, [by_id[name] for name in gold], title_key) for gold in chosen]
        outcomes = yield from gather(jobs, self._num_workers, "Writing questions", self._show_progress)
        queries, failures = [], {}
        for name, gold, outcome in zip(names, chosen, outcomes, strict=True):
            if outcome.error is None:
                queries.append(LabelledQuery(name, outcome.unwrap(), gold=gold))
            else:
                failures[name] = f"{type(outcome.error).__name__}: {outcome.error}"
        if failures:
            logger.warning("%d of %d questions could not be generated: %s.", len(failures), len(names), failures)
        return Generated(queries, failures)

    agenerate_queries = asynchronous(generate_queries)
    """As :meth:`generate_queries`."""

    def _story(self, documents: Sequence[BaseNode], title_key: str) -> Steps[str]:
        titles = [str(document.metadata[title_key]) for document in documents]
        texts = [f"{title}\n\n{plain_text(document)}" for title, document in zip(titles, documents, strict=True)]
        return (
            yield from self._complete(
                "story",
                partial(_read_story, titles=titles),
                reply_tokens=1_024 + 128 * len(documents),
                like="\n".join(texts),
                count=len(documents),
                titles="; ".join(titles),
                articles=PromptTexts(texts, "article", evenly=True),
            )
        )

    # -- documents ----------------------------------------------------------------------------------

    @synchronous
    def generate_documents(self, categories: Sequence[str], per_category: int = 10) -> Steps[list[Document]]:
        """Generate documents on topics of each category, with category and title as metadata. Failures are logged.

        Raises
        ------
        ConfigurationError
            If `per_category` is below 1.
        """
        check_count("per_category", per_category, 1)
        names = list(dict.fromkeys(categories))
        jobs = [partial(self._topics, category, per_category) for category in names]
        outcomes = yield from gather(jobs, self._num_workers, "Choosing topics", self._show_progress)
        wanted = []
        for category, outcome in zip(names, outcomes, strict=True):
            if outcome.error is not None:
                logger.warning("No topics of %r could be generated: %s", category, outcome.error)
            wanted += [(category, topic) for topic in (outcome.value or ())]
        writing = [partial(self._article, category, topic) for category, topic in wanted]
        articles = yield from gather(writing, self._num_workers, "Writing documents", self._show_progress)
        documents = []
        for (category, topic), article in zip(wanted, articles, strict=True):
            if article.error is not None:
                logger.warning("No document on %r of %r could be generated: %s", topic, category, article.error)
                continue
            metadata = {"category": category, "title": topic}
            documents.append(Document(text=article.unwrap(), id_=content_id(category, topic), metadata=metadata))
        return documents

    agenerate_documents = asynchronous(generate_documents)
    """As :meth:`generate_documents`."""

    def _topics(self, category: str, count: int) -> Steps[list[str]]:
        reply = yield from self._complete(
            "topics",
            partial(read_reply, model=Topics),
            output_cls=Topics,
            reply_tokens=64 + 30 * count,
            like=category,
            category=category,
            count=count,
        )
        return list(dict.fromkeys(topic.strip() for topic in reply.topics if topic.strip()))[:count]

    def _article(self, category: str, topic: str) -> Steps[str]:
        given = {"category": category, "topic": topic}
        return (
            yield from self._complete("article", _read_text, reply_tokens=2_048, like=f"{category} {topic}", **given)
        )

    def _complete(self, name: str, parse: Callable[[str], T], **given: Any) -> Steps[T]:
        return (yield from self.context().complete(self.prompt(name), parse=parse, **given))


def _read_text(reply: str) -> str:
    text = whole_sentences(plain_answer(reply))
    if len(text) < _SHORTEST:
        raise ParseError(f"The reply has {len(text)} characters, fewer than {_SHORTEST}.")
    return text


def _read_story(reply: str, titles: Sequence[str]) -> str:
    """The story, if it contains every word of every title, the check of the published generator."""
    story = _read_text(reply)
    words = {word.casefold() for word in _WORD.findall(story)}
    missing = [title for title in titles if not {word.casefold() for word in _WORD.findall(title)} <= words]
    if missing:
        raise ParseError(f"The story omits {len(missing)} of {len(titles)} titles, such as {missing[0]!r}.")
    return story


def _sample_aspects(
    category_of: Mapping[str, str], aspects: Sequence[int], per_count: int, seed: int
) -> list[tuple[str, ...]]:
    """For each number n of aspects, `per_count` sets of n documents of n different categories (paper, section 3,
    "Multi-Aspect Query Generation"). The same seed gives the same sets, whatever the order of the mapping.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for document in sorted(category_of):
        members[category_of[document]].append(document)
    wrong = [n for n in aspects if not 1 <= n <= len(members)]
    if wrong or per_count < 1:
        raise ConfigurationError(
            f"A question with n aspects needs n categories, but there are {len(members)}: aspects must be 1 to "
            f"{len(members)} and per_count at least 1, not {wrong or per_count}."
        )
    draw = random.Random(seed)
    categories = sorted(members)
    return [
        tuple(draw.choice(members[category]) for category in draw.sample(categories, n))
        for n in aspects
        for _ in range(per_count)
    ]
