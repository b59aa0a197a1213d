"""Releases: what a workspace holds is built, audited and published as one immutable set of table versions."""
