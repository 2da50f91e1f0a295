"""Updates worth stopping at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.panels.timeline import BEST, CHANGED, CLIP, DEAD, next_event
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.learners import origin
from grpo_core.metrics import METRICS

#              1  2  3    4    5  6    7  8
CLIPPED = [0, 0, 0.1, 0.2, 0, 0.3, 0, 0]
DEAD_ONES = [0, 0, 0, 0, 0, 0, 1, 1]
BEST_ONES = [2, 2, 2, 6, 6, 6, 6, 6]


@pytest.fixture
def run() -> RunHandle:
    made = RunHandle(title="Run", origin=origin(Settings()), path=Path("nowhere.grpo"))
    told = {"clip_fraction": CLIPPED, "dead_groups": DEAD_ONES, "best_action": BEST_ONES}
    scalars = {name: np.array(told.get(name, [0.0] * 8), dtype=float) for name in METRICS}
    for cut in (slice(0, 3), slice(3, 8)):  # in two pieces, as updates arrive
        made.extend({name: values[cut] for name, values in scalars.items()}, cut.stop)
        next_event(made, 0)
    made.note_settings(5, Settings().replace({"objective.beta": 0.5}))
    return made


def test_forwards_each_beginning_is_met_once(run: RunHandle) -> None:
    met, here = [], 0
    while (event := next_event(run, here)) is not None:
        met.append(event)
        here = event[0]
    assert met == [(3, CLIP), (4, BEST), (5, CHANGED), (6, CLIP), (7, DEAD)]


def test_backwards_the_same_ones_are_met(run: RunHandle) -> None:
    met, here = [], 8
    while (event := next_event(run, here, forwards=False)) is not None:
        met.append(event[0])
        here = event[0]
    assert met == [7, 6, 5, 4, 3]


def test_a_run_without_updates_has_none() -> None:
    assert next_event(RunHandle(title="", origin=origin(Settings()), path=Path("x")), 0) is None
