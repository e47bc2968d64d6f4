"""Runs the systems of an experiment on its data, and keeps what each has measured."""

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, TransformComponent

from benchmarks.cost import Counting
from benchmarks.data import Task, load
from benchmarks.papers.demonstrations import FOLDER
from benchmarks.papers.experiment import Answered, Experiment, First, Found, Lab, Part, System
from benchmarks.papers.graders import has_wordnet
from benchmarks.papers.kept_llm import KeptLLM
from benchmarks.papers.measured import Measured, joined
from benchmarks.papers.unusable import CountingReader, or_else
from benchmarks.sources import sources
from benchmarks.systems import METHODS
from llama_index.ragkit.evaluation import LabelledQuery, as_labels, evaluate_answers
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["Runner"]

# Tokens, for estimates: of a prompt beside its passages, of the tags of a passage, of a reply, and of a reader's reply.
_PROMPT, _TAG, _REPLY = 1000, 20, 512
_READ: Mapping[str, int] = {"plain": 128, "multiple_choice": 256, "citations": 512, "chain_of_thought": 512}
_SEEN, _BATCH = 10, 8000  # passages that a step of a search reads, and tokens of a batch of an answer from everything


class _AsTheyAre(TransformComponent):
    """Nodes that are cut already."""

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        return nodes


_Asked = tuple[Lab, list[LabelledQuery]]


class Runner:
    """Measures an experiment.

    What was measured before with the same sources of our packages, models and questions is read from a file.
    """

    def __init__(
        self, experiment: Experiment, embed_model: BaseEmbedding, llm: KeptLLM | None, options: argparse.Namespace
    ) -> None:
        self._experiment = experiment
        self._embed_model = embed_model
        self._llm = llm
        self._options = options
        self._path: Path = options.out / f"{options.name}.jsonl"
        self._labs: tuple[Any, list[Lab]] = (None, [])

    @property
    def systems(self) -> list[System]:
        """Those that can be run: without an LLM, those that need none."""
        return [system for system in self._experiment.systems if self._llm is not None or not system.needs_llm]

    @property
    def columns(self) -> list[str]:
        """The heads of the columns of a part."""
        if self._llm is None and self._experiment.answers:
            return [self._experiment.bound]
        return self._experiment.heads

    def estimate(self) -> dict[str, Estimate]:
        """About the work of each system that is not measured yet, rather more than less, over all parts."""
        work: dict[str, Estimate] = {}
        for _, system, asked, kept in self._cells():
            if kept is None:
                parts = [self._work(system, lab, queries) for lab, queries in asked]
                work[system.name] = sum(parts, work.get(system.name, Estimate()))
        return work

    def run(self) -> dict[tuple[str, str], Measured]:
        """Part and system -> what was measured."""
        found: dict[tuple[str, str], Measured] = {}
        for part, system, asked, kept in self._cells():
            base = found.get((part.heading, self._experiment.baseline))
            answers = None if base is None else base.answers
            measured = kept or joined([self._measured(system, lab, queries, answers) for lab, queries in asked])
            if kept is None:
                self._keep(part, system, measured)
                means = {name: round(sum(each) / len(each), 3) for name, each in measured.scores.items()}
                print(f"{part.heading}, {system.name}: {means | dict(measured.numbers)}", flush=True)
            found[part.heading, system.name] = measured
        return found

    def _cells(self) -> Iterator[tuple[Part, System, list[_Asked], Measured | None]]:
        if not self.systems:
            raise SystemExit("Nothing of this can be done without a language model: name one with --llm.")
        for part in self._experiment.parts:
            asked = self._asked(part)
            kept = dict(self._kept(part, [query.id for _, queries in asked for query in queries]))
            for system in self.systems:
                if not system.needs_field or all(lab.has(system.needs_field) for lab, _ in asked):
                    yield part, system, asked, kept.get(system.name)

    def _asked(self, part: Part) -> list[_Asked]:
        """The questions of a part, by the corpus that they are asked of."""
        left = self._options.limit or sys.maxsize
        asked: list[_Asked] = []
        for lab in self._corpora(part):
            lab.depth = min(part.depth or self._experiment.depth, len(lab.corpus.nodes))
            if not self._experiment.asks:
                asked.append((lab, []))
                continue
            groups = lab.task.groups_of
            queries = [q for q in lab.task.queries if not part.group or part.group in groups.get(q.id, ())][:left]
            left -= len(queries)
            asked += [(lab, queries)] if queries else []
        if not asked:
            raise SystemExit(f"{part.folder} has no questions {part.group!r}.")
        return asked

    def _corpora(self, part: Part) -> list[Lab]:
        """The corpus of a folder, or with `within` one a document; of one folder at a time, since they are large."""
        cut = (part.folder, part.within, part.chunk_tokens)
        if self._labs[0] != cut:
            tasks = load(
                self._options.data / part.folder,
                within=part.within,
                chunk_tokens=part.chunk_tokens,
                needs_questions=self._experiment.asks,
            )
            self._labs = (cut, [self._lab(part.folder, task) for task in tasks])
        return self._labs[1]

    def _lab(self, folder: str, task: Task) -> Lab:
        counting = Counting(model=self._embed_model, embed_batch_size=2048)
        return Lab(folder, task, counting, self._embed_model, self._llm, self._experiment.depth, self._options)

    def _work(self, system: System, lab: Lab, queries: Sequence[LabelledQuery]) -> Estimate:
        work = Estimate(embedded_texts=len(lab.corpus.nodes) + len(queries), embedding_is_exact=False)
        return work if self._llm is None else work + self._building(system, lab) + self._asking(system, lab, queries)

    def _building(self, system: System, lab: Lab) -> Estimate:
        nodes, extractor = list(lab.corpus.nodes), system.extractor(lab)
        if system.index is None:
            return Estimate() if extractor is None else extractor.estimate(nodes, self._llm)
        given = {"extractor": extractor, "transformations": [_AsTheyAre()], "llm": self._llm, "sample": 1}
        found = system.index.estimate(nodes, **given, **system.sizes)  # type: ignore[arg-type]
        return replace(found, embedded_texts=0)

    def _asking(self, system: System, lab: Lab, queries: Sequence[LabelledQuery]) -> Estimate:
        """The steps of a search, the reader and the graders, which read the longest passages and write all they may."""
        experiment = self._experiment
        if not experiment.asks:
            return Estimate()
        sizes = sorted(count_tokens(node.get_content()) for node in lab.corpus.nodes)
        context = sum(sizes[-min(lab.depth, experiment.passages) :]) + _TAG * min(lab.depth, experiment.passages)
        if experiment.context_tokens is not None:
            context = experiment.context_tokens + _TAG * (1 + experiment.context_tokens // max(1, sizes[0]))
        calls, seen = system.calls, sum(sizes[-min(lab.depth, _SEEN) :])
        if system.batches:
            calls, seen = calls + 2 + sum(sizes) // _BATCH, 2 * _BATCH
        work = Estimate()
        for query in queries:
            said = count_tokens(query.question) + sum(map(count_tokens, [*query.options, *query.answers]))
            work += Estimate(calls, calls * (_PROMPT + said + seen), calls * _REPLY)
            if experiment.reader is not None:
                work += Estimate(1, _PROMPT + said + context, _READ[experiment.reader])
            graded = experiment.grading_calls
            work += Estimate(graded, graded * (_PROMPT + said + 2 * _REPLY), graded * _REPLY)
        return work

    def _measured(
        self, system: System, lab: Lab, queries: Sequence[LabelledQuery], base: Mapping[str, str] | None
    ) -> Measured:
        before, texts, began = self._spent(), lab.embed_model.texts, time.perf_counter()
        built = system.build(lab)
        after_build, built_at = self._spent(), time.perf_counter()
        scores: dict[str, list[float]] = {}
        answers: dict[str, str] = {}
        if self._experiment.answers:
            scores, answers = self._answered(built, queries)
        elif self._experiment.measures:
            scores = self._ranked(built, lab, queries)
        asked, after = time.perf_counter(), self._spent()
        if answers:
            given = Answered(lab, queries, answers, base)
            scores |= {name: list(grader(given)) for name, grader in self._experiment.graders.items()}
        points = self._experiment.points
        return Measured(
            [query.id for query in queries],
            scores,
            round(built_at - began, 2),
            round(1000 * (asked - built_at) / max(1, len(queries)), 1),
            dict(after_build - before),
            dict(after - after_build),
            lab.embed_model.texts - texts,
            dict(self._spent() - after),
            {name: number(lab, built) for name, number in self._experiment.numbers.items()},
            answers if self._experiment.graders else {},
            [] if points is None else [list(point) for point in points(lab, built)],
        )

    def _answered(self, built: Any, queries: Sequence[LabelledQuery]) -> tuple[dict[str, list[float]], dict[str, str]]:
        """The scores of the reader, or without an LLM of the contexts, and the answers."""
        if isinstance(built, BaseQueryEngine):
            asked = {query.id: partial(built.query, query.question) for query in queries}
            return {}, {name: str(or_else(self._llm, ask, "")) for name, ask in asked.items()}
        experiment = self._experiment
        reader = None if self._llm is None else CountingReader(self._llm, style=experiment.reader or "plain")
        read = None if built is None else First(built, experiment.passages, self._llm)
        found = evaluate_answers(
            read, queries, reader, token_budget=experiment.context_tokens, num_workers=self._options.workers
        )
        columns = [experiment.bound] if reader is None else experiment.columns
        return {name: list(found.scores[name]) for name in columns}, dict(found.answers)

    def _ranked(self, retriever: Any, lab: Lab, queries: Sequence[LabelledQuery]) -> dict[str, list[float]]:
        scores: dict[str, list[float]] = {name: [] for name in self._experiment.measures}
        for query in queries:
            nodes = or_else(self._llm, partial(retriever.retrieve, query.question), [])
            ranking = lab.corpus.passages([node_id for each in nodes for node_id in self._ids(each.node, lab)])
            if lab.corpus.label_of:
                ranking = [str(label) for label in as_labels(ranking, lab.corpus.label_of)]
            for name, measure in self._experiment.measures.items():
                scores[name].append(measure(Found(lab, query, nodes, ranking)))
        return scores

    @staticmethod
    def _ids(node: Any, lab: Lab) -> list[str]:
        return [node.node_id] if node.node_id in lab.corpus.passage_of else []

    def _spent(self) -> Counter[str]:
        return Counter() if self._llm is None else Counter(self._llm.spent)

    # -- what is kept -----------------------------------------------------------------------------------

    def _fingerprint(self, part: Part) -> str:
        llm = "" if self._llm is None else self._llm.model.metadata.model_name
        parts = [
            sources(*METHODS),
            asdict(part),
            self._embed_model.model_name,
            self._options.tokens,
            llm,
            self.columns,
            self._experiment.depth,
            [self._options.bert_score, has_wordnet()] if self._experiment.graders else [],
            sorted(path.name for path in (self._options.data / FOLDER).glob("*")),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _kept(self, part: Part, ids: Sequence[str]) -> Iterator[tuple[str, Measured]]:
        if not self._path.exists():
            return
        with self._path.open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                measured = Measured(**row["measured"])
                if row["fingerprint"] == self._fingerprint(part) and list(measured.ids) == list(ids):
                    yield row["system"], measured

    def _keep(self, part: Part, system: System, measured: Measured) -> None:
        row = {"fingerprint": self._fingerprint(part), "part": part.heading, "system": system.name}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "measured": asdict(measured)}) + "\n")
