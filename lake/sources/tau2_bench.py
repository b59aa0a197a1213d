"""tau2-bench simulations, one a file or under `simulations` of a results file: `messages` or `ticks`."""

NAME = "tau2_bench"
KINDS = ("traces",)
ORDER = 10
KEYS = ("task_id", "messages", "ticks", "reward_info", "termination_reason", "trial")
ITEMS = ("simulations", None)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a simulation."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if not isinstance(record.get("messages"), list) and not isinstance(record.get("ticks"), list):
        return "neither a list 'messages' nor a list 'ticks'"
    missing = [k for k in ("task_id", "termination_reason") if k not in record]
    return f"no key {missing[0]!r}" if missing else None
