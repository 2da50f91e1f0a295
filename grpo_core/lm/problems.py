"""Arithmetic with precedence and visible workings: ``2+3*4-5=`` -> ``2+12-5=14-5=9``.

A worked solution repeats the whole expression after each operation until only a number is left. There are two solvers:
one respects precedence, the other works from left to right, whatever the operations. Working from left to right is the
habit that the shipped checkpoint was trained to have and that GRPO unlearns. All intermediate results of both solvers
are between 0 and 99.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise

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
    """A prompt of a task, with the answer or regular expression that its checker compares a completion with, and a
    system prompt, if any.
    """

    text: str
    answer: str
    system: str = ""


@dataclass(frozen=True)
class Verdict:
    """Verdict on a completion, in a few words. ``right`` is None if it cannot be determined."""

    right: bool | None
    words: str


def working(expression: str, *, left_to_right: bool = False) -> str:
    """Return the worked solution of ``expression``, without the expression itself: ``2+3*4`` -> ``2+12=14``."""
    lines, parts = [], terms(expression)
    while len(parts) > 1:
        parts = _reduced(parts, left_to_right)
        lines.append("".join(parts))
    return "=".join(lines)


def terms(expression: str) -> list[str]:
    """Return the numbers and operators of ``expression``, in order."""
    return _PARTS.findall(expression)


def answer(expression: str) -> int:
    return int(working(expression).rpartition("=")[2] or expression)


def drawn(difficulty: str, numbers: np.random.Generator, *, held_out: bool = False) -> Prompt:
    """Return a random prompt of a difficulty. One in eight is held out, and never trained on."""
    while True:
        kind = one_of(numbers, *MIXTURE, shares=MIXTURE.values()) if difficulty == "mixed" else difficulty
        expression = FAMILIES[kind](numbers)
        if kind != "hopeless" and not is_small(expression):
            continue
        if is_held_out(expression) == held_out:
            return Prompt(expression + "=", str(answer(expression)))


def one_of(numbers: np.random.Generator, *options: str, shares: Iterable[float] = ()) -> str:
    """Return the option that ``numbers.choice`` would return, in a fraction of its time.

    ``shares``: probability of each option, with the sum 1. All are equally likely if it is empty.
    """
    ends = list(accumulate(shares))
    return options[bisect_right(ends, numbers.random()) if ends else numbers.integers(len(options))]


def is_held_out(expression: str) -> bool:
    """Return whether an expression is held out, as one in eight is, and therefore never trained on."""
    return zlib.crc32(expression.encode()) % 8 == 0


def well_formed(prompt: str, text: str) -> bool:
    """Return whether ``text`` is a well-formed worked solution, correct or not: lines of arithmetic, each with fewer
    operations than the one before, the last of them a number.
    """
    lines = text.split("=")
    counts = [len(_PARTS.findall(line)) for line in (prompt.rstrip("="), *lines)]
    whole = all(_LINE.fullmatch(line) for line in lines)
    falling = all(later < earlier for earlier, later in pairwise(counts))
    return whole and falling and counts[-1] == 1


def verdict(prompt: str, text: str, *, ended: bool = True) -> Verdict:
    """Return the verdict on an arithmetic completion: right, the left-to-right habit, a slip, ..."""
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
    """Return ``text`` without repetitions of its last line."""
    lines = text.split("=")
    while len(lines) > 1 and lines[-1] == lines[-2]:
        lines.pop()
    return "=".join(lines)


def _reduced(parts: list[str], left_to_right: bool) -> list[str]:
    """Carry out the first multiplication or, if there is none or ``left_to_right`` is set, the first operation."""
    place = parts.index("*") if "*" in parts and not left_to_right else 1
    value = OPERATIONS[parts[place]](int(parts[place - 1]), int(parts[place + 1]))
    return [*parts[: place - 1], str(value), *parts[place + 2 :]]


def is_small(expression: str) -> bool:
    """Return whether all intermediate results of both solvers are between 0 and 99: numbers begin with no minus."""
    for habit in (False, True):
        parts = _PARTS.findall(expression)
        while len(parts) > 1:
            parts = _reduced(parts, habit)
            if any(len(part) > 1 and (part[0] == "-" or int(part) > LARGEST) for part in parts):
                return False
    return True


def _easy(numbers: np.random.Generator) -> str:
    """Return a random problem with the same result by precedence and from left to right."""
    if numbers.random() < 0.6:
        return _filled(one_of(numbers, "a+b", "a-b", "a*b"), numbers)
    return _filled(one_of(numbers, "a+b+c", "a+b-c", "a*b+c", "a*b-c"), numbers)


def _filled(pattern: str, numbers: np.random.Generator) -> str:
    return "".join(str(numbers.integers(1, 10)) if part.isalpha() else part for part in pattern)


FAMILIES: dict[str, Callable[[np.random.Generator], str]] = {
    "easy": _easy,
    "sweet_spot": lambda numbers: _filled(one_of(numbers, "a+b*c", "a-b*c", shares=(0.75, 0.25)), numbers),
    "hard": lambda numbers: _filled(one_of(numbers, "a+b*c-d", "a+b*c+d", "a+b+c*d", "a-b+c*d"), numbers),
    # products of two-digit numbers, on which the checkpoint was never trained
    "hopeless": lambda numbers: f"{numbers.integers(12, 100)}*{numbers.integers(12, 100)}",
}
