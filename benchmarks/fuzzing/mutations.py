"""Mutations: damage to bytes and to plain values, drawn from a source of randomness that can be repeated."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from random import Random
from typing import Any

__all__ = ["changed", "mutated", "odd_value"]

NUMBER = re.compile(rb"-?\d+(\.\d*)?")
ENDS = 512  # bytes at either end, where headers and tables of contents are
INTEGERS = (0, 1, -1, 2, 7, 255, 256, 32767, 32768, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 10**15, 2**63 - 1)
NUMBERS = (b"0", b"-1", b"nan", b"inf", b"1e400", b"9" * 15, b"1" + b"0" * 15, b"", b"x", b"0.0", b"-0", b"65536", b"'")
TEXTS = (
    *("", " ", "a", "ä\u202e\U0001f600", "\x00", "../../etc/passwd", "nan", "1e400", "-1", "None", "{}", "%s%n"),
    *("a" * 5000, "'; drop", "\n[fit]\n", "nn", "float32", "float8_e4m3fn", "weight", "layer", "width", "all", "cuda"),
)


def mutated(data: bytes, random: Random) -> bytes:
    """Return bytes with one to four places damaged."""
    for _ in range(random.randint(1, 4)):
        data = random.choice(DAMAGES)(data, random)
    return data


def _place(data: bytes, random: Random) -> int:
    near = random.randrange(4)
    if near < 2:
        return random.randrange(min(len(data), ENDS) + 1)
    return random.randrange(len(data) + 1) if near == 2 else max(0, len(data) - random.randrange(ENDS))


def _flip(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    at = min(_place(data, random), len(data) - 1)
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _overwrite(data: bytes, random: Random) -> bytes:
    """Put a number where one may be: an end of its range, in any width and order of bytes."""
    at, size = _place(data, random), random.choice((1, 2, 4, 8))
    value = random.choice(INTEGERS) % 256**size
    return data[:at] + value.to_bytes(size, random.choice(("little", "big"))) + data[at + size :]


def _float(data: bytes, random: Random) -> bytes:
    at, value = _place(data, random), random.choice((math.nan, math.inf, -0.0, 1e38, -1e-40, 0.0, -1.0))
    part = struct.pack(random.choice("<>") + random.choice("fd"), value)
    return data[:at] + part + data[at + len(part) :]


def _number(data: bytes, random: Random) -> bytes:
    """Write another number in place of one that is written out in digits, of the same length or not."""
    found = list(NUMBER.finditer(data[: 8 * ENDS]))
    if not found:
        return _flip(data, random)
    match, new = random.choice(found), random.choice(NUMBERS)
    if random.random() < 0.5:
        new = new[: len(match[0])].ljust(len(match[0]))
    return data[: match.start()] + new + data[match.end() :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _delete(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + data[at + random.choice((1, 2, 4, 16, 100)) :]


def _insert(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + random.randbytes(random.choice((1, 2, 4, 16, 100))) + data[at:]


def _repeat(data: bytes, random: Random) -> bytes:
    at, length = _place(data, random), random.choice((1, 8, 64, 512))
    return data[:at] + data[at : at + length] + data[at:]


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_flip, _flip, _overwrite, _overwrite, _float, _number, _number),
    *(_cut, _delete, _insert, _repeat),
)


def odd_value(random: Random, depth: int = 0) -> Any:
    """Return a value that JSON can hold, and that few expect."""
    kind = random.randrange(9 if depth < 3 else 7)
    if kind < 2:
        return random.choice((*INTEGERS, -(2**63), 10**30, 10**400))
    if kind < 4:
        return random.choice((0.0, -0.5, 1.5, math.nan, math.inf, -math.inf, 1e308, 1e-320))
    if kind == 4:
        return random.choice(TEXTS)
    if kind < 7:
        return random.choice((None, True, False, [], {}))
    if kind == 7:
        return [odd_value(random, depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(TEXTS): odd_value(random, depth + 1) for _ in range(random.randrange(4))}


def changed(value: Any, random: Random) -> Any:
    """Return a nested value in which one place is odd, missing, or too much."""
    if not isinstance(value, dict | list) or not value or random.random() < 0.1:
        return odd_value(random)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, what = random.choice(keys), random.randrange(10)
    copy = dict(value) if isinstance(value, dict) else list(value)
    if what == 0:
        del copy[key]
    elif what == 1 and isinstance(copy, dict):
        copy[random.choice(TEXTS)] = odd_value(random)
    elif what == 1:
        copy.append(odd_value(random))
    else:
        copy[key] = changed(value[key], random)
    return copy
