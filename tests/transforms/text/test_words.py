"""The tokeniser against a slow reference that was written from the rule alone."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.transforms.slow_words import slow_words
from transforms.text import words as W  # noqa: N812


def kernel(text: str) -> list[tuple[str, int, bool]]:
    texts = W.nfc(pa.array([text]))
    view = W.column(texts)
    found = W.words(view)
    data = view.data.tobytes()
    spans = zip(found.starts, found.stops, strict=True)
    shown = [W.shown(data[start:stop].decode()) for start, stop in spans]
    return list(zip(shown, found.weights.tolist(), found.letters.tolist(), strict=True))


TRICKY = [
    *"aZé_'’ʼ-.,0٣५ \n\u00ad\u200b\u200d\ufeff\u0301\u0345\ufe0f\u20e3ßẞİıςΣǅ①ⅷ²ª",
    *"漢字々〇ー・かが\u3099ｶﾞ\u302a가각ᄀ\u1161\u11a8ไทยำ่๑ລາວខ្មែរមမြန်\u1039",
    *"हिन्दी\u093cعربي\u064b\u0640\u0600❤👍🏽𝒜𝟘𐐀𞤀𠀀\U000e0101\u212b\u1e9b\u0323",
]


@settings(max_examples=examples(300))
@given(st.text(st.one_of(st.sampled_from(TRICKY), st.characters(codec="utf-8")), max_size=40))
@example("e\u0301\u00adcole")
@example("か\u3099 ｶ\uff9e")
@example("")
def test_words_are_those_of_the_reference_on_any_unicode(text: str) -> None:
    assert kernel(text) == slow_words(text)


def test_every_character_has_the_class_that_the_rule_gives_it() -> None:
    points = [p for p in range(sys.maxunicode + 1) if not 0xD800 <= p < 0xE000]
    wrong = [hex(p) for p in points if p % 7 == 0 and kernel_class(p) != slow_words(f"{chr(p)}")[:1]]
    assert wrong == []


def kernel_class(point: int) -> list[tuple[str, int, bool]]:
    """What the table says of a character that stands alone, if NFC leaves it alone."""
    character = unicodedata.normalize("NFC", chr(point))
    if len(character) > 1:
        return slow_words(chr(point))[:1]
    fold = int(W.characters().folds[ord(character)])
    kind = (fold >> 24) & 15
    if kind in (W._SPLIT, W._SKIP):
        return []
    weight = {W._HALF_LETTER: 3, W._THIRD_LETTER: 2, W._THIRD_MARK: 2}.get(kind, 6)
    return [(chr(fold & 0x1FFFFF), weight, kind in (W._LETTER, W._HALF_LETTER, W._THIRD_LETTER))]


@settings(max_examples=examples(300))
@given(st.lists(st.text(st.one_of(st.sampled_from(TRICKY), st.characters(codec="utf-8")), max_size=12), max_size=8))
def test_a_batch_gives_each_text_the_words_it_has_alone(texts: list[str]) -> None:
    column = W.nfc(pa.array(texts, pa.string()))
    together = W.words(W.column(column))
    for i, text in enumerate(texts):
        alone = W.words(W.column(W.nfc(pa.array([text]))))
        assert np.array_equal(together.codes[together.offsets[i] : together.offsets[i + 1]], alone.codes)


@settings(max_examples=examples(150))
@given(st.lists(st.text(st.one_of(st.sampled_from(TRICKY), st.characters(codec="utf-8")), max_size=12), max_size=8))
def test_nfc_is_pythons_for_every_row(texts: list[str]) -> None:
    assert W.nfc(pa.array(texts, pa.string())).to_pylist() == [unicodedata.normalize("NFC", t) for t in texts]


def test_nfc_looks_at_every_character_that_it_may_change() -> None:
    table = W.characters().folds
    for point in W._assigned():
        changes = unicodedata.normalize("NFC", chr(point)) != chr(point)
        assert not (changes or unicodedata.combining(chr(point))) or table[point] & W._UNSAFE, hex(point)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Tower's 1st_floor, naïve!", ["the", "tower", "s", "1st", "floor", "naïve"]),
        ("co\u00adoperate zero\u200bwidth", ["cooperate", "zerowidth"]),
        ("GPT4模型かな", ["gpt4", "模", "型", "か", "な"]),
        ("İSTANBUL ΣΊΣΥΦΟΣ", ["istanbul", "σίσυφοσ"]),
        ("I ❤\ufe0f NY", ["i", "ny"]),
    ],
)
def test_words_of_known_texts(text: str, expected: list[str]) -> None:
    assert [word for word, _, _ in kernel(text)] == expected


def test_different_words_have_different_hashes(data) -> None:  # type: ignore[no-untyped-def]
    texts = [p.read_text("utf-8") for p in sorted((data / "web" / "speeches").rglob("*.txt"))] or ["nothing"]
    view = W.column(W.nfc(pa.array(texts)))
    found = W.words(view)
    raw = view.data.tobytes()
    names = {
        (int(code), W.shown(raw[a:b].decode()))
        for code, a, b in zip(found.codes, found.starts, found.stops, strict=True)
    }
    assert len({code for code, _ in names}) == len({name for _, name in names}) == len(names) > 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" a\u00a0 b\r\n\tc\u3000", "a b c"), ("e\u0301", "é"), ("a\x1fb", "a\x1fb"), ("\u2028\x85", ""), ("Aa", "Aa")],
)
def test_folding_takes_unicode_white_space_and_nothing_else(text: str, expected: str) -> None:
    assert W.folded(text) == expected
