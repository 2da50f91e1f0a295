"""Arithmetic with precedence and visible working: ``2+3*4-5=`` -> ``2+12-5=14-5=9``.

A working writes the whole expression after each single operation until a number is left. Two solvers write workings:
one respects precedence; one goes from left to right, whatever the operation. The second is the habit that the shipped
checkpoint was given and that GRPO unlearns. All intermediate results of both solvers are between 0 and 99.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from grpo_core.text import tr

LARGEST = 99
_PARTS = re.compile(r"\d+|[+*-]")
_NUMBER = re.compile(r"-?\d+")
_LINE = re.compile(r"\d+([+*-]\d+)*")
OPERATIONS: dict[str, Callable[[int, int], int]] = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
MIXTURE = {"easy": 0.2, "sweet_spot": 0.6, "hard": 0.2}
"""Probability of each difficulty in the mixture."""


@dataclass(frozen=True)
class Prompt:
    """A prompt of a task, with what its checker compares a completion with: an answer, or a regular expression."""

    text: str
    answer: str


@dataclass(frozen=True)
class Verdict:
    """Verdict on a completion in a few words. ``right`` is None where it cannot be determined."""

    right: bool | None
    words: str


def working(expression: str, *, left_to_right: bool = False) -> str:
    """The working of ``expression``, without its first line: ``2+3*4`` -> ``2+12=14``."""
    lines, parts = [], terms(expression)
    while len(parts) > 1:
        parts = _reduced(parts, left_to_right)
        lines.append("".join(parts))
    return "=".join(lines)


def terms(expression: str) -> list[str]:
    """The numbers and operators of ``expression``, in order."""
    return _PARTS.findall(expression)


def answer(expression: str) -> int:
    """The value of ``expression``."""
    return int(working(expression).rpartition("=")[2] or expression)


def drawn(difficulty: str, numbers: np.random.Generator, *, held_out: bool = False) -> Prompt:
    """A random prompt of a difficulty. One in eight is held out, and no prompt is both held out and trained on."""
    while True:
        kind = str(numbers.choice(list(MIXTURE), p=list(MIXTURE.values()))) if difficulty == "mixed" else difficulty
        expression = FAMILIES[kind](numbers)
        if kind != "hopeless" and not is_small(expression):
            continue
        if is_held_out(expression) == held_out:
            return Prompt(expression + "=", str(answer(expression)))


def is_held_out(expression: str) -> bool:
    """Whether an expression is in the eighth that is never trained on."""
    return zlib.crc32(expression.encode()) % 8 == 0


def well_formed(prompt: str, text: str) -> bool:
    """Whether ``text`` is a working, not necessarily a right one: lines of arithmetic, each with fewer operations than
    the one before, ending in a number."""
    lines = text.split("=")
    counts = [len(_PARTS.findall(line)) for line in (prompt.rstrip("="), *lines)]
    whole = all(_LINE.fullmatch(line) for line in lines)
    falling = all(later < earlier for earlier, later in pairwise(counts))
    return whole and falling and counts[-1] == 1


def verdict(prompt: str, text: str, *, ended: bool = True) -> Verdict:
    """Verdict on an arithmetic completion: right, the left-to-right habit, a slip, ..."""
    expression = prompt.rstrip("=")
    if not _LINE.fullmatch(expression):
        return Verdict(None, "")
    once = _once(text)
    last = text.rpartition("=")[2]
    right = _NUMBER.fullmatch(last) is not None and int(last) == answer(expression)
    words = _words(expression, once, right)
    if once != text:
        words = tr("{words}, restated").format(words=words)
    return Verdict(right, words if ended or right else tr("cut off"))


def _words(expression: str, text: str, right: bool) -> str:
    wrong_way = working(expression, left_to_right=True)
    if right:
        return tr("right", "correct") if well_formed(expression, text) else tr("right, but not a working")
    if text == wrong_way:
        return tr("went left to right")
    if not well_formed(expression, text):
        return tr("not a working")
    return tr("left to right, with a slip") if text.startswith(wrong_way.partition("=")[0]) else tr("a slip")


def _once(text: str) -> str:
    """``text`` without repetitions of its last line."""
    lines = text.split("=")
    while len(lines) > 1 and lines[-1] == lines[-2]:
        lines.pop()
    return "=".join(lines)


def _reduced(parts: list[str], left_to_right: bool) -> list[str]:
    """Carry out one operation: the first multiplication, or else the first operation of all."""
    place = parts.index("*") if "*" in parts and not left_to_right else 1
    value = OPERATIONS[parts[place]](int(parts[place - 1]), int(parts[place + 1]))
    return [*parts[: place - 1], str(value), *parts[place + 2 :]]


def is_small(expression: str) -> bool:
    """Whether all intermediate results of both solvers are between 0 and 99: a number must not begin with a minus
    sign.
    """
    for habit in (False, True):
        parts = _PARTS.findall(expression)
        while len(parts) > 1:
            parts = _reduced(parts, habit)
            if any(len(part) > 1 and (part[0] == "-" or int(part) > LARGEST) for part in parts):
                return False
    return True


def _easy(numbers: np.random.Generator) -> str:
    """A problem with the same result with precedence and from left to right."""
    if numbers.random() < 0.6:
        return _filled(str(numbers.choice(["a+b", "a-b", "a*b"])), numbers)
    return _filled(str(numbers.choice(["a+b+c", "a+b-c", "a*b+c", "a*b-c"])), numbers)


def _sweet_spot(numbers: np.random.Generator) -> str:
    return _filled(str(numbers.choice(["a+b*c", "a-b*c"], p=[0.75, 0.25])), numbers)


def _hard(numbers: np.random.Generator) -> str:
    return _filled(str(numbers.choice(["a+b*c-d", "a+b*c+d", "a+b+c*d", "a-b+c*d"])), numbers)


def _hopeless(numbers: np.random.Generator) -> str:
    """A product of two-digit numbers, which the checkpoint was never trained on."""
    return f"{numbers.integers(12, 100)}*{numbers.integers(12, 100)}"


def _filled(pattern: str, numbers: np.random.Generator) -> str:
    return "".join(str(numbers.integers(1, 10)) if part.isalpha() else part for part in pattern)


FAMILIES: dict[str, Callable[[np.random.Generator], str]] = {
    "easy": _easy,
    "sweet_spot": _sweet_spot,
    "hard": _hard,
    "hopeless": _hopeless,
}
