"""Keys of chats, pairs, labels, recorded calls and spans."""

# Turns

CONVERSATION_KEYS = ("conversations", "conversation", "items")  # a list of ShareGPT turns

# Rows

PROMPT_KEYS = ("prompt", "question", "query", "problem")
COMPLETION_KEYS = ("completion", "response", "output", "answer", "solution")
LABEL_KEYS = ("label", "kto_tag")  # of TRL, of LLaMA-Factory
LABELS = {True: True, False: False, "true": True, "false": False, "True": True, "False": False}
"""What a label may be, and its verdict; 1 and 0 are found as well, being equal to the booleans."""
