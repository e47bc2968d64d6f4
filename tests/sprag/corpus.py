"""A report of three pages, one LlamaIndex document each, and a letter: what the tests of the classes index."""

from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter

SPLIT = [SentenceSplitter(chunk_size=12, chunk_overlap=0)]
PAGES = [
    "Harbour report of 1931. The harbour was dredged in spring. Pilots came back to work in May. The quay was mended.",
    "Accounts. Dues rose to forty crowns. Wages fell by a tenth. The lamp used less paraffin than before.",
    "Outlook. A new crane is to be bought. The pilots ask for a boat. The council decides in autumn.",
]
LETTER = "Dear keeper. The lamp came back from the museum. It stood in the hall for a night. Nobody lit it."


def report(pages=PAGES, tenant="a", path="harbour_report.pdf"):
    """The pages of a PDF file, as LlamaIndex's readers give them."""
    hidden = ["page_label", "file_path", "tenant"]
    return [
        Document(
            text=text,
            id_=f"{tenant}-{path}-{number}",
            metadata={"page_label": str(number), "file_path": path, "tenant": tenant},
            excluded_embed_metadata_keys=hidden,
            excluded_llm_metadata_keys=hidden,
        )
        for number, text in enumerate(pages, start=1)
    ]


def letter():
    return Document(text=LETTER, id_="letter")
