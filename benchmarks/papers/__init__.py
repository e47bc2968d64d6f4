"""The tables and figures of the papers, one file a paper and one engine for all: `python -m benchmarks.papers`."""
