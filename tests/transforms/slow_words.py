"""The words of a text, one character after the other, written from the rule alone and from character names."""

from __future__ import annotations

import functools
import unicodedata

UNSPACED = ("THAI", "LAO", "KHMER", "MYANMAR")
KANA = ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HALFWIDTH", "HENTAIGANA")


@functools.cache
def described(character: str) -> tuple[str, int, bool, bool] | None:
    """(lower case, weight, whether it is a letter, whether it is a mark) of a character of words; "" is skipped."""
    category = unicodedata.category(character)
    name = unicodedata.name(character, "")
    if category == "Cf" or "VARIATION SELECTOR" in name or name == "COMBINING GRAPHEME JOINER":
        return "", 0, False, False
    is_word = category.startswith(("L", "M")) or category == "Nd" or character == "〇"
    if not is_word or name.endswith("MODIFIER LETTER APOSTROPHE") or name == "MODIFIER LETTER DOUBLE APOSTROPHE":
        return None
    script = name.partition(" ")[0]
    is_han = name.startswith(("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "IDEOGRAPHIC")) and category[0] != "M"
    is_kana = script in KANA and ("KATAKANA" in name or "HIRAGANA" in name or "HENTAIGANA" in name)
    weight = 2 if script in UNSPACED else 3 if is_han or (is_kana and category[0] != "M") else 6
    return character.lower()[0], weight, category[0] == "L" or character == "〇", category[0] == "M" and weight == 6


def slow_words(text: str) -> list[tuple[str, int, bool]]:
    """(word, weight in sixths, holds a letter)."""
    found: list[tuple[str, int, bool]] = []
    is_open = False
    for character in unicodedata.normalize("NFC", text):
        told = described(character)
        if told is None:
            is_open = False
            continue
        low, weight, is_letter, is_mark = told
        if not low:
            continue
        if is_open and ((weight == 6 and found[-1][1] == 6) or is_mark):
            word, before, had = found[-1]
            found[-1] = (word + low, before, had or is_letter)
        else:
            found.append((low, weight, is_letter))
            is_open = True
    return found


def slow_fold(text: str) -> str:
    """NFC, and Unicode's White_Space folded."""
    spaces = [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
    for space in spaces:
        text = text.replace(chr(space), " ")
    return " ".join(part for part in unicodedata.normalize("NFC", text).split(" ") if part)
