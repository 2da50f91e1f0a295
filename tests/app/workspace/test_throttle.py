"""How often the window fetches computed updates, on a clock advanced by the test; and what makes a panel draw."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QCoreApplication

from app.clock import ManualClock
from app.workspace.frame import FrameTimer
from app.workspace.training import INTERVAL, Throttle
from tests.app.workspace.conftest import Desk


def test_the_first_call_is_admitted_at_once_and_after_that_one_an_interval(clock: ManualClock) -> None:
    throttle = Throttle()
    admitted = []
    for tick in range(121):
        if throttle.ready:
            throttle.start()
            admitted.append(tick)
        clock.advance(1000 / 60)
    assert admitted[0] == 0 and len(admitted) == 21, "two seconds of a screen's frames: ten a second"


def test_each_of_ten_updates_a_second_is_shown(clock: ManualClock) -> None:
    throttle, shown, last = Throttle(), list[int](), -1
    for tick in range(600):
        newest = int(tick / 6 + 1e-9)
        if newest > last and throttle.ready:
            throttle.start()
            last = newest
            shown.append(newest)
        clock.advance(1000 / 60)
    assert shown == list(range(100))


def test_updates_that_come_more_slowly_are_shown_when_they_come(clock: ManualClock) -> None:
    throttle = Throttle()
    for _ in range(5):
        clock.advance(2000 * INTERVAL)
        assert throttle.ready
        throttle.start()
        assert not throttle.ready


def test_a_slider_changes_what_shows_the_next_settings_and_nothing_else(desk: Desk) -> None:
    before = desk.workspace.view
    desk.workspace.editing.edit({"objective.beta": 0.5}, "Hold it")
    after = desk.workspace.view
    assert before.stamp() != after.stamp()
    assert before.stamp(planned=False) == after.stamp(planned=False)


def test_a_tick_that_finds_nothing_new_draws_nothing(desk: Desk) -> None:
    desk.run(5)
    workspace, frames = desk.workspace, list[object]()
    workspace.set_running(True)
    workspace.frame.connect(lambda: frames.append(workspace.view.place))
    timer = workspace.findChild(FrameTimer)
    assert timer is not None
    counts = []
    for move in (3, None, None, 2, None):
        if move is not None:
            workspace.move_to(move)
        timer.stop()
        timer.tick.emit()
        workspace.timer.complete()
        counts.append(len(frames))
    workspace.set_running(False)
    assert counts[0] >= 1 and [b - a for a, b in pairwise(counts)] == [0, 0, 1, 0]


def test_a_frame_that_is_requested_after_closing_does_not_open_files_again(desk: Desk) -> None:
    desk.run(5)
    timer, ticks = desk.workspace.findChild(FrameTimer), list[int]()
    assert timer is not None
    timer.tick.connect(lambda: ticks.append(1))
    desk.workspace.close()
    desk.workspace.request_frame()
    QCoreApplication.processEvents()
    assert ticks == []
