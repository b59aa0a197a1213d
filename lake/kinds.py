"""The kinds that records land as; each has a raw table of its name."""

KINDS = ("traces", "web", "synthetic", "benchmark")
