"""What a passage is about and what it names, through the public classes."""

import pytest
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


# -- names in questions -------------------------------------------------------------------------------


def linked(index: HippoRAGIndex, question: str) -> dict[str, str]:
    """What the question is linked to: phrase -> the words of the question."""
    (found, *_) = index.as_retriever(similarity_top_k=1).explain(question)
    return {link.phrase: link.asked for link in found.linked}


@pytest.mark.parametrize(
    ("text", "question", "asked"),
    [
        ("서울은 한국의 수도이다.", "서울의 인구는 얼마인가?", "서울"),
        ("이순신은 1545년에 한성에서 태어났다.", "이순신이 태어난 곳은 어디인가?", "이순신"),
        ("세종대왕이 한글을 만들었다.", "누가 한글을 만들었는가?", "한글"),
        ("鲁迅出生于浙江绍兴。", "鲁迅出生在哪里？", "鲁迅"),
        ("作家老舍出生于北京。", "老舍是谁？", "老舍"),
        ("阿尔伯特·爱因斯坦出生于德国乌尔姆市。", "阿尔伯特·爱因斯坦出生在哪里？", "阿尔伯特·爱因斯坦"),
        ("夏目漱石は東京で生まれた。", "夏目漱石はどこで生まれましたか？", "夏目漱石"),
        ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "กรุงเทพมหานครอยู่ที่ไหน", "กรุงเทพมหานคร"),
        ("Собор стоит в Москве.", "Что такое Москва?", "Москв"),
        ("Теорию создал физик Альберт Эйнштейн.", "Где жили родители Альберта Эйнштейна?", "Эйнштейн"),
        ("Встреча прошла в Нижнем Новгороде.", "Кто построил Нижний Новгород?", "Новгород"),
        ("تقع القاهرة في مصر.", "ما عدد سكان مدينة القاهرة؟", "القاهرة"),
        ("गंगा नदी दिल्ली के पास नहीं बहती।", "क्या दिल्ली बड़ी है?", "दिल्ली"),
        ("ירושלים היא עיר בישראל.", "כמה תושבים יש בעיר ירושלים?", "ירושלים"),
        ("Ο Σωκράτης έζησε στην Αθήνα.", "Πού βρίσκεται η Αθήνα;", "Αθήνα"),
        ("Der deutsche Physiker Max Planck lebte in Kiel.", "Wo wurde Max Planck geboren?", "Max Planck"),
        ("It was Sir Isaac Newton who saw the apple.", "When was Isaac Newton born?", "Isaac Newton"),
        ("It was written by Thomas Mann.", "Where did Mann live?", "Mann"),
        ("Das Haus gehört Max Planck.", "Wo wohnte der Physiker Planck?", "Planck"),
        ("Der deutsche Physiker Max Planck lebte in Kiel.", "wo wurde max planck geboren?", "max planck"),
        ("They were beaten by the Vikings.", "Who was a Viking?", "Viking"),
    ],
)
def test_a_question_finds_a_name_as_the_text_has_it(text, question, asked):
    index = index_of(text, "1234.")
    found = linked(index, question)
    assert any(asked.casefold() in (phrase + name).casefold() for phrase, name in found.items()), phrases(index)
    (best, *_) = index.as_retriever(similarity_top_k=1).retrieve(question)
    assert best.node.node_id == "n0"


def test_chinese_phrases_end_where_words_do():
    found = phrases(index_of("鲁迅出生于浙江绍兴。他毕业于北京大学，北京大学位于北京。"))
    assert {"鲁迅", "浙江绍兴", "北京大学", "北京"} <= found
    assert not [phrase for phrase in found if "出生" in phrase or "于" in phrase]


def test_function_words_are_no_phrases_in_any_script():
    index = index_of(
        "Когда в Варшаве шел снег, что было в городе?", "ما هو الشيء الذي كان هناك عندما حدث ذلك؟", "这是什么？"
    )
    assert not {"когда", "что", "الذي", "عندما", "什么"} & phrases(index)


def test_a_capital_does_not_exclude_names_in_lower_case():
    index = index_of("In 1898 Marie Curie discovered radium in Paris.", "Later Otto Hahn worked in Berlin.")
    assert set(linked(index, "what did marie curie discover?")) == {"marie curie"}
    assert set(linked(index, "What did marie curie do in Paris?")) == {"marie curie", "paris"}
    assert set(linked(index, "Did otto hahn know Marie Curie?")) == {"otto hahn", "marie curie"}


def test_the_forms_of_a_name_share_its_weight():
    index = index_of("Собор стоит в Москве.", "Дорога из Москвы длинна.", "Мост построил Иван Петров.")
    (found, *_) = index.as_retriever(similarity_top_k=1).explain("Что такое Москва и кто такой Иван Петров?")
    weights = {link.phrase: link.weight for link in found.linked}
    assert weights == {"москве": 0.5, "москвы": 0.5, "иван петров": 1.0}


# -- tables and code ----------------------------------------------------------------------------------

GUIDE = """# Ordering

| customer | town | 2018 | 2019 |
|---|---|---|---|
| Otto Lindqvist | Bergslund Hill | 12 | 14 |
| Clara Ashdown | Lake Tovel | 0.770 | 0.880 |

Use `client.order("Tovel Blue", 40)` with the **Tovel Client**, written by `LampStore`.

```python
client = Northwind("file.db")
for lamp in client.lamps("In 1931 the Old Lamp came back"):
    print(Lamp.light, "Quiet Harbour")
```

In 1931 the Old Lamp came back from the Museum of Light. Lake Garda 50 0.770 0.880 was the last row.
"""


@pytest.mark.parametrize("terms", [False, True])
def test_rows_of_tables_and_lines_of_code_are_no_phrases(terms):
    found = phrases(index_of(GUIDE, extractor=NounPhraseExtractor(terms=terms)))
    expected = {
        "ordering", "otto lindqvist", "bergslund hill", "clara ashdown", "lake tovel", "tovel client", "lampstore",
        "old lamp", "museum of light", "lake garda",
    }  # fmt: skip
    assert expected <= found
    assert found - expected <= ({"last row"} if terms else set())


def test_a_chunk_that_begins_within_code_has_the_phrases_of_its_prose():
    found = phrases(index_of('kv = Store("file.db")\nkv.put("Quiet Harbour")\n```\n\nIt was made by Otto Lindqvist.'))
    assert found == {"otto lindqvist"}


def test_terms_do_not_cross_paragraphs():
    found = phrases(index_of("Chronic leukemia\n\nacute asthma", extractor=NounPhraseExtractor(terms=True)))
    assert not any("leukemia acute" in phrase for phrase in found)
