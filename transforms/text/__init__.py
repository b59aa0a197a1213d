"""Texts: bytes to text, HTML and HTTP included, and text to words."""
