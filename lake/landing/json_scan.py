"""JSON at the byte level: where records end, and whether one is JSON.

Strict RFC 8259: no NaN, no trailing comma, no control character in a string (DuckDB's json_valid lets the first two
pass, on which the kernels would stumble later). Whether the bytes are UTF-8 is checked apart, by Arrow.

msgspec passes over a record without building its values. It refuses all that `check` refuses, and of what is JSON two
things: an escape of half a surrogate pair, and nesting deeper than Python's recursion limit. So `check`, compiled with
numba, judges what msgspec refuses, and says why. On one core, over the 102,544 JSON records of real data sets (70.9 MB)
1,251 MB/s against 774 by `check` alone, over 251.6 MB of made chats 1,960 against 1,053; the landing of these chats
takes 8 % less processor time, and no more by the clock, though msgspec keeps Python's lock (`bench_land.py --check
FOLDER` in `tests/bench`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numba
import numpy as np
from numpy.typing import NDArray

MAX_DEPTH = 10_000  # of nesting; readers of JSON give up far earlier

PROBLEMS = {
    1: "ends before its JSON value is complete",
    2: "a value was expected",
    3: "a control character or line end stands in a string",
    4: "an escape in a string is none of JSON",
    5: "a key in double quotes was expected",
    6: "':' was expected after a key",
    7: "',' or a closing bracket was expected",
    8: "a number is none of JSON",
    9: "something follows the JSON value",
    10: f"nested deeper than {MAX_DEPTH}",
}


def _table(pairs: dict[int, bytes]) -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for value, characters in pairs.items():
        table[list(characters)] = value
    return table


SPACE = _table({1: b" \t\r\n"})
DIGIT = _table({1: b"0123456789"})
HEX = _table({1: b"0123456789abcdefABCDEF"})
PLAIN = np.ones(256, np.uint8)  # bytes of a string that need no look: all but quote, backslash and control characters
PLAIN[: ord(" ")] = 0
PLAIN[[ord('"'), ord("\\")]] = 0
ESCAPED = _table({1: b'"\\/bfnrt', 2: b"u"})

_SKIPPER = msgspec.json.Decoder(msgspec.Raw)  # finds where a value ends, and builds nothing


@numba.njit(nogil=True, cache=True)
def _string(data, i, end):
    """Pass a string whose opening quote is before i; return the place after it, or minus the problem."""
    while i < end:
        c = data[i]
        if PLAIN[c]:
            i += 1
        elif c == 34:
            return i + 1
        elif c != 92:
            return -3
        else:
            if i + 1 >= end:
                return -1
            kind = ESCAPED[data[i + 1]]
            if kind == 1:
                i += 2
            elif kind == 2:
                if i + 6 > end:
                    return -1
                for k in range(i + 2, i + 6):
                    if not HEX[data[k]]:
                        return -4
                i += 6
            else:
                return -4
    return -1


@numba.njit(nogil=True, cache=True)
def _number(data, i, end):
    """Pass a number; return the place after it, or minus the problem."""
    if data[i] == 45:
        i += 1
    if i >= end or not DIGIT[data[i]]:
        return -8
    if data[i] == 48:
        i += 1
    else:
        while i < end and DIGIT[data[i]]:
            i += 1
    if i < end and data[i] == 46:
        i += 1
        if i >= end or not DIGIT[data[i]]:
            return -8
        while i < end and DIGIT[data[i]]:
            i += 1
    if i < end and (data[i] == 101 or data[i] == 69):
        i += 1
        if i < end and (data[i] == 43 or data[i] == 45):
            i += 1
        if i >= end or not DIGIT[data[i]]:
            return -8
        while i < end and DIGIT[data[i]]:
            i += 1
    return i


@numba.njit(nogil=True, cache=True)
def _literal(data, i, end):
    """Pass true, false or null; return the place after it, or minus the problem."""
    c = data[i]
    if c == 116 and i + 4 <= end and data[i + 1] == 114 and data[i + 2] == 117 and data[i + 3] == 101:
        return i + 4
    if c == 110 and i + 4 <= end and data[i + 1] == 117 and data[i + 2] == 108 and data[i + 3] == 108:
        return i + 4
    if (
        c == 102 and i + 5 <= end
        and data[i + 1] == 97 and data[i + 2] == 108 and data[i + 3] == 115 and data[i + 4] == 101
    ):  # fmt: skip
        return i + 5
    return -2


@numba.njit(nogil=True, cache=True)
def _member(data, i, end):
    """Pass a key and its colon; return the place after it, or minus the problem."""
    while i < end and SPACE[data[i]]:
        i += 1
    if i >= end:
        return -1
    if data[i] != 34:
        return -5
    i = _string(data, i + 1, end)
    if i < 0:
        return i
    while i < end and SPACE[data[i]]:
        i += 1
    if i >= end:
        return -1
    return i + 1 if data[i] == 58 else -6


@numba.njit(nogil=True, cache=True)
def check(data, i, end, stack):
    """Check that data[i:end] is one JSON value with nothing but white space around it.

    Args:
        data: uint8 array.
        i: first byte.
        end: one past the last byte.
        stack: uint8 scratch of MAX_DEPTH bytes.

    Returns:
        0, or a key of `PROBLEMS`.
    """
    depth = 0
    while True:
        while i < end and SPACE[data[i]]:  # here a value is expected
            i += 1
        if i >= end:
            return 1
        c = data[i]
        opened = False
        if c == 34:
            i = _string(data, i + 1, end)
        elif c == 123 or c == 91:
            if depth >= stack.size:
                return 10
            stack[depth] = c
            depth += 1
            i += 1
            while i < end and SPACE[data[i]]:
                i += 1
            if i >= end:
                return 1
            if data[i] != c + 2:  # not closed at once: '}' is '{' + 2, ']' is '[' + 2
                opened = True
                if c == 123:
                    i = _member(data, i, end)
        elif c == 45 or DIGIT[c]:
            i = _number(data, i, end)
        else:
            i = _literal(data, i, end)
        if i < 0:
            return -i
        if opened:
            continue
        while True:  # here a value is complete, or a bracket closes
            while i < end and SPACE[data[i]]:
                i += 1
            if depth == 0:
                return 0 if i >= end else 9
            if i >= end:
                return 1
            c = data[i]
            i += 1
            if c == stack[depth - 1] + 2:
                depth -= 1
            elif c == 44:
                if stack[depth - 1] == 123:
                    i = _member(data, i, end)
                    if i < 0:
                        return -i
                break
            else:
                return 7


def find_problems(payloads: Sequence[bytes]) -> dict[int, str]:
    """Say which records are not one JSON value each, and why.

    Args:
        payloads: the records' bytes; white space around a value is allowed.

    Returns:
        Index of a record to the reason.
    """
    skip_value = _SKIPPER.decode
    stack = np.zeros(MAX_DEPTH, np.uint8)
    problems = {}
    for index, payload in enumerate(payloads):
        try:
            skip_value(payload)
        except (msgspec.DecodeError, RecursionError):
            problem = check(np.frombuffer(payload, np.uint8), 0, len(payload), stack)
            if problem:
                problems[index] = PROBLEMS[problem]
    return problems


CLOSED = 3  # place in the state of `cut_elements`: the bracket of the list or mapping was met


@numba.njit(nogil=True, cache=True)
def cut_elements(data, begin, i, end, state, values, starts, ends):
    """Find complete elements of a list or mapping, or complete top-level values.

    Args:
        data: uint8 array.
        begin: where the element being read begins.
        i: first byte not looked at yet.
        end: one past the last byte.
        state: int64 array (depth, in a string, after a backslash, closed), zeros at first, kept between calls.
        values: False: elements end at a comma or at the bracket that closes their list; True: at their last bracket.
        starts: int64, room for results; untrimmed.
        ends: int64, room for results.

    Returns:
        (elements found, beginning of the element being read, first byte not looked at).
    """
    count = 0
    depth = state[0]
    in_string = state[1]
    escaped = state[2]
    while i < end and count < starts.size and not state[3]:
        c = data[i]
        if in_string:
            if escaped:
                escaped = 0
            elif c == 92:
                escaped = 1
            elif c == 34:
                in_string = 0
        elif c == 34:
            in_string = 1
        elif c == 123 or c == 91:
            depth += 1
        elif c == 125 or c == 93:
            if depth == 0 and not values:
                state[3] = 1
                starts[count] = begin
                ends[count] = i
                count += 1
                begin = i + 1
            else:
                depth -= 1
                if values and depth <= 0:
                    depth = 0
                    starts[count] = begin
                    ends[count] = i + 1
                    count += 1
                    begin = i + 1
        elif c == 44 and depth == 0 and not values:
            starts[count] = begin
            ends[count] = i
            count += 1
            begin = i + 1
        i += 1
    state[0] = depth
    state[1] = in_string
    state[2] = escaped
    return count, begin, i


@numba.njit(nogil=True, cache=True)
def trim(data, starts, ends, count):
    """Take white space off both ends of records.

    Args:
        data: uint8 array.
        starts: int64, first byte of each; changed in place.
        ends: int64, one past the last byte of each; changed in place.
        count: number of records.
    """
    for k in range(count):
        while starts[k] < ends[k] and SPACE[data[starts[k]]]:
            starts[k] += 1
        while ends[k] > starts[k] and SPACE[data[ends[k] - 1]]:
            ends[k] -= 1
