"""What a passage is about and what it names, through the public classes."""

from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor, RecordedExtractor
from llama_index.ragkit.testing.models import HashEmbedding


def index_of(*texts: str | TextNode, **kwargs) -> HippoRAGIndex:
    nodes = [text if isinstance(text, TextNode) else TextNode(id_=f"n{i}", text=text) for i, text in enumerate(texts)]
    kwargs.setdefault("extractor", NounPhraseExtractor())
    return HippoRAGIndex(nodes=nodes, embed_model=HashEmbedding(), **kwargs)


def phrases(index: HippoRAGIndex) -> set[str]:
    return {data["text"] for _, data in index.to_networkx().nodes(data=True) if data["kind"] == "phrase"}


def subjects(index: HippoRAGIndex) -> set[str]:
    graph = index.to_networkx()
    return {
        graph.nodes[end]["text"]
        for _, end, data in graph.edges(data=True)
        if data["kind"] == "mention" and data["subject"]
    }


WRAPPED = """In the spring of that year the engineer Otto Lindqvist founded the
Bergslund Glassworks on the northern shore of a lake that his friend Maria
Ekberg had shown him when they were children, and he called it after her
village. She never went there. The furnace burned for sixty years, and
then they parted. Nobody in Tovel
Harbour has seen a glassblower since."""


# -- titles -------------------------------------------------------------------------------------------


def test_the_first_line_of_wrapped_prose_is_no_title_and_names_are_read_across_line_breaks():
    index = index_of(WRAPPED)
    assert subjects(index) == set()
    assert {"otto lindqvist", "bergslund glassworks", "maria ekberg", "tovel harbour"} <= phrases(index)


def test_no_chunk_of_a_wrapped_document_has_a_subject():
    document = Document(text="\n".join([WRAPPED, WRAPPED.replace("spring", "winter")]), id_="novel")
    index = HippoRAGIndex.from_documents(
        [document],
        transformations=[SentenceSplitter(chunk_size=40, chunk_overlap=0)],
        extractor=NounPhraseExtractor(),
        embed_model=HashEmbedding(),
    )
    assert len(index.docstore.docs) > 3
    assert subjects(index) == set()


def test_a_title_is_metadata_or_a_heading_and_none_means_none():
    text = "# Lake Tovel\nThe water is red."
    titled = TextNode(text=text, metadata={"title": "A Red Lake", "name": "Tovel"})
    assert subjects(index_of(text)) == {"lake tovel"}
    assert subjects(index_of(titled)) == {"a red lake"}
    assert subjects(index_of(titled, extractor=NounPhraseExtractor(title_key="name"))) == {"tovel"}
    assert subjects(index_of(titled, extractor=NounPhraseExtractor(title_key=None))) == set()
    assert subjects(index_of(text, extractor=NounPhraseExtractor(title_key=None))) == set()
    recorded = {"n0": {"entities": ["Lake Tovel"], "triples": []}}
    assert subjects(index_of(text, extractor=RecordedExtractor(recorded))) == {"lake tovel"}
    assert subjects(index_of(text, extractor=RecordedExtractor(recorded, title_key=None))) == set()


# -- lines that repeat over a document ----------------------------------------------------------------

HEADER, FOOTER = "Bergslund Annual Report", "Tovel Holding Confidential - Page {}"
PAGES = [
    "Otto Lindqvist sold glass to the king of Norway, who paid in silver.",
    "Maria Ekberg bought sand from Denmark and coal from Wales that year.",
    "Furnaces\n\nThe third furnace was lit by Karin Holm in the presence of Otto Lindqvist.",
    "Debts were paid to the Bank of Uppsala before Christmas came round.",
]


def pages() -> list[str]:
    return [f"{HEADER}\n\n{page}\n\n{FOOTER.format(i + 1)}" for i, page in enumerate(PAGES)]


def of_report() -> list[TextNode]:
    source = RelatedNodeInfo(node_id="report")
    return [
        TextNode(id_=f"page{i}", text=text, relationships={NodeRelationship.SOURCE: source})
        for i, text in enumerate(pages())
    ]


def check_report(index: HippoRAGIndex) -> None:
    assert not [phrase for phrase in phrases(index) if "report" in phrase or "confidential" in phrase]
    assert subjects(index) == {"furnaces"}
    assert {"otto lindqvist", "maria ekberg", "karin holm", "bank of uppsala"} <= phrases(index)


def test_headers_and_footers_are_neither_titles_nor_phrases():
    check_report(index_of(*of_report()))
    check_report(
        HippoRAGIndex.from_documents(
            [Document(text="\n\n\n".join(pages()), id_="report")],
            transformations=[SentenceSplitter(chunk_size=40, chunk_overlap=0)],
            extractor=NounPhraseExtractor(),
            embed_model=HashEmbedding(),
        )
    )


def test_the_pages_of_a_file_are_one_document():
    """Readers of PDF files return a document for each page."""
    documents = [
        Document(text=text, id_=f"d{i}", metadata={"file_path": "report.pdf"}) for i, text in enumerate(pages())
    ]
    check_report(HippoRAGIndex.from_documents(documents, extractor=NounPhraseExtractor(), embed_model=HashEmbedding()))


def test_an_updated_chunk_is_compared_with_the_unchanged_ones():
    index = index_of(*of_report())
    nodes = of_report()
    nodes[1].text = nodes[1].text.replace("Wales", "Poland")
    index.insert_nodes(nodes)
    assert "poland" in phrases(index)
    check_report(index)


def test_what_repeats_is_a_property_of_each_document():
    other = TextNode(id_="other", text=f"{HEADER}\n\nNothing else was in it.")
    index = index_of(*of_report(), other)
    assert subjects(index) == {"bergslund annual report", "furnaces"}
