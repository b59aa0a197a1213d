"""Which tokens train."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.training.conftest import TOOLS, chat, make_tokenizer
from training.masks import MARKER, ChatEncoder, MaskError, training_template, unrendered
from training.models import TEMPLATES

OURS = (TEMPLATES / "smollm2.jinja").read_text()
UNMARKED = MARKER.sub("", OURS).replace("{%- endgeneration -%}", "")
# Qwen3's way: thinking of all but the last turn is dropped, so earlier turns render otherwise in a longer chat.
STRIPS_THINKING = """{%- for m in messages -%}
{{- '<|im_start|>' + m['role'] + '\n' -}}
{%- if m['role'] == 'assistant' and loop.last -%}
{{- '<think>' + (m['reasoning_content'] or '') + '</think>' -}}
{%- endif -%}
{{- m['content'] + '<|im_end|>\n' -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"""
NO_END = """{%- for m in messages -%}
{%- if m['role'] == 'assistant' -%}
{{- 'A: ' -}}{%- generation -%}{{- m['content'] -}}{%- endgeneration -%}{{- '<|im_end|>' -}}
{%- else -%}{{- 'U: ' + m['content'] -}}{%- endif -%}{%- endfor -%}"""

CALL = {"id": "c1", "name": "add", "arguments": '{"a": 1}'}
LONG: list[dict[str, Any]] = [
    {"role": "system", "content": "Be exact."},
    {"role": "user", "content": "What is 3 plus 1?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "4", "tool_call_id": "c1", "name": "add"},
    {"role": "assistant", "content": "It is 4."},
    {"role": "user", "content": "And ☃?"},
    {"role": "assistant", "content": "Snow ☃ man."},
]
TRAINED = [
    '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call><|im_end|>',
    "It is 4.<|im_end|>",
    "Snow ☃ man.<|im_end|>",
]


def trained_texts(
    tokenizer: Any, encoder: ChatEncoder, messages: list[dict[str, Any]], tools: str | None = None
) -> list[str]:
    encoded = encoder.encode(messages, tools)
    runs: list[list[int]] = []
    for i, (token, on) in enumerate(zip(encoded.input_ids, encoded.trains, strict=True)):
        if on and (i == 0 or not encoded.trains[i - 1]):
            runs.append([])
        if on:
            runs[-1].append(token)
    return [tokenizer.decode(run) for run in runs]


@pytest.mark.parametrize("template", [OURS, UNMARKED], ids=["markers", "prefixes"])
def test_assistant_turns_with_their_end_token_train_and_nothing_else(tokenizer: Any, template: str) -> None:
    assert trained_texts(tokenizer, ChatEncoder(tokenizer, template), LONG, TOOLS) == TRAINED


@pytest.mark.parametrize("template", [OURS, UNMARKED], ids=["markers", "prefixes"])
@pytest.mark.parametrize("muted", [0, 1, 2])
def test_a_turn_of_weight_0_does_not_train(tokenizer: Any, template: str, muted: int) -> None:
    at = [2, 4, 6][muted]
    messages = [turn | ({"weight": 0} if i == at else {}) for i, turn in enumerate(LONG)]
    rest = [text for i, text in enumerate(TRAINED) if i != muted]
    assert trained_texts(tokenizer, ChatEncoder(tokenizer, template), messages, TOOLS) == rest


def test_markers_and_prefixes_give_the_same_masks_on_every_shape_of_chat(tokenizer: Any) -> None:
    marked, by_prefix = ChatEncoder(tokenizer, OURS), ChatEncoder(tokenizer, UNMARKED)
    assert marked.marked and not by_prefix.marked
    for i in range(60):
        tools = TOOLS if i % 5 == 2 else None
        assert marked.encode(chat(i), tools) == by_prefix.encode(chat(i), tools)


def test_labels_are_the_ids_where_a_token_trains(tokenizer: Any) -> None:
    encoded = ChatEncoder(tokenizer).encode(LONG, TOOLS)
    assert encoded.labels == [t if on else -100 for t, on in zip(encoded.input_ids, encoded.trains, strict=True)]
    assert encoded.labels.count(tokenizer.convert_tokens_to_ids("<|im_end|>")) == 3


def test_a_template_that_rewrites_earlier_turns_is_refused(tokenizer: Any) -> None:
    encoder = ChatEncoder(tokenizer, STRIPS_THINKING)
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "reasoning": "c"}]
    with pytest.raises(MaskError, match=r"row 7.*cannot be taken from prefixes"):
        encoder.encode([*turns, *turns], name="row 7")


def test_a_template_that_leaves_the_end_token_out_of_the_mask_is_refused(tokenizer: Any) -> None:
    with pytest.raises(MaskError, match="no end-of-turn token"):
        ChatEncoder(tokenizer, NO_END).encode([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "a"}],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0}],
    ],
)
def test_a_chat_that_trains_nothing_is_an_error(tokenizer: Any, messages: list[dict[str, Any]]) -> None:
    with pytest.raises(MaskError, match="no token trains"):
        ChatEncoder(tokenizer).encode(messages)


def test_what_a_template_swallows_is_named(tokenizer: Any) -> None:
    basic = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + m['content'] + '<|im_end|>' }}{% endfor %}"
    assert unrendered(ChatEncoder(tokenizer, OURS), tools=True, reasoning=True) == []
    assert unrendered(ChatEncoder(tokenizer, basic), tools=True, reasoning=True) == [
        "tool schemas", "tool calls", "arguments", "reasoning",
    ]  # fmt: skip


def test_a_tokenizer_whose_template_trl_knows_gets_its_training_twin() -> None:
    from trl.chat_template_utils import get_training_chat_template, qwen2_5_chat_template

    tokenizer = make_tokenizer(qwen2_5_chat_template)
    assert MARKER.search(training_template(tokenizer))
    assert training_template(tokenizer) == get_training_chat_template(tokenizer)
    assert trained_texts(tokenizer, ChatEncoder(tokenizer), LONG, TOOLS)[1].strip() == "It is 4.<|im_end|>"


def test_arguments_that_are_no_object_stay_their_text(tokenizer: Any) -> None:
    turns = [LONG[1], LONG[2] | {"tool_calls": [CALL | {"arguments": '{"a": 1'}]}]
    (text,) = trained_texts(tokenizer, ChatEncoder(tokenizer), turns)
    assert json.dumps('{"a": 1') in text
