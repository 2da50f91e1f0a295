"""The beat of numbers that are read, on a clock that the test turns; and what a panel draws again for."""

from __future__ import annotations

from app.workspace.pulse import BEAT, Pulse
from app.workspace.view import View
from tests.app.workspace.conftest import Desk


class Clock:
    """A clock that stands until it is turned."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_a_run_that_hurries_is_shown_at_each_beat_and_the_rest_at_once() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    assert pulse.shown(1, hurries=True) == 1
    clock.now += 0.9 * BEAT
    assert pulse.shown(2, hurries=True) == 1
    assert pulse.shown(3, hurries=False) == 3, "the cursor was moved, or the run has stopped"
    clock.now += 0.9 * BEAT
    assert pulse.shown(4, hurries=True) == 3
    clock.now += 0.2 * BEAT
    assert pulse.shown(5, hurries=True) == 5


def test_updates_that_come_more_slowly_than_the_beat_are_shown_when_they_come() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    for update in range(5):
        clock.now += 2 * BEAT
        assert pulse.shown(update, hurries=True) == update


def test_looking_between_two_updates_does_not_hold_up_the_second() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    for update in range(5):
        assert pulse.shown(update, hurries=True) == update
        for _ in range(5):
            clock.now += 0.5 * BEAT
            assert pulse.shown(update, hurries=True) == update


def turned(desk: Desk) -> tuple[View, View]:
    """The view before and after a slider is turned."""
    before = desk.workspace.view
    desk.workspace.editing.edit({"objective.beta": 0.5}, "Hold it")
    return before, desk.workspace.view


def test_a_slider_changes_what_shows_the_next_settings_and_nothing_else(desk: Desk) -> None:
    before, after = turned(desk)
    assert before.stamp() != after.stamp()
    assert before.stamp(planned=False) == after.stamp(planned=False)


def test_a_cursor_that_is_moved_changes_what_is_calm_at_once_also_while_a_run_goes_on(desk: Desk) -> None:
    desk.run(5)
    desk.workspace.set_running(True)
    desk.workspace.move_to(3)
    one = desk.workspace.view.stamp(calmly=True)
    desk.workspace.move_to(2)
    assert desk.workspace.view.stamp(calmly=True) != one
    desk.workspace.set_running(False)
