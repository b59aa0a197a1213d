"""Natural keys of spans and events.

A line that names no span (a summary, a number in a log, bare attributes) lands, too: its key is then the hash of its
content, so that it lands once.
"""

from __future__ import annotations

import json

from lake.identity import H


def span_key(trace_id: object, span_id: object, record: object) -> str:
    """Return the natural key of a span: `trace id/span id`, or a hash where it names not both.

    Args:
        trace_id: what stands in the place of the trace's id.
        span_id: what stands in the place of the span's id.
        record: the span, parsed; hashed where the ids are no texts.
    """
    if isinstance(trace_id, str) and isinstance(span_id, str) and trace_id and span_id:
        return f"{trace_id}/{span_id}"
    return "-/" + H(json.dumps(record, sort_keys=True))
