"""`python -m benchmarks.speed METHOD`: one JSON object a measurement, ours beside the peer's.

A module that measures has `measurements()`, a generator of dictionaries of JSON values: what was measured
(`name`), our figures, those of a peer where there is one, and what was set as a goal (`to_reach`), with units in the
keys. It measures when it is asked for the next one, so that figures are printed as they come. `benchmarks.measuring`
has the clocks; what must not share a process with the rest, such as memory, is measured through `benchmarks.apart`.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["METHODS", "main", "measure"]

METHODS: dict[str, tuple[str, ...]] = {
    "gemrag": ("benchmarks.speed_gemrag",),
    "graphrag": ("benchmarks.speed_graphrag",),
    "hipporag": ("benchmarks.speed_hipporag_walk", "benchmarks.speed_hipporag"),
    "mrag": ("benchmarks.speed_mrag",),
    "pages": ("benchmarks.speed_pages",),
    "pgrag": ("benchmarks.speed_pgrag",),
    "ragkit": ("benchmarks.speed_lexical",),
    "raptor": ("benchmarks.speed_store", "benchmarks.speed_clustering", "benchmarks.speed_raptor"),
    "sprag": ("benchmarks.speed_sprag", "benchmarks.speed_sprag_index"),
    "stores": ("benchmarks.speed_sql_graph", "benchmarks.speed_sql_lexical", "benchmarks.speed_served"),
}


def measure(modules: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The measurements of modules, one after the other, each with the machine that it was taken on."""
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    for module in modules:
        found: Iterator[Mapping[str, Any]] = importlib.import_module(module).measurements()
        for measurement in found:
            yield {"module": module.rpartition(".")[2], **measurement, "on": machine}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("method", choices=sorted(METHODS))
    parser.add_argument("--only", default="", help="modules whose name contains this")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    modules = [module for module in METHODS[options.method] if options.only in module]
    if not modules:
        raise SystemExit(
            f"No module of {options.method} contains {options.only!r}: {', '.join(METHODS[options.method])}"
        )
    for measurement in measure(modules):
        print(json.dumps(measurement, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
