"""`AutoContext`: title, summary and sections of documents by a language model (spRAG, later dsRAG)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, TextNode
from pydantic import ConfigDict, Field, field_validator

from llama_index.ragkit import Estimate, Extraction, ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.llm.announcements import without_repetitions
from llama_index.ragkit.llm.context_window import TAG_TOKENS, PromptTexts, fitted, prompt_room, window_of
from llama_index.ragkit.llm.json.shapes import ITEMS, Reply, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.held import TextWords, held_prose
from llama_index.ragkit.text.salient_terms import CorpusTerms
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import Count, Share, choice, count
from llama_index.sprag.config import ContextConfig, Sections
from llama_index.sprag.context.titles import given_title
from llama_index.sprag.extraction.context_extractor import (
    ContextExtractor,
    Described,
    Description,
    DocumentChunks,
    source_of,
)
from llama_index.sprag.extraction.rule_context import read_by_rules
from llama_index.sprag.prompts import DOCUMENT_PROMPT, SECTIONS_PROMPT

__all__ = ["AutoContext", "DocumentReply", "SectionsReply", "next_window", "section_of_each"]

_REPLY_TOKENS = 400
_LONGEST = 1000  # characters of a summary, which is added to each chunk of the document
_NUMBER_TOKENS = TAG_TOKENS + 8  # around a part
_PARTS = "parts"  # metadata key of the texts of the chunks, on the nodes that stand for documents


class DocumentReply(Reply):
    """Reply to the first prompt."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "title": ("documenttitle", "name"),
        "summary": ("documentsummary", "description", "about"),
    }

    bounds: ClassVar[Mapping[str, Any]] = {"title": {"maxLength": 200}, "summary": {"maxLength": 600}}
    # Both are asked for; a reply that was cut off after its title is read.
    model_config = ConfigDict(json_schema_extra={"required": ["title", "summary"]})

    title: str = Field(description="what the document is called")
    summary: str = Field(default_factory=str, description="one sentence about the document")

    @field_validator("title", "summary")
    @classmethod
    def _one_line(cls, text: str) -> str:
        line = " ".join(without_repetitions(text)[0].split())[:_LONGEST]
        if not line:
            raise ValueError("must not be empty")
        return line


class SectionReply(Reply):
    """A section in the reply to the second prompt."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "first": ("start", "from", "begin", "firstpart", "startindex", "number", "part"),
        "title": ("sectiontitle", "name", "heading"),
        "summary": ("sectionsummary", "description", "about"),
    }

    first: int = Field(description="number of the first part of the section")
    title: str = Field(description="what the section is about, in a few words")
    summary: str = Field(default="", description="one sentence about the section")


class SectionsReply(Reply):
    """Reply to the second prompt."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"sections": ("section", "parts", "structure")}

    sections: Annotated[list[SectionReply], ITEMS] = Field(min_length=1)


class AutoContext(ContextExtractor):
    """Describes documents with a language model: one call per document, for its title and a summary of one sentence.

    The model reads the beginning of the document. A title in the metadata is kept. Sections come from headings or
    openings of pages by the rules of :class:`~llama_index.sprag.RuleContext`, or from the model, with one call for each
    `section_tokens` of the document.

    Deviations from dsRAG 0.2.0: title and summary come from one call; sections of the model consist of whole chunks,
    since any splitter may have been used; if a reply cannot be used, the document fails, and its chunks are searched
    without context until `index.retry_failed()`.

    Parameters
    ----------
    document_tokens : tokens of the document that the model reads, at least 1; fewer if its window has no room for them
        [8000, as published for the summary; published for the title: 4000]
    sections : `"rules"`, `"llm"` or `"none"` ["rules"; published: "llm"]
    section_tokens : tokens that the model divides into sections in one call, at least 1; fewer if its window has no
        room for them [5000; published: 20,000 characters]
    page_opening : see :class:`~llama_index.sprag.RuleContext` [150]
    min_in_text : least share of the words of a title or a summary that the document must have, in [0, 1]. A title or
        summary below it is left out, and the rules give the title instead. 0 for no check, as for other languages [0.3]
    prompts : {"document": ..., "sections": ...} replace the default prompts; variables `text`, and `parts` and `first`
    kwargs : see :class:`~llama_index.sprag.extraction.context_extractor.ContextExtractor`
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {
        "document": DOCUMENT_PROMPT,
        "sections": SECTIONS_PROMPT,
    }
    completion_tokens: ClassVar[int] = 80
    without_llm: ClassVar[str] = "extractor=RuleContext()"

    document_tokens: Count = 8000
    sections: Annotated[Sections, choice(("rules", "llm", "none"))] = "rules"
    section_tokens: Count = 5000
    page_opening: Annotated[int, count(0)] = 150
    min_in_text: Share = 0.3

    @property
    def fingerprint(self) -> dict[str, str]:
        """As for every extractor, but without `min_in_text`, which may differ between descriptions."""
        return {name: value for name, value in super().fingerprint.items() if name != "min_in_text"}

    # -- one document -----------------------------------------------------------------------------------

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Title and summary of a document, and its sections if the model finds them."""
        prompt = self.prompt("document")
        task = TextWords(prompt.get_template())
        record: Record = yield from context.complete(
            prompt,
            parse=partial(_read_document, words=TextWords(plain_text(node)), task=task, least=self.min_in_text),
            output_cls=DocumentReply,
            like=plain_text(node),
            reply_tokens=self.reply_tokens("document", 0),
            text=PromptTexts([plain_text(node)], "document"),
        )
        if self.sections == "llm":
            record["sections"] = yield from self._divide(node.metadata.get(_PARTS) or [plain_text(node)], context)
        return record

    def _divide(self, parts: Sequence[str], context: ExtractionContext) -> Steps[list[tuple[int, str, str]]]:
        """Sections as (first part, title, summary), window by window."""
        lengths = yield from offload(lambda: [count_tokens(part) for part in parts])
        task = TextWords(self.prompt("sections").get_template())
        found: list[tuple[int, str, str]] = []
        start = 0
        while start < len(parts):
            end = self._window_end(lengths, start, context.llm)
            asked = context.complete(
                self.prompt("sections"),
                parse=partial(_read_sections, first=start, end=end),
                output_cls=SectionsReply,
                reply_tokens=_section_reply_tokens(end - start),
                like="\n".join(parts[start:end]),
                parts=PromptTexts(parts[start:end], evenly=True, shown=partial(_numbered, first=start)),
                first=start,
            )
            # A window that cannot be divided continues the section before it.
            reply = yield from context.keep(asked, None)
            read = [] if reply is None else reply.sections
            sections = sorted({s.first: s for s in read if start <= s.first < end}.items())
            # The last section of a window may continue after it, so the next window begins with that section.
            again = sections[-1][0] if end < len(parts) and len(sections) > 1 and sections[-1][0] > start else end
            words = TextWords("\n".join(parts[start:again]))
            found += [
                (
                    first,
                    _held(s.title.strip(), words, task, self.min_in_text),
                    _held(s.summary.strip(), words, task, self.min_in_text),
                )
                for first, s in sections
                if first < again
            ]
            start = again
        return found

    def _window_end(self, lengths: Sequence[int], start: int, llm: LLM | None) -> int:
        """The end of the parts that the model divides in one call, at least one."""
        end = next_window(lengths, start, self.section_tokens)
        room = prompt_room(llm, self.prompt("sections"), _section_reply_tokens(end - start), first=start)
        if sum(lengths[start:end]) + _NUMBER_TOKENS * (end - start) > room:
            end = next_window([length + _NUMBER_TOKENS for length in lengths], start, room)
        return end

    def pieces(self, node: BaseNode, llm: LLM | None) -> list[BaseNode]:
        """The node itself: title and summary need only its beginning."""
        return [node]

    def reply_tokens(self, prompt: str, tokens: int) -> int:
        """The tokens of a title and a summary, for any text."""
        return _REPLY_TOKENS

    def estimate_document(
        self, nodes: Sequence[BaseNode], count: Callable[[str], int], llm: LLM | None = None
    ) -> Estimate:
        """One call for each document, and one for each window of sections."""
        work = Estimate()
        prompts = {name: count(prompt.get_template()) for name, prompt in self._get_prompts().items()}
        for node in nodes:
            read = min(count(plain_text(node)), self.document_tokens)
            given = {"text": PromptTexts([plain_text(node)], "document")}
            if llm is not None and read > prompt_room(llm, self.prompt("document"), _REPLY_TOKENS):
                sent = fitted(llm, self.prompt("document"), given, _REPLY_TOKENS, window=window_of(llm))
                read = min(read, count(sent.given["text"]))
            work += Estimate(1, prompts["document"] + read, self.completion_tokens)
            lengths = [count(part) for part in node.metadata.get(_PARTS, ())]
            start = 0
            while start < len(lengths):
                end = self._window_end(lengths, start, llm)
                work += Estimate(1, prompts["sections"] + sum(lengths[start:end]), self.completion_tokens)
                start = end
        return work

    # -- many documents -----------------------------------------------------------------------------------

    def describe(
        self,
        documents: Sequence[DocumentChunks],
        known: Mapping[str, Description],
        *,
        may_call: bool,
        corpus: CorpusTerms | None = None,
        **run: Any,
    ) -> Steps[list[Described]]:
        """Ask the model about the documents whose beginning changed."""
        to_read = yield from offload(lambda: [self._to_read(document) for document in documents])
        sources = [source_of(plain_text(node), *node.metadata.get(_PARTS, ())) for node in to_read]
        old = [
            known[document.key]
            if document.key in known and known[document.key].source == source
            else self._given.pop(source, None)
            for document, source in zip(documents, sources, strict=True)
        ]
        new: dict[int, Extraction] = {}
        todo = [i for i, description in enumerate(old) if description is None and plain_text(to_read[i]).strip()]
        if may_call and todo:
            read = yield from NodeExtractor.extract(self, [to_read[i] for i in todo], **run)
            new = dict(zip(todo, read, strict=True))
        described = []
        for i, document in enumerate(documents):
            found = new.get(i, Extraction(document.key))
            if i in new and found.record is None:
                described.append(Described(None, found.error or "", found.cache_keys, found.unreadable))
            elif i in todo and i not in new:
                described.append(Described(None, "the document changed, and was not read again yet"))
            else:
                description = self._description(document, sources[i], old[i], found.record)
                described.append(Described(description, found.error or "", found.cache_keys))
        return described

    def _to_read(self, document: DocumentChunks) -> BaseNode:
        texts = [plain_text(node) for node in document.nodes]
        beginning: list[str] = []
        left = self.document_tokens
        for text in texts:
            length = count_tokens(text)
            if length > left:
                beginning.append(text[: max(1, len(text) * left // length)])
                break
            beginning.append(text)
            left -= length
        parts = {_PARTS: texts} if self.sections == "llm" else {}
        return TextNode(id_=document.key, text="\n\n".join(beginning), metadata=parts)

    def _description(
        self, document: DocumentChunks, source: str, old: Description | None, record: Record | None
    ) -> Description:
        """The description from the model's reply, or from an earlier one."""
        size = len(document.nodes)
        metadata = document.nodes[0].metadata if size else {}
        config = ContextConfig(first_lines=0, page_opening=self.page_opening, sections=self.sections == "rules")
        file_title, _, sections = read_by_rules(document, config)
        summaries = [""] * size
        if self.sections == "llm":
            given = [self._given_sections.pop(node.node_id, None) for node in document.nodes]
            if record is not None:
                sections, summaries = section_of_each(record.get("sections", ()), size)
            elif old is not None and len(old.sections) == size:
                sections, summaries = [list(path) for path in old.sections], list(old.section_summaries)
            else:
                sections = [list(each[0]) if each else [] for each in given]
                summaries = [each[1] if each else "" for each in given]
        title = (record["title"] or file_title) if record is not None else old.title if old is not None else file_title
        summary = record["summary"] if record is not None else old.summary if old is not None else ""
        return Description(given_title(metadata) or title, summary, sections, summaries, source)


def _section_reply_tokens(parts: int) -> int:
    return 128 + 80 * parts


def _numbered(parts: Sequence[str], first: int) -> str:
    return "\n\n".join(f"[{i}]\n{fence([part], 'part')}" for i, part in enumerate(parts, start=first))


def _read_document(reply: str, words: TextWords, task: TextWords, least: float) -> Record:
    """Title and summary, each "" if the document has too few of its words, or if all of them are words of the task."""
    read = read_reply(reply, DocumentReply)
    found = {"title": read.title, "summary": read.summary}
    kept = {name: _held(text, words, task, least) for name, text in found.items()}
    if not any(kept.values()):
        raise ParseError(f"Neither the title nor the summary is about the document: {read.title[:80]!r}.")
    dropped = {name: 1 for name, text in found.items() if text and not kept[name]}
    return {**kept, **({"dropped": dropped} if dropped else {})}


def _held(text: str, words: TextWords, task: TextWords, least: float) -> str:
    """A text, or "" if another text has too few of its words."""
    try:
        return held_prose(text, words, task, least)
    except ParseError:
        return ""


def _read_sections(reply: str, first: int, end: int) -> SectionsReply:
    """The sections of a window of parts; at least one must begin in it."""
    read = read_reply(reply, SectionsReply)
    if not any(first <= section.first < end for section in read.sections):
        raise ParseError(f"No section begins with one of the parts {first} to {end - 1}.")
    return read


def next_window(lengths: Sequence[int], start: int, size: int) -> int:
    """The end of the window of parts that begins at `start` and has at most the length `size`, or a single part.

    >>> next_window([3, 3, 3], 0, 7), next_window([9, 1], 0, 7)
    (2, 1)
    """
    end, total = start, 0
    while end < len(lengths) and (end == start or total + lengths[end] <= size):
        total += lengths[end]
        end += 1
    return end


def section_of_each(sections: Sequence[Sequence[object]], size: int) -> tuple[list[list[str]], list[str]]:
    """For each of `size` parts, the title of its section as a path, and the summary of the section.

    The beginnings of sections that a model names, as (first part, title, summary), become a partition: a section ends
    where the next one begins; parts before the first section have none.

    >>> section_of_each([(1, "Risks", "This section is about: risks.")], 3)
    ([[], ['Risks'], ['Risks']], ['', 'This section is about: risks.', 'This section is about: risks.'])
    """
    titles: list[list[str]] = [[] for _ in range(size)]
    summaries = [""] * size
    ordered = sorted((int(str(first)), str(title), str(summary)) for first, title, summary in sections)
    for place, (first, title, summary) in enumerate(ordered):
        end = ordered[place + 1][0] if place + 1 < len(ordered) else size
        for i in range(max(first, 0), min(end, size)):
            titles[i] = [title] if title else []
            summaries[i] = summary
    return titles, summaries
