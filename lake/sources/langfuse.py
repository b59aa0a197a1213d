"""Langfuse trace exports: `{"trace": {...}, "observations": [...]}`, or the trace with its observations inside."""

NAME = "langfuse"
KINDS = ("traces",)
ORDER = 10
KEYS = ("trace", "observations")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a trace export."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    trace = record.get("trace", record)
    observations = record.get("observations", trace.get("observations") if isinstance(trace, dict) else None)
    if not isinstance(observations, list):
        return "no list 'observations'"
    return None if isinstance(trace, dict) and "id" in trace else "no trace with an id"
