"""Kernels' results kept and reused: memos, the fingerprints that they go by, and the digest of a project."""
