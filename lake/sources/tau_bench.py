"""tau-bench: runs with `traj` and `reward`, few-shot dialogues with `messages_display`."""

NAME = "tau_bench"
KINDS = ("traces",)
ORDER = 10
KEYS = ("traj", "reward", "task_id", "trial", "info", "messages_display")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be of tau-bench."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if isinstance(record.get("traj"), list) and "reward" in record:
        return None
    return (
        None
        if isinstance(record.get("messages_display"), str)
        else "neither 'traj' with 'reward' nor 'messages_display'"
    )
