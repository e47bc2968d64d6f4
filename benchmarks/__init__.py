"""Quality and speed of the methods, beside their peers: `python -m benchmarks.quality`, `python -m benchmarks.speed`."""
