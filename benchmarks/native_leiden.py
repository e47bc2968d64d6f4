"""Hierarchical Leiden by graspologic-native, as microsoft/graphrag calls it: `python native_leiden.py GRAPH.npz`.

It needs numpy and graspologic-native alone, so that another Python can have another version of it. Prints one JSON
object: seconds, memory, and the top communities.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import graspologic_native
import numpy as np

__all__ = ["main"]


def main(path: str) -> None:
    """Cluster a graph, and print what it took."""
    with np.load(path) as stored:
        n = int(stored["n"])
        columns = [stored[name].tolist() for name in ("one", "other", "weights")]
    names = [f"entity {i:07d}" for i in range(n)]
    before = _status("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    edges = [(names[a], names[b], float(w)) for a, b, w in sorted(zip(*columns, strict=True))]
    found = graspologic_native.hierarchical_leiden(
        edges,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=10,
        seed=0xDEADBEEF,
    )
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    peak = _status("VmHWM")
    top = {int(entry.node[-7:]): entry.cluster for entry in found if entry.level == 0}
    levels = sorted(
        ((e.level, e.cluster, int(e.node[-7:])) for e in found), key=lambda entry: (entry[0], entry[1], entry[2])
    )
    out = Path(path).with_suffix(".native.npz")
    np.savez(out, top=np.array([top.get(i, -1) for i in range(n)]), levels=np.array(levels))
    print(
        json.dumps(
            {
                "version": version("graspologic-native"),
                "s": seconds,
                "cpu_s": cpu_s,
                "mb": peak - before,
                "peak_mb": peak,
                "communities": len({(level, cluster) for level, cluster, _ in levels}),
                "out": str(out),
            }
        )
    )


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


if __name__ == "__main__":
    main(sys.argv[1])
