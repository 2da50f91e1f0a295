"""Lines with numbers in what a trainer printed: TRL's dicts, verl's ``step:1 - name:0.5``, and ``Step 1 | name: 0.5``.

TRL and transformers print no step with their dicts. It is taken from the progress bar in front of them, which counts
the trainer's steps, or the dicts are counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from grpo_core.trainers.concepts import STEPS, is_training, plain

STEP = STEPS[0]
"""Name under which a step is returned that stands in front of the numbers."""
MOST_BARS = 100
"""Maximum number of different totals of progress bars that are looked at."""
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf(?:inity)?|\.\d+)"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DICT = re.compile(r"\{\s*'[^{}]{1,20000}\}")
_ITEM = re.compile(
    rf"'([^']{{1,200}})'\s{{0,9}}:\s{{0,9}}['\"]?({_NUMBER}(?:/\d+)?)['\"]?\s{{0,9}}(?=[,}}])", re.IGNORECASE
)
_BAR = re.compile(r"(\d{1,9})/(\d{1,9}) \[")
_STEP = re.compile(
    r"\b(?:step|steps|iter|iteration|update|global_step)\b\s{0,9}[:=#]?\s{0,9}\[?(\d{1,12})\b", re.IGNORECASE
)
_EPOCH = re.compile(r"\bepoch\s{0,9}:?\s{0,9}\[(\d{1,6})/\d{1,6}\]\((\d{1,9})/(\d{1,9})\)", re.IGNORECASE)
"""``Epoch:[1/2](5/100)``: the epoch, the step in it, and the steps of an epoch."""
_PAIR = re.compile(
    r"(?<![\w/.@(-])([A-Za-z_][\w/.@()+-]{0,99}(?: [A-Za-z_][\w/.]{0,40}){0,3})\s{0,9}[:=]\s{0,9}(?:np\.\w{1,9}\()?"
    rf"({_NUMBER})(?![\w.:])",
    re.IGNORECASE,
)
_PROCESS = re.compile(r"\([^()]{0,99}pid=\d{1,9}[^()]{0,99}\)")
"""The process in front of a line that Ray prints."""


def console_rows(text: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the rows of numbers in a text, and whether their steps had to be counted."""
    text = _PROCESS.sub("", _ESCAPES.sub("", text))
    # a terminal may have broken a printed dict into lines
    dicts = [(match.start(), dict(_ITEM.findall(re.sub(r"[\r\n]", "", match[0])))) for match in _DICT.finditer(text)]
    dicts = [(place, row) for place, row in dicts if is_training(row)]
    if dicts:
        return _with_steps(text, dicts)
    return list(_lines(text)), False


def _with_steps(text: str, dicts: list[tuple[int, dict[str, Any]]]) -> tuple[list[dict[str, Any]], bool]:
    if all(any(plain(name) in STEPS for name in row) for _, row in dicts):
        return [row for _, row in dicts], False
    bars = [(match.start(), int(match[1]), int(match[2])) for match in _BAR.finditer(text)]
    before: list[dict[int, int]] = []
    at, last = 0, dict[int, int]()
    for place, _ in dicts:
        while at < len(bars) and bars[at][0] < place:
            if bars[at][2] in last or len(last) < MOST_BARS:
                last[bars[at][2]] = bars[at][1]
            at += 1
        before.append(dict(last))
    totals = Counter(total for known in before for total in known)
    for total, count in totals.most_common(3):
        steps = [known.get(total, 0) for known in before]
        if count == len(dicts) and steps[0] and all(a < b for a, b in pairwise(steps)):
            return [{STEP: step, **row} for step, (_, row) in zip(steps, dicts, strict=True)], False
    return [{STEP: number, **row} for number, (_, row) in enumerate(dicts, 1)], True


def _lines(text: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of lines that name their step: JSON after a prefix, or names and numbers."""
    row: dict[str, Any] = {}
    for line in re.split(r"[\n\r]", text):
        if (begin := line.find('{"')) >= 0:
            try:
                value = json.loads(line[begin : line.rfind("}") + 1])
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                yield value
            continue
        step = _step(line)
        goes_on = step is None and line.startswith(" - ") and bool(row)  # a line of verl, broken at its dashes
        if not goes_on and row and is_training(row):
            yield row
        if not goes_on:
            row = {} if step is None else {STEP: step}
        if row:
            pairs = ((name.strip(), value) for name, value in _PAIR.findall(line))
            row = {**{name: value for name, value in pairs if plain(name) not in STEPS}, **row}
    if row and is_training(row):
        yield row


def _step(line: str) -> int | None:
    if (found := _EPOCH.search(line)) is not None:
        return (int(found[1]) - 1) * int(found[3]) + int(found[2])
    return None if (found := _STEP.search(line)) is None else int(found[1])
