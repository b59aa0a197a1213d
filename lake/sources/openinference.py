"""OpenInference spans (https://arize-ai.github.io/openinference/spec/): OTLP exports, span lines, lists."""

from lake.sources._otlp import all_attribute_names, natural_key, observed_at, split

__all__ = ["lacks", "natural_key", "observed_at", "split"]

NAME = "openinference"
KINDS = ("traces",)
ORDER = 15
IDENTITY = "span"
KEYS = ("attributes", "context", "openinference.span.kind", "parent_id", "status_code")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be an OpenInference span."""
    names = all_attribute_names(record)
    said = any(
        n.startswith(("openinference.", "llm.input_messages", "llm.output_messages")) or n == "openinference"
        for n in names
    )
    return None if said else "no attribute 'openinference.span.kind' or 'llm.input_messages'"
