"""Keys of web rows."""

# The most usual first.
TEXT_KEYS = (
    "text", "content", "raw_content", "page_content", "document", "body", "markdown", "article", "passage", "contents",
)  # fmt: skip
