"""Speed of HippoRAG's index: near phrases, one insert, opening. One dictionary a measurement; no model is asked.

Each measurement runs in a process of its own, so that its memory can be told. Vectors are made up: groups of
near phrases around random directions, unlike one another.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["measurements"]

ROOT = Path(__file__).resolve().parents[1]

_SETUP = """
import json, os, resource, statistics, sys, time, zlib
import numpy as np
from llama_index.core import Settings, StorageContext, load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.hipporag import HippoRAGIndex, RecordedExtractor

DIMENSION, GROUP = 384, 4  # phrases of one group are near to one another (cosine about .87)
spent = 0.0

class MadeUp(BaseEmbedding):
    def vectors(self, texts):
        global spent
        start = time.perf_counter()
        out = []
        for text in texts:
            number = int(text.split()[-1]) if text.split()[-1].isdigit() else zlib.crc32(text.encode())
            centre = np.random.default_rng(number // GROUP).normal(size=DIMENSION)
            noise = np.random.default_rng(10**9 + number).normal(size=DIMENSION)
            out.append((centre + 0.38 * noise).tolist())
        spent += time.perf_counter() - start
        return out
    def _get_text_embeddings(self, texts): return self.vectors(texts)
    def _get_text_embedding(self, text): return self.vectors([text])[0]
    def _get_query_embedding(self, query): return self.vectors([query])[0]
    async def _aget_query_embedding(self, query): return self.vectors([query])[0]

def passage(i, phrases):
    names = [f"phrase number {n}" for n in phrases]
    return {"entities": names, "triples": [[a, "has", b] for a, b in zip(names, names[1:])]}

def corpus(passages, phrases, seed=0):
    # Nine phrases a passage; every phrase at least once, some of them often.
    random = np.random.default_rng(seed)
    again = (phrases * random.random(9 * passages - phrases) ** 3).astype(int)
    rows = np.concatenate([random.permutation(phrases), again])
    return {f"p{i:06d}": passage(i, row.tolist()) for i, row in enumerate(rows[: 9 * passages].reshape(passages, 9))}

def nodes(records):
    random = np.random.default_rng(1)
    return [TextNode(id_=i, text=f"passage {i}", embedding=random.normal(size=DIMENSION).tolist()) for i in records]

def peak_mb(): return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
model = MadeUp(embed_batch_size=2048)
"""

_GROWING = """
from llama_index.hipporag.deriving import GraphWriter
phrases = int(sys.argv[1])
records = corpus(phrases // 8, phrases)
searching = {"wall": 0.0, "cpu": 0.0}
plain = GraphWriter._with_new
def timed(self, state, grown):
    wall, cpu = time.perf_counter(), time.process_time()
    found = plain(self, state, grown)
    searching["wall"] += time.perf_counter() - wall
    searching["cpu"] += time.process_time() - cpu
    return found
GraphWriter._with_new = timed
start, cpu = time.perf_counter(), time.process_time()
extractor = RecordedExtractor(records)
index = HippoRAGIndex(nodes=nodes(records), extractor=extractor, embed_model=model, fact_vectors=False)
seconds = time.perf_counter() - start - spent
print(json.dumps({
    "what": f"near phrases of {len(index._state.phrases)} phrases, exact, {DIMENSION} dimensions",
    "near_phrases": index.index_struct.counters["near_phrases"],
    "search_wall_s": round(searching["wall"], 1), "search_cpu_s": round(searching["cpu"], 1),
    "whole_build_wall_s": round(seconds, 1), "peak_mb": peak_mb(), "to_reach": "under 300 s and 2 GB on two cores",
}), flush=True)
walls, cpus = [], []
for i in range(15):
    new = {f"new{i}": passage(i, [10_000_000 + 9 * i + k for k in range(8)] + [i])}
    extractor.add(new)
    node = TextNode(id_=f"new{i}", text=f"new {i}", embedding=np.ones(DIMENSION).tolist())
    spent, wall, cpu = 0.0, time.perf_counter(), time.process_time()
    index.insert_nodes([node])
    walls.append((time.perf_counter() - wall - spent) * 1000)
    cpus.append((time.process_time() - cpu - spent) * 1000)
print(json.dumps({
    "what": f"inserting one passage with 8 new phrases into {phrases} phrases, without LLM and embedding",
    "wall_ms": round(statistics.median(walls), 1), "cpu_ms": round(statistics.median(cpus), 1),
    "to_reach": "under 50 ms",
}), flush=True)
spent, wall = 0.0, time.perf_counter()
index.as_retriever().retrieve("phrase number 17")
first = time.perf_counter() - wall - spent
spent, wall = 0.0, time.perf_counter()
index.as_retriever().retrieve("phrase number 4711 and phrase number 99")
print(json.dumps({
    "what": f"a question over {phrases} phrases and {len(index._state.chunks)} passages, after an insert and again",
    "first_ms": round(first * 1000, 1), "again_ms": round((time.perf_counter() - wall - spent) * 1000, 1),
}), flush=True)
"""

_STORING = """
records = corpus(6000, 48000)
index = HippoRAGIndex(nodes=nodes(records), extractor=RecordedExtractor(records), embed_model=model)
index.storage_context.persist(sys.argv[1])
"""

_OPENING = """
Settings.embed_model = model
start, cpu = time.perf_counter(), time.process_time()
context = StorageContext.from_defaults(persist_dir=sys.argv[1])
index = load_index_from_storage(context, extractor=RecordedExtractor())
opened = time.perf_counter() - start
found = index.as_retriever(similarity_top_k=5).retrieve("What about phrase number 4711?")
print(json.dumps({
    "what": f"opening a persisted index of {len(index._state.chunks)} passages, {len(index._state.phrases)} phrases "
            f"and {len(index._state.facts)} facts, and answering the first question",
    "wall_s": round(time.perf_counter() - start, 2), "cpu_s": round(time.process_time() - cpu, 2),
    "of_which_opening_s": round(opened, 2), "passages_found": len(found), "peak_mb": peak_mb(), "to_reach": "under 3 s",
}), flush=True)
"""


def _run(code: str, *arguments: str) -> Iterator[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", _SETUP + code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    yield from (json.loads(line) for line in done.stdout.splitlines())


def measurements(phrases: int = 160_000) -> Iterator[dict[str, Any]]:
    """Near phrases of many phrases, an insert among them, and opening 6,000 passages."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        list(_run(_STORING, folder))
        yield from _run(_OPENING, folder)
    yield from _run(_GROWING, str(phrases))
