"""Updates on their way from the worker to the window."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.host.buffer import Buffer, Fresh
from grpo_core.metrics import metrics
from grpo_core.record import Step
from tests.core.steps import random_step

SETTINGS = Settings()


def put(buffer: Buffer, *steps: Step) -> None:
    """Add ``steps`` as finished updates."""
    for step in steps:
        buffer.put(step, metrics(step))


def taken(buffer: Buffer) -> Fresh:
    """Take what is there."""
    fresh = buffer.take()
    assert fresh is not None
    return fresh


def test_taking_gives_everything_since_the_last_time_and_then_nothing() -> None:
    buffer = Buffer("a", SETTINGS)
    steps = [random_step(n) for n in (1, 2, 3)]
    put(buffer, *steps)
    fresh = taken(buffer)
    assert (fresh.run_id, fresh.first, fresh.head) == ("a", 1, 3)
    assert fresh.last is steps[-1]
    assert fresh.scalars["loss"].tolist() == [metrics(step)["loss"] for step in steps]
    assert buffer.take() is None
    put(buffer, random_step(4))
    again = taken(buffer)
    assert (again.first, again.head) == (4, 4)


def test_what_was_taken_is_not_overwritten_by_what_comes_later() -> None:
    buffer = Buffer("a", SETTINGS, capacity=1)
    put(buffer, random_step(1))
    fresh = taken(buffer)
    before = fresh.scalars["loss"].copy()
    put(buffer, random_step(2))
    np.testing.assert_array_equal(fresh.scalars["loss"], before)


def test_updates_leave_with_the_commit_that_holds_them_but_the_last_stays() -> None:
    buffer = Buffer("a", SETTINGS)
    steps = [random_step(n) for n in (1, 2, 3)]
    put(buffer, *steps)
    buffer.mark_committed(2)
    assert buffer.uncommitted(2) is None
    assert buffer.uncommitted(3) is steps[2]
    assert [step for step, _ in buffer.waiting(0)] == [steps[2]]
    buffer.mark_committed(3)
    assert buffer.uncommitted(3) is steps[2]
    assert buffer.waiting(0) == []


def test_changes_of_settings_are_marked_at_the_first_update_under_them() -> None:
    other = SETTINGS.replace({"objective.beta": 0.5})
    buffer = Buffer("a", SETTINGS)
    put(buffer, random_step(1), random_step(2, settings=other), random_step(3, settings=other), random_step(4))
    fresh = taken(buffer)
    assert fresh.changes == ((2, other), (4, SETTINGS))
    put(buffer, random_step(5))
    again = taken(buffer)
    assert again.changes == ()


def test_it_says_when_the_window_is_too_far_behind_and_takes_nothing_more() -> None:
    buffer = Buffer("a", SETTINGS, capacity=2)
    put(buffer, random_step(1), random_step(2))
    assert buffer.full
    with pytest.raises(OverflowError):
        put(buffer, random_step(3))
    buffer.take()
    assert not buffer.full


def test_nothing_is_lost_or_doubled_between_a_hurried_worker_and_a_window() -> None:
    buffer, total = Buffer("a", SETTINGS, capacity=100_000), 3000
    step, values = random_step(1), metrics(random_step(1))
    heads: list[int] = []

    def work() -> None:
        for number in range(1, total + 1):
            buffer.put(dataclasses.replace(step, step=number), values | {"loss": float(number)})
            buffer.mark_committed(number - 1)

    worker = threading.Thread(target=work)
    worker.start()
    seen: list[float] = []
    while len(seen) < total:
        if (fresh := buffer.take()) is not None:
            assert fresh.last.step == fresh.head
            seen += fresh.scalars["loss"].tolist()
            heads.append(fresh.head)
    worker.join()
    assert seen == list(range(1, total + 1))
    assert heads == sorted(set(heads))
