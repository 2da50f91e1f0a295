"""The speed of a run, on a clock set by the test."""

from __future__ import annotations

import pytest

from grpo_core.host.loop import Pace


class Clocked:
    """A pace, and its clock, which stands still until the test advances it."""

    def __init__(self, speed: float | None) -> None:
        self.now = 100.0
        self.pace = Pace(speed, lambda: self.now)
        self.pace.restart()


def test_the_first_update_is_due_at_once_and_the_next_one_an_interval_later() -> None:
    run = Clocked(5)
    assert run.pace.delay() == 0
    run.pace.began()
    assert run.pace.delay() == pytest.approx(0.2)
    run.now += 0.15
    assert run.pace.delay() == pytest.approx(0.05)


def test_at_full_speed_nothing_is_waited_for() -> None:
    run = Clocked(None)
    run.pace.began()
    assert run.pace.delay() == 0


def test_small_delays_are_caught_up_so_that_the_average_holds() -> None:
    run = Clocked(10)
    for _ in range(50):
        run.pace.began()
        run.now += run.pace.delay() + 0.003  # woken a little late each time
    assert run.now - 100 == pytest.approx(5.0, abs=0.01)


def test_a_long_delay_is_forgotten_rather_than_made_up_for_in_a_burst() -> None:
    run = Clocked(10)
    run.pace.began()
    run.now += 3
    run.pace.began()
    assert run.pace.delay() == pytest.approx(0.1)


def test_a_new_speed_acts_on_the_wait_in_progress() -> None:
    run = Clocked(1)
    run.pace.began()
    run.now += 0.1
    run.pace.set_speed(5)
    assert run.pace.delay() == pytest.approx(0.1)
    run.pace.set_speed(None)
    assert run.pace.delay() == 0
