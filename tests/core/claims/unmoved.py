"""Table of settings and sentences: sentences of cards that stay when a setting changes the arrays they speak of.

``python -m tests.core.claims.unmoved`` trains drawn runs, changes one setting of each at a time, and prints the rows
that are new. A row is a setting and a kind of claim that, in all cases drawn, was said again with the same numbers
although arrays that its check reads had changed. That is right of many sentences, such as "β is 0", and wrong of one
whose premise the setting breaks. So look at each new row, then accept it with ``--accept``, which rewrites the table.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.claims.claim import Claim
from grpo_core.config import Settings, language_settings
from grpo_core.config.settings import flat
from grpo_core.errors import GrpoError
from grpo_core.reasons import reasons
from grpo_core.record import ARRAYS, Step
from grpo_core.testing.updates import trained
from tests.core.claims.drawn import kind_of
from tests.core.claims.drawn_updates import ENDS
from tests.core.claims.test_premises import others_of
from tests.core.explain_cases import random_settings

TABLE = Path(__file__).with_name("unmoved.txt")
LEAST = 3
"""Minimum number of cases for a row."""
PARTS = ("objective.", "learner.", "optimizer.", "task.")
"""Beginnings of the paths of the settings that are changed."""
SMALL = {
    "task.prompts": 3,
    "learner.group_size": 4,
    "task.max_tokens": 14,
    "task.held_out": 8,
    "task.accuracy_every": 999,
}
Row = tuple[str, str]


class Watched(Step):
    """An update that notes which of its arrays are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in ARRAYS:
            object.__getattribute__(self, "__dict__").setdefault("read", set()).add(name)
        return super().__getattribute__(name)


def read_by(claim: Claim[Step], step: Step) -> set[str]:
    """Return the names of the arrays that the check of ``claim`` reads."""
    watched = Watched(**{field.name: getattr(step, field.name) for field in dataclasses.fields(Step)})
    watched.__dict__["read"] = set()
    claim.check(watched)
    return set(watched.__dict__["read"])


def said(step: Step) -> set[Claim[Step]]:
    """Return the claims of the cards of an update's first and last pass."""
    found = (reasons(step, passed).values() for passed in {0, step.passes - 1})
    return {claim for every in found for reason in every for claim in reason.claims}


def bases(chance: np.random.Generator, bandits: int, languages: int) -> Iterator[tuple[Settings, int]]:
    """Yield drawn settings, and the number of the update to look at."""
    for _ in range(bandits):
        drawn = random_settings(chance)
        ends = ENDS[chance.integers(len(ENDS))] if chance.random() < 0.5 else {}
        stale, size = int(chance.choice([0, 0, 2])), int(chance.choice([2, 4]))
        changes: dict[str, object] = {"learner.staleness": stale, "learner.group_size": size}
        changes |= {**({"task.landscape": "custom"} if "task.custom" in ends else {}), **ends}
        try:
            yield drawn.replace(changes), int(chance.integers(1, 4))
        except GrpoError:
            continue
    for place in range(languages):
        problem = ("gameable", "arithmetic", "calculator")[place % 3]
        model = {"model.checkpoint": "calculator", "task.max_tokens": 26} if problem == "calculator" else {}
        yield language_settings().replace({**SMALL, "task.problem": problem, **model, "seed": place}), 1


def same(one: Any, other: Any) -> bool:
    """Return whether two arrays, or None, are equal."""
    return one is other or (one is not None and other is not None and np.array_equal(one, other, equal_nan=True))


def rows(seed: int, bandits: int, languages: int) -> dict[Row, set[str]]:
    """Return the rows of the table, with the arrays that changed under the sentence."""
    chance = np.random.default_rng(seed)
    stayed, changed, arrays = defaultdict[Row, int](int), defaultdict[Row, int](int), defaultdict[Row, set[str]](set)
    for settings, number in bases(chance, bandits, languages):
        step = trained(settings, number)
        claims = {claim: read_by(claim, step) for claim in said(step)}
        for path, value in flat(settings).items():
            if not path.startswith(PARTS):
                continue
            values = [other for other in others_of(path, value, type(settings.task)) if other != value]
            try:
                other = trained(settings.replace({path: values[chance.integers(len(values))]}), number)
                now = said(other)
            except (GrpoError, ValueError, IndexError, MemoryError):  # not allowed, or not of this run's shape
                continue
            for claim, read in claims.items():
                moved = {name for name in read if not same(getattr(step, name), getattr(other, name))}
                if moved:
                    row = path, kind_of(claim)
                    changed[row] += 1
                    stayed[row] += claim in now
                    arrays[row] |= moved
    return {row: arrays[row] for row, count in changed.items() if count >= LEAST and stayed[row] == count}


def accepted() -> set[Row]:
    """Return the rows of the table that were looked at."""
    lines = (line.split() for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#"))
    return {(line[0], kind) for line in lines for kind in line[1:]}


def written(found: set[Row]) -> str:
    """Return the table's text: a line for each setting, with the kinds of claims that stay."""
    by_path = defaultdict[str, list[str]](list)
    for path, kind in sorted(found):
        by_path[path].append(kind)
    head = (
        "# Sentences that stay when a setting changes what they speak of: made by python -m tests.core.claims.unmoved\n"
    )
    return head + "".join(f"{path} {' '.join(kinds)}\n" for path, kinds in by_path.items())


@np.errstate(all="ignore")
def main(arguments: list[str]) -> int:
    """Print the new rows. Return 1 if there are any that are not accepted."""
    found = rows(*DRAWN)
    known = accepted() if TABLE.exists() else set()
    new = {row: arrays for row, arrays in found.items() if row not in known}
    for (path, kind), arrays in sorted(new.items()):
        print(f"{path}: “{kind}” stays, while {', '.join(sorted(arrays))} change")
    if "--accept" in arguments:
        TABLE.write_text(written(known | set(found)), "utf-8")
        return 0
    return 1 if new else 0


DRAWN = (29, 150, 3)
"""Seed, and numbers of drawn bandits and language models."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
