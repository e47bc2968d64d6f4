"""`RuleContext`: the context of documents read by rules, without a model."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from llama_index.core.schema import BaseNode
from pydantic import Field

from llama_index.ragkit import ExtractionContext, Steps, offload
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.salient_terms import CorpusTerms, salient_terms, telling_terms
from llama_index.ragkit.validation import count
from llama_index.sprag.config import ContextConfig
from llama_index.sprag.context.openings import without_title
from llama_index.sprag.context.reading import read_chunks
from llama_index.sprag.extraction.context_extractor import (
    ContextExtractor,
    Described,
    Description,
    DocumentChunks,
    chunk_record,
    source_of,
)

__all__ = ["RuleContext", "read_by_rules"]


class RuleContext(ContextExtractor):
    """Describes documents by their own words: title, first lines, headings or openings of pages.

    The title comes from metadata, a heading or the name of the file. Headers and footers that repeat on many pages are
    not read. A document of a single chunk, or of unknown order, has only a title.

    Parameters
    ----------
    title : whether the title is part of the context [True]
    first_lines : characters from the beginning of the document, at least 0 [150]
    page_opening : characters from the beginning of the chunk's page, at least 0; for documents of several pages without
        headings [150]
    sections : whether headings, or openings of pages, are read at all [True]
    salient_terms : number of words that set the document apart from the corpus, at least 0. They depend on the other
        documents: an index chooses them when the document is written, and again in `index.rebuild()` [0]
    kwargs : see :class:`~llama_index.sprag.extraction.context_extractor.ContextExtractor`
    """

    needs_llm: ClassVar[bool] = False

    title: bool = True
    first_lines: Annotated[int, count(0)] = 150
    page_opening: Annotated[int, count(0)] = 150
    sections: bool = True
    salient_terms: Annotated[int, count(0)] = Field(default=0)

    @property
    def needs_corpus(self) -> bool:
        """Whether there are salient terms."""
        return self.salient_terms > 0

    @immediate
    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Record:
        """The context of a single text."""
        title, summary, _ = read_by_rules(DocumentChunks(node.node_id, [node], [False]), self._config)
        return {"title": title, "summary": summary}

    def describe(
        self,
        documents: Sequence[DocumentChunks],
        known: Mapping[str, Description],
        *,
        corpus: CorpusTerms | None = None,
        **run: Any,
    ) -> Steps[list[Described]]:
        """Read the documents by rules."""
        return (yield from offload(self._describe, documents, corpus))

    def _describe(self, documents: Sequence[DocumentChunks], corpus: CorpusTerms | None) -> list[Described]:
        counts = [self._terms(document) if self.salient_terms else {} for document in documents]
        if corpus is None:
            corpus = CorpusTerms()
            for terms in counts:
                corpus.add(terms)
        found = []
        for document, terms in zip(documents, counts, strict=True):
            title, summary, sections = read_by_rules(document, self._config)
            found.append(
                Described(
                    Description(
                        title=title if self.title else "",
                        summary=summary,
                        sections=sections,
                        section_summaries=[""] * len(document.nodes),
                        source=source_of(title, summary),
                        terms=salient_terms(terms, corpus, self.salient_terms) if terms else [],
                    )
                )
            )
        return found

    def _terms(self, document: DocumentChunks) -> dict[str, int]:
        terms: dict[str, int] = {}
        for node in document.nodes:
            for word, times in telling_terms(chunk_record(node, self.group_by)["terms"]).items():
                terms[word] = terms.get(word, 0) + times
        return terms

    @property
    def _config(self) -> ContextConfig:
        return ContextConfig(first_lines=self.first_lines, page_opening=self.page_opening, sections=self.sections)


def read_by_rules(document: DocumentChunks, config: ContextConfig) -> tuple[str, str, list[list[str]]]:
    """Title, opening, and the sections of each chunk."""
    read, sections = read_chunks(
        [plain_text(node) for node in document.nodes],
        [node.ref_doc_id or "" for node in document.nodes],
        document.goes_on,
        document.nodes[0].metadata if document.nodes else {},
        config,
    )
    return read.title, without_title(read.opening, read.title), [list(path) for path in sections]
