"""OpenInference spans (https://arize-ai.github.io/openinference/spec/): OTLP exports, span lines, lists."""

from lake.sources._otlp import all_attribute_names
from lake.sources._otlp import natural_key as natural_key
from lake.sources._otlp import observed_at as observed_at
from lake.sources._otlp import split as split

NAME = "openinference"
KINDS = ("traces",)
ORDER = 15
KEYS = ("attributes", "context", "openinference.span.kind", "parent_id", "status_code")
ITEMS = (None,)

PREFIXES = ("openinference.", "llm.input_messages", "llm.output_messages")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be an OpenInference span."""
    if any(name.startswith(PREFIXES) for name in all_attribute_names(record)):
        return None
    return "no attribute 'openinference.span.kind' or 'llm.input_messages'"
