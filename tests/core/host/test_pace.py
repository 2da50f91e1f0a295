"""The speed of a run, on a clock set by the test."""

from __future__ import annotations

import pytest

from grpo_core.host.loop import Pace


class Clock:
    """A clock that stands still until the test advances it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_update_is_due_at_once_and_the_next_one_an_interval_later() -> None:
    clock = Clock()
    pace = Pace(5, clock)
    pace.restart()
    assert pace.delay() == 0
    pace.began()
    assert pace.delay() == pytest.approx(0.2)
    clock.now += 0.15
    assert pace.delay() == pytest.approx(0.05)


def test_at_full_speed_nothing_is_waited_for() -> None:
    pace = Pace(None, Clock())
    pace.began()
    assert pace.delay() == 0


def test_small_delays_are_caught_up_so_that_the_average_holds() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    pace.restart()
    for _ in range(50):
        pace.began()
        clock.now += pace.delay() + 0.003  # woken a little late each time
    assert clock.now - 100 == pytest.approx(5.0, abs=0.01)


def test_a_long_delay_is_forgotten_rather_than_made_up_for_in_a_burst() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    pace.restart()
    pace.began()
    clock.now += 3
    pace.began()
    assert pace.delay() == pytest.approx(0.1)


def test_a_new_speed_acts_on_the_wait_in_progress() -> None:
    clock = Clock()
    pace = Pace(1, clock)
    pace.restart()
    pace.began()
    clock.now += 0.1
    pace.set_speed(5)
    assert pace.delay() == pytest.approx(0.1)
    pace.set_speed(None)
    assert pace.delay() == 0
