"""Which tokens of a chat train: assistant turns, their end-of-turn token included, and nothing else.

A row is rendered once and tokenised once; the trained parts are spans of the rendered text. A template with
`{% generation %}` markers says its spans itself. For one without, span i is what `messages[:i+1]` renders beyond
`messages[:i]` and the generation prompt, and the proof that this is right is made on every row: each of those
renderings must be a prefix of the next and of the whole. A template that rewrites earlier turns (Qwen3 strips
thinking) fails the proof and is refused: masks by length would train on user tokens there
(NVIDIA-NeMo/Automodel PR #3024). Spans are cut after the end-of-turn token, so the line break behind it is not trained.

Costs what templating and tokenising cost; prefix rendering renders a chat once more for each assistant turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lake.errors import UsageError
from training.formats import hf_messages, hf_tools

MARKER = re.compile(r"\{%-?\s*generation\s*-?%\}")


class MaskError(UsageError):
    """A row or a template for which no right mask exists."""


@dataclass(frozen=True)
class Encoded:
    """A row as the trainer sees it.

    Attributes:
        input_ids: token ids.
        trains: one bool a token.
    """

    input_ids: list[int]
    trains: list[bool]

    @property
    def labels(self) -> list[int]:
        """The ids, -100 where a token does not train."""
        return [token if on else -100 for token, on in zip(self.input_ids, self.trains, strict=True)]


class ChatEncoder:
    """A tokenizer and a chat template that together turn rows into ids and masks.

    Args:
        tokenizer: a fast HF tokenizer.
        template: chat template; default the tokenizer's own, or TRL's training twin of it where TRL knows it.
    """

    def __init__(self, tokenizer: Any, template: str | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise MaskError(
                f"{type(tokenizer).__name__} is no fast tokenizer; masks need the offsets of its tokens. "
                "Convert it with transformers' AutoTokenizer(..., use_fast=True)."
            )
        self.tokenizer = tokenizer
        self.template = template or training_template(tokenizer)
        self.marked = MARKER.search(self.template) is not None
        added = tokenizer.get_added_vocab()
        self.added_ids = frozenset(added.values())
        self.end_texts = tuple(text for text in added if text.strip())

    def encode(self, messages: Sequence[Mapping[str, Any]], tools: str | None = None, name: str = "row") -> Encoded:
        """Render, tokenise and mask one chat.

        Args:
            messages: turns, as in the tables; `weight` 0 keeps an assistant turn from training.
            tools: JSON text of the tool schemas.
            name: how errors call the row.

        Raises:
            MaskError: the template refuses the chat, is not prefix-stable, leaves the end-of-turn token out, or
                nothing of the chat trains.
        """
        chat, schemas = hf_messages(messages), hf_tools(tools)
        text, spans = self._marked(chat, schemas, name) if self.marked else self._by_prefixes(chat, schemas, name)
        turns = [turn for turn in messages if turn["role"] == "assistant"]
        if len(spans) != len(turns):
            raise MaskError(
                f"{name}: the chat template marks {len(spans)} generated spans and the chat has {len(turns)} assistant "
                "turns; expected one a turn. Mend its {% generation %} blocks."
            )
        wanted = [self._trim(text, span) for span, turn in zip(spans, turns, strict=True) if turn.get("weight") != 0]
        return self._tokens(text, wanted, name)

    def _tokens(self, text: str, wanted: list[tuple[int, int]], name: str) -> Encoded:
        out = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids, trains = list(out["input_ids"]), [False] * len(out["input_ids"])
        which = 0
        ends: dict[int, int] = {}
        for i, (start, end) in enumerate(out["offset_mapping"]):
            while which < len(wanted) and start >= wanted[which][1]:
                which += 1
            # A token over the border trains, as in transformers: else "A: " + "yes" would lose its " yes".
            if which < len(wanted) and end > wanted[which][0]:
                trains[i] = True
                ends[which] = ids[i]
        if not ends:
            raise MaskError(
                f"{name}: no token trains; the chat has no assistant turn with a weight other than 0. "
                "Leave such rows out with `where:`."
            )
        if bad := [self.tokenizer.decode([token]) for token in ends.values() if token not in self.added_ids]:
            raise MaskError(
                f"{name}: a trained turn ends in {bad[0]!r}, which is no end-of-turn token, so the model would never "
                "learn to stop. Put the token that ends a turn inside {% generation %} ... {% endgeneration %}."
            )
        return Encoded(ids, trains)

    def _trim(self, text: str, span: tuple[int, int]) -> tuple[int, int]:
        """Cut white space behind the end-of-turn token, which some templates count to the turn."""
        kept = text[span[0] : span[1]].rstrip()
        return (span[0], span[0] + len(kept)) if kept.endswith(self.end_texts) else span

    def _marked(self, chat: list[Any], tools: list[Any] | None, name: str) -> tuple[str, list[tuple[int, int]]]:
        text, spans = self.render(chat, tools, name, spans=True)
        return text, [tuple(span) for span in spans]

    def _by_prefixes(self, chat: list[Any], tools: list[Any] | None, name: str) -> tuple[str, list[tuple[int, int]]]:
        whole, _ = self.render(chat, tools, name)
        spans = []
        for i, turn in enumerate(chat):
            if turn["role"] != "assistant":
                continue
            before, _ = self.render(chat[:i], tools, name, prompt=True)
            after = whole if i + 1 == len(chat) else self.render(chat[: i + 1], tools, name)[0]
            for shorter, longer in ((before, after), (after, whole)):
                if not longer.startswith(shorter):
                    at = next((k for k, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(longer))
                    raise MaskError(
                        f"{name}: the chat template renders the chat up to turn {i} otherwise than at the start of "
                        f"the longer chat ({shorter[at : at + 20]!r} against {longer[at : at + 20]!r}), so masks "
                        "cannot be taken from prefixes. Use a template with {% generation %} markers (chat_template:)."
                    )
            spans.append((len(before), len(after)))
        return whole, spans

    def render(
        self, chat: list[Any], tools: list[Any] | None, name: str, *, prompt: bool = False, spans: bool = False
    ) -> tuple[str, list[Any]]:
        """Render HF messages.

        Args:
            chat: of `hf_messages`.
            tools: of `hf_tools`.
            name: how errors call the row.
            prompt: end with the header of an assistant turn.
            spans: return the spans that the template marks, too.

        Raises:
            MaskError: the template refuses the chat.
        """
        from jinja2.exceptions import TemplateError
        from transformers.utils.chat_template_utils import render_jinja_template

        try:
            texts, marked_spans = render_jinja_template(
                conversations=[chat], tools=tools, chat_template=self.template, return_assistant_tokens_mask=spans,
                add_generation_prompt=prompt, **self.tokenizer.special_tokens_map,
            )  # fmt: skip
        except (TemplateError, TypeError) as error:
            raise MaskError(
                f"{name}: the chat template refuses the chat ({error}). Leave such rows out with `where:`, or name a "
                "template that takes them with `chat_template:`."
            ) from error
        return texts[0], marked_spans[0] if spans else []


def training_template(tokenizer: Any) -> str:
    """Return the template to train with: the tokenizer's own, or TRL's twin of it that marks what is generated.

    Raises:
        MaskError: the tokenizer has no chat template.
    """
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if not template:
        raise MaskError("the tokenizer has no chat template. Name a Jinja file with `chat_template:`.")
    if MARKER.search(template):
        return str(template)
    from trl.chat_template_utils import get_training_chat_template

    try:
        return str(get_training_chat_template(tokenizer) or template)
    except ValueError:  # none of those that TRL knows byte for byte; prefixes are proven row by row instead
        return str(template)


def unrendered(encoder: ChatEncoder, *, tools: bool, reasoning: bool) -> list[str]:
    """Say what of a chat the template swallows without a word.

    The basic Llama 3 template never reads `tool_calls`; training on agent runs with it trains on empty turns.

    Args:
        encoder: with the template.
        tools: ask about tool schemas, calls and results.
        reasoning: ask about reasoning.

    Returns:
        Of `tool schemas`, `tool calls`, `arguments`, `tool results`, `reasoning`, those that do not come through.
    """
    schema = json.dumps([{"type": "function", "function": {"name": "qzname", "description": "qzschema"}}])
    chat: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    if tools:
        call = {"id": "qzid00001", "name": "qzname", "arguments": '{"a": "qzvalue"}'}
        chat.append({"role": "assistant", "content": "", "tool_calls": [call]})
        chat.append({"role": "tool", "name": "qzname", "tool_call_id": "qzid00001", "content": "qzresult"})
    chat.append({"role": "assistant", "content": "yes", "reasoning": "qzthought" if reasoning else None})
    text, _ = encoder.render(hf_messages(chat), hf_tools(schema) if tools else None, "a probe of the template")
    asked = {"tool schemas": "qzschema", "tool calls": "qzname", "arguments": "qzvalue", "tool results": "qzresult"}
    wanted = (asked if tools else {}) | ({"reasoning": "qzthought"} if reasoning else {})
    return [what for what, mark in wanted.items() if mark not in text]
