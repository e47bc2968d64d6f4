"""How many passages have the words of a name, by which a walk from it is trusted."""

from llama_index.core.schema import QueryBundle, TextNode

from llama_index.hipporag import HippoRAGIndex, NounPhraseExtractor
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.testing import HashEmbedding


def test_marks_within_a_name_change_nothing():
    texts = ["Mamma Mia! Here We Go Again was shot in Vis.", *(f"Here is tale {i} of a mamma." for i in range(30))]
    index = HippoRAGIndex(
        [TextNode(text=text) for text in texts], embed_model=HashEmbedding(), extractor=NounPhraseExtractor()
    )
    retriever = index.as_retriever()
    query = run_steps(retriever._query(QueryBundle("Where?"), None))
    names = ["Mamma Mia! Here We Go Again", "mamma mia here we go again"]
    (marked, plain), _ = run_steps(query.frequencies(names))
    assert marked == plain < 1
