"""OpenTelemetry spans of generative AI, current and deprecated names, of OpenLLMetry and the Vercel AI SDK."""

from lake.sources._otlp import all_attribute_names
from lake.sources._otlp import natural_key as natural_key
from lake.sources._otlp import observed_at as observed_at
from lake.sources._otlp import split as split

NAME = "otel_genai"
KINDS = ("traces",)
ORDER = 20
KEYS = ("attributes", "spanContext", "traceId", "spanId", "resourceSpans", "gen_ai.operation.name")
ITEMS = (None,)

PREFIXES = ("gen_ai.", "ai.operationId", "ai.prompt", "ai.response", "traceloop.", "llm.prompts", "llm.request.type")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be such a span."""
    if any(name.startswith(PREFIXES) for name in all_attribute_names(record)):
        return None
    return "no attribute that begins with 'gen_ai.' or 'ai.operationId'"
