"""UTF-8 that was read in another encoding and written again: found by a gate of ours, put right by ftfy.

ftfy knows the encodings that are mistaken for UTF-8 and which sequences of characters no language writes (Robyn Speer,
"ftfy", 2019, doi:10.5281/zenodo.2591652). Only its repair of encodings is used: quotes, entities and widths stay. Two
things hold it back. The gate passes a text on only where a sequence could be a character of UTF-8 that was misread,
for ftfy reads every text slowly, and most are sound. And its step that reads ISO-8859-1 as windows-1252 is left out: it
undoes no UTF-8, and makes `€ƒ` of two control characters.

Measured on paragraphs of the Universal Declaration, misread on purpose (tests/transforms/text/test_mojibake.py): 1,077
of 1,080 come back from ISO-8859-1, 616 of 639 from windows-1252, 656 of 1,080 from MacRoman; rules of our own, without
ftfy, put 1,053, 617 and none right. Its 9,718 lines stay as they are, in capitals too. Mixed texts cost most: one
sound character beside the mojibake keeps ftfy from decoding the text as a whole.
"""

from __future__ import annotations

import re

import ftfy

CONFIG = ftfy.TextFixerConfig(unescape_html=False, fix_c1_controls=False)
LATIN_1_STEP = ("decode", "windows-1252")

# windows-1252 with the five bytes that it leaves out, as browsers read it.
_CP1252 = [bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0xC0)]
_TAIL = "[\x80-\x9f" + "".join(map(re.escape, _CP1252[0x80:])) + "]"
# A capital at the end of a word and the mark that closes it, as in `AMANHÃ”`, are good Portuguese as well.
_WORD_END = "(?<=[A-ZÀ-Þ])[À-ß](?:[“”‘’–—…™€›‹„‚](?![^\\W\\d_])|[\xa0-\xbf](?![a-zà-ÿ]))"
_CHARACTER = f"(?:(?!{_WORD_END})[À-ß]{_TAIL}|[à-ï]{_TAIL}{{2}}|[ð-ô]{_TAIL}{{3}})"
# What stands alone between quotes is an example, as in a table that says what "Ã©" should be, and is left alone.
SIGN = re.compile(f"(?<![\"'`“‘]){_CHARACTER}|{_CHARACTER}(?![\"'`”’])|(?<=[a-z.,;:!?])Â ")
# The same in UTF-8, as far as a scan for one fixed first byte can tell; 20 times faster than the one above.
MAYBE = re.compile(rb"\xc3(?:[\x80-\xb4](?:\xc2|\xe2[\x80\x82\x84]|\xc5|\xc6\x92|\xcb)|\x82 )")
# Frequent characters as MacRoman, windows-1250 and windows-1251 read them, beside the signs that mathematics writes.
OTHERS = re.compile("‚Ä|√[©®§ºß°†]|Ă[©ˇ¶]|Ĺ[±‘ˇľ]|вЂ")
RARE = "‚√ĂĹЂ"


def undo(text: str) -> str:
    """Put right UTF-8 that was read in another encoding, as often as it happened.

    Args:
        text: any; lone surrogates are allowed.

    Returns:
        The text repaired, or as it was.

    >>> undo("FuÃŸ â€“ cafÃ©")
    'Fuß – café'
    >>> undo("CAFÉ… NÃO")
    'CAFÉ… NÃO'
    """
    if text.isascii() or not _is_suspect(text):
        return text
    repaired, plan = ftfy.fix_encoding_and_explain(text, CONFIG)
    steps = [(step.action, step.parameter) for step in plan or []]
    if LATIN_1_STEP not in steps:
        return repaired
    # ftfy goes on with what it repaired, so this step can follow others: those before its two halves are right.
    return ftfy.apply_plan(text, steps[: steps.index(LATIN_1_STEP) - 1])


def _is_suspect(text: str) -> bool:
    """Say whether a sequence of a text could be one character of UTF-8 that was misread."""
    if MAYBE.search(text.encode("utf-8", "surrogatepass")) and SIGN.search(text):
        return True
    # Each search for one character costs a tenth of the expression, and most texts have none of them.
    return any(character in text for character in RARE) and OTHERS.search(text) is not None
