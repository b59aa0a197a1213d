"""Keys of chats, pairs, labels, recorded calls and spans."""

# Turns

CONVERSATION_KEYS = ("conversations", "conversation", "items")  # a list of ShareGPT turns
ROLE_KEYS = ("role", "from", "type", "speaker", "author")  # of these the first whose name is a role counts
ENVELOPE_KEYS = ("message", "kwargs", "data")  # LangChain, AutoGen and exports keep the message itself there
_NAMES = {  # lower case
    "system": ("system", "developer", "systemmessage", "systemprompt"),
    "user": ("user", "human", "prompter", "customer", "humanmessage", "usermessage"),
    "assistant": (
        *("assistant", "gpt", "ai", "bot", "model", "agent", "chatbot", "aimessage", "assistantmessage", "chatgpt"),
        *("bing", "bard", "claude", "function_call", "aimessagechunk", "function-call"),
    ),
    "tool": (
        *("tool", "function", "observation", "ipython", "tool_response", "toolmessage", "functionmessage"),
        *("function_response", "tool_result", "tool_results", "environment"),
    ),
}
ROLES = {name: role for role, names in _NAMES.items() for name in names}
"""What the dialects call the four roles of a turn, lower case."""

# Rows

ANSWER_KEYS = ("output", "response", "completion", "answer")  # beside an `instruction`
PROMPT_KEYS = ("prompt", "question", "query", "problem")
COMPLETION_KEYS = ("completion", "response", "output", "answer", "solution")
SIDE_KEYS = (  # chosen, rejected
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
    ("chosen_response", "rejected_response"),
    ("response_chosen", "response_rejected"),
)
LABEL_KEYS = ("label", "kto_tag")  # of TRL, of LLaMA-Factory
LABELS = {True: True, False: False, "true": True, "false": False, "True": True, "False": False}
"""What a label may be, and its verdict; 1 and 0 are found as well, being equal to the booleans."""
SYSTEM_KEYS = ("system", "system_prompt", "system_message")  # the system prompt beside the texts
CREATED_KEYS = ("created_at", "timestamp", "created", "date")
SPEAKERS = {"Human": "user", "Assistant": "assistant"}  # of HH's dialogues, each before a colon

# Chats and recorded calls of a model

# Beside those of rows, since other names occur and another one counts first.
CALL_SYSTEM_KEYS = ("system", "system_prompt", "instructions", "system_instruction", "systemInstruction")
CALL_CREATED_KEYS = ("created", "created_at", "createdAt", "timestamp", "create_time", "start_time", "tstamp")
REQUEST_KEYS = ("request", "req", "reqPayload", "request_body")
RESPONSE_KEYS = ("response", "resp", "respPayload", "response_body", "completion")
HTTP_REQUEST_KEYS = ("url", "method")  # beside a `body`
HTTP_KEYS = ("status", "headers", *HTTP_REQUEST_KEYS)
RESPONSE_OBJECTS = ("chat.completion", "text_completion", "response")  # what `object` says of a response
CHUNK_OBJECT = "chat.completion.chunk"
ANTHROPIC_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
ANTHROPIC_RESULTS = (
    "tool_result", "mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
)  # fmt: skip
ANTHROPIC_THOUGHTS = ("thinking", "redacted_thinking")

# Spans

SPAN_CONTEXT_KEYS = ("spanContext", "context", "span_context")  # objects that may hold the ids
TRACE_ID_KEYS = ("traceId", "trace_id")
SPAN_ID_KEYS = ("spanId", "span_id")
START_KEYS = ("startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time")
END_KEYS = ("endTimeUnixNano", "end_time_unix_nano", "endTime", "end_time")
