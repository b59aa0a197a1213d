"""Formats, one module each; `lake.land` asks them in turn what a file is."""
