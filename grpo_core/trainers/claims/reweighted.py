"""Claims about an update as recorded and with other reward weights. They are checked against the two records."""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.claims.claim import Kind, Tabled, agrees
from grpo_core.claims.pushes import Pair
from grpo_core.text import plural, tr


def _turned(data: Pair, count: int, every: int) -> bool:
    ran, other = data.advantages
    return (count, every) == (int((np.sign(ran) * np.sign(other) < 0).sum()), len(ran))


def _silent(data: Pair) -> tuple[int, int]:
    ran, other = data.advantages
    return int(recompute.silent_groups(data.ran, ran).sum()), int(recompute.silent_groups(data.other, other).sum())


def _apart(data: Pair, v: Any) -> bool:
    ran, other = data.advantages
    return agrees(v.difference, float(np.abs(ran - other).max(initial=0.0)))


REWEIGHTED: dict[str, Kind[Pair]] = {
    "turned": Kind(
        text=lambda v: plural(
            "{count} of {all} advantage changes its sign.", "{count} of {all} advantages change their sign.", v.all
        ),
        holds=lambda data, v: v.count > 0 and _turned(data, v.count, v.all),
    ),
    "none_turned": Kind(
        text=lambda v: plural(
            "None of {all} advantage changes its sign.", "None of {all} advantages changes its sign.", v.all
        ),
        holds=lambda data, v: _turned(data, 0, v.all),
    ),
    "silent": Kind(
        text=tr("Groups without a signal: {now} of {all}, {then} as recorded."),
        holds=lambda data, v: (v.then, v.now) == _silent(data) and v.all == len(np.unique(data.ran.group)),
    ),
    "follows": Kind(
        text=tr("At the recorded weights these advantages are the trainer's, to {difference:.1g}."),
        holds=lambda data, v: v.difference <= 1e-3 and _apart(data, v),
    ),
    "departs": Kind(
        text=tr(
            "At the recorded weights these advantages differ from the trainer's by up to {difference:.3g}: the "
            "trainer used other rewards or normalized them in another way."
        ),
        holds=lambda data, v: v.difference > 1e-3 and _apart(data, v),
    ),
}
"""The kinds of claims in this module, by name."""


class Reweighted(Tabled[Pair]):
    """A claim about an update with other weights of its reward functions."""

    KINDS = REWEIGHTED
