"""FastChat's judging files: questions with `turns`, answers with `choices[].turns`, judge prompts."""

NAME = "fastchat"
KINDS = ("traces",)
ORDER = 35
KEYS = ("question_id", "category", "turns", "reference", "choices", "prompt_template", "system_prompt")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be of these files."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if isinstance(record.get("prompt_template"), str) and "system_prompt" in record:
        return None
    if "question_id" not in record:
        return "no key 'question_id'"
    choices = record.get("choices")
    answered = isinstance(choices, list) and choices and all(isinstance(c, dict) and "turns" in c for c in choices)
    return None if answered or isinstance(record.get("turns"), list) else "no 'turns'"
