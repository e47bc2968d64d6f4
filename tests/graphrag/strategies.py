"""Corpora of statements for hypothesis: few names, so that they meet often, some inside others."""

from hypothesis import strategies as st

from llama_index.graphrag.graph.statement import ChunkStatements, ClaimStatement, EntityStatement, RelationStatement

NAMES = [
    "Ada",
    "Ada Byron",
    "Countess Ada Byron",
    "ada",
    "Byron",
    "Charles",
    "Charles Babbage",
    "Babbage's Engine",
    "!",
]
TYPES = ["PERSON", "person", "GEO", ""]
WORDS = ["", "wrote notes", "built an engine", "knew Ada and Charles"]

names = st.sampled_from(NAMES)
ids = [f"c{i}" for i in range(7)]


@st.composite
def chunks(draw: st.DrawFn, chunk_id: str) -> ChunkStatements:
    """One chunk; its id decides its document, so that a chunk that is replaced may move to another."""
    entities = draw(
        st.lists(st.builds(EntityStatement, names, st.sampled_from(TYPES), st.sampled_from(WORDS)), max_size=4)
    )
    strengths = st.integers(1, 10).map(float)
    relations = draw(
        st.lists(st.builds(RelationStatement, names, names, st.sampled_from(WORDS), strengths), max_size=4)
    )
    claims = draw(
        st.lists(st.builds(ClaimStatement, names, st.just("") | names, said=st.sampled_from(WORDS)), max_size=2)
    )
    document = draw(st.sampled_from(["", "d1", "d2"]))
    text_hash = draw(st.sampled_from(["h1", "h2", "h3"]))
    statements = {"entities": tuple(entities), "relations": tuple(relations), "claims": tuple(claims)}
    return ChunkStatements(chunk_id, text_hash, document, draw(st.integers(0, 2)), **statements)


corpora = st.lists(st.sampled_from(ids), unique=True, max_size=6).flatmap(
    lambda chosen: st.tuples(*(chunks(chunk_id) for chunk_id in chosen))
)
