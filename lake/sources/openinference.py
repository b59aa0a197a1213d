"""OpenInference spans (https://arize-ai.github.io/openinference/spec/): OTLP exports, span lines, lists."""

from lake.sources._otlp import all_attribute_names, natural_key, observed_at, split

__all__ = ["lacks", "natural_key", "observed_at", "split"]

NAME = "openinference"
KINDS = ("traces",)
ORDER = 15
IDENTITY = "span"
KEYS = ("attributes", "context", "openinference.span.kind", "parent_id", "status_code")

PREFIXES = ("openinference.", "llm.input_messages", "llm.output_messages")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be an OpenInference span."""
    if any(name.startswith(PREFIXES) for name in all_attribute_names(record)):
        return None
    return "no attribute 'openinference.span.kind' or 'llm.input_messages'"
