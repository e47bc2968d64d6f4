"""How many texts have statements that pass PG-RAG's verification, at the thresholds of the paper and of its code.

    python -m benchmarks.verification --data FOLDER/musique     # recorded triples, written out as statements
    python -m benchmarks.verification --live 10                 # SmolLM2-135M-Instruct reads ten chunks of the archive

The live model is asked as under `paper()`: statements in a call of their own, three times at most, then the map of
them. A text whose replies cannot be read has no map at all.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.data import load
from benchmarks.embedding import minilm
from benchmarks.live_model import chunks_of_archive
from benchmarks.smollm2 import SmolLM2, missing
from llama_index.pgrag import PGRAGIndex
from llama_index.pgrag.maps.verification import Check, lexical_tokens, rouge_l
from llama_index.ragkit.steps import run_steps

__all__ = ["checks"]

THRESHOLDS = {"the paper": (0.75, 0.85), "the defaults": (0.15, 0.85), "ROUGE-L of the code alone": (0.15, -1.0)}


def checks(texts: Sequence[str], statements: Sequence[Sequence[str]]) -> list[Check]:
    """How well the statements of each text match it; nothing has passed yet."""
    said = ["\n".join(items) for items in statements]
    one, other = (np.asarray(minilm().get_text_embedding_batch(list(each))) for each in (texts, said))
    near = np.einsum("ij,ij->i", one, other) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    pairs = zip(texts, said, near, strict=True)
    return [Check(rouge_l(text, items), float(cosine), False) for text, items, cosine in pairs]


def _printed(found: Sequence[Check], lengths: Sequence[float]) -> None:
    print(f"{len(found)} texts; their statements have {mean(lengths):.0%} of the words of a text")
    print(
        f"on average: ROUGE-L {mean(c.rouge_l for c in found):.2f}, cosine {mean(c.semantic or 0.0 for c in found):.2f}"
    )
    for name, (lexical, semantic) in THRESHOLDS.items():
        passed = sum(c.rouge_l >= lexical and (c.semantic or 0.0) >= semantic for c in found)
        print(f"verified at the thresholds of {name} ({lexical} and {semantic}): {passed}, {passed / len(found):.0%}")


def recorded(folder: Path) -> None:
    """Print what becomes of the recorded triples of a corpus as statements."""
    records = list(load(folder)[0].corpus.records.values())
    triples = [[" ".join(triple) for triple in record.get("triples", ())] for record in records]
    read = [(record["text"], items) for record, items in zip(records, triples, strict=True) if items]
    texts, statements = zip(*read, strict=True)
    words = [len(lexical_tokens(" ".join(items))) / len(lexical_tokens(text)) for text, items in read]
    _printed(checks(texts, statements), words)


def live(count: int) -> None:
    """Print what becomes of chunks that the small model reads as under `paper()`."""
    if missing():
        raise SystemExit(f"The live model needs {missing()}; benchmarks/smollm2.py says how they are installed.")
    extractor = PGRAGIndex.paper()["extractor"]
    nodes = chunks_of_archive(count)
    model = SmolLM2(max_tokens=512)
    found = run_steps(extractor.extract(nodes, llm=model, embed_model=minilm(), on_error="record"))
    read = [each.record for each in found if each.record is not None]
    verified = sum(bool(record.get("verified")) for record in read)
    print(f"{count} texts: {count - len(read)} have no map, {len(read) - verified} are unverified, {verified} verified")
    for each in found:
        print("  ", each.error or {key: value for key, value in each.record.items() if key not in ("paths", "needs")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a corpus with recorded triples")
    parser.add_argument("--live", type=int, default=0, metavar="N", help="chunks that the live model reads")
    options = parser.parse_args()
    if options.data:
        recorded(options.data)
    if options.live:
        live(options.live)


if __name__ == "__main__":
    main()
