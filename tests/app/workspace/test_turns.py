"""Panels that show the same beat of a run draw one after the other, a frame each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QHBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.panels.base import Panel
from app.workspace.pulse import BEAT, Pulse
from app.workspace.turns import Turns
from app.workspace.view import View
from app.workspace.workspace import Workspace
from tests.app.workspace.conftest import Desk
from tests.app.workspace.test_pulse import Clock


def frame(turns: Turns, *askers: str) -> list[str]:
    """Who draws in a frame in which these ask."""
    turns.begin_frame()
    return [who for who in askers if turns.take(who)]


def test_one_draws_a_frame_and_nobody_is_left_out() -> None:
    turns = Turns()
    assert frame(turns, "a", "b", "c") == ["a"]
    assert frame(turns, "b", "c") == ["b"]
    assert frame(turns, "a", "c") == ["c"], "who began to wait first"
    assert [frame(turns, "a", "b", "c") for _ in range(4)] == [["a"], ["b"], ["c"], ["a"]], "with a beat every frame"


def test_who_asks_no_more_holds_nobody_up() -> None:
    turns = Turns()
    frame(turns, "a", "hidden", "c")
    drew = [frame(turns, "c") for _ in range(3)]
    assert ["c"] in drew
    assert not frame(turns)


class Noting(Panel):
    """A panel that notes which updates it has drawn."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        self.updates: list[int] = []
        super().__init__(workspace, parent)

    def draw(self, view: View) -> None:
        self.updates.append(view.cursor.step)


class Calm(Noting):
    """A panel of numbers."""

    calm = True


class Growing(Noting):
    """A panel of curves."""

    alternate = True


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    """A window for panels."""
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(600, 200)
    return made


@pytest.fixture
def calm(desk: Desk, window: QWidget, qtbot: QtBot) -> Iterator[list[Noting]]:
    """Three panels of numbers that have seen five updates."""
    yield in_window(desk, window, qtbot, *(Calm(desk.workspace) for _ in range(3)))
    desk.workspace.set_running(False)


@pytest.fixture
def growing(desk: Desk, window: QWidget, qtbot: QtBot) -> Iterator[Noting]:
    """A panel of curves that has seen five updates, of a run that hurries on."""
    [panel] = in_window(desk, window, qtbot, Growing(desk.workspace))
    hurry(desk, Clock())
    panel.updates.clear()
    yield panel
    desk.workspace.set_running(False)


def in_window(desk: Desk, window: QWidget, qtbot: QtBot, *panels: Noting) -> list[Noting]:
    """These panels in a window that is shown, after five updates."""
    desk.run(5)
    row = QHBoxLayout(window)
    for panel in panels:
        row.addWidget(panel)
    window.show()
    qtbot.waitUntil(lambda: all(panel.seen for panel in panels))
    tick(desk)
    return list(panels)


def hurry(desk: Desk, clock: Clock) -> None:
    """From now on the run hurries on, and its beats come when the test turns the clock."""
    desk.workspace._pulse = Pulse(clock)
    desk.workspace.set_running(True)
    desk.workspace._timer.stop()
    tick(desk)


def tick(desk: Desk) -> None:
    """A frame."""
    desk.workspace._timer.tick.emit()


def grow(desk: Desk) -> None:
    """The run is an update longer, and followed."""
    run = desk.shown
    last = run.step(5)
    assert last is not None
    run.extend({}, run.head + 1)
    run.keep(type(last)(**{**vars(last), "step": run.head}))
    desk.workspace.head_moved()
    desk.workspace._timer.stop()


def test_a_beat_reaches_every_panel_in_a_frame_of_its_own_and_shows_the_same_update(
    desk: Desk, calm: list[Noting]
) -> None:
    clock = Clock()
    hurry(desk, clock)
    for panel in calm:
        panel.updates.clear()
    clock.now += 1.1 * BEAT
    for wanted in ([1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]):
        grow(desk)
        tick(desk)
        assert [len(panel.updates) for panel in calm] == wanted
    assert [panel.updates for panel in calm] == [[6]] * 3, "the update of the beat, though the run has gone on"


def test_a_run_that_stops_is_drawn_at_once_by_all(desk: Desk, calm: list[Noting]) -> None:
    clock = Clock()
    hurry(desk, clock)
    clock.now += 1.1 * BEAT
    grow(desk)
    tick(desk)
    grow(desk)
    desk.workspace.set_running(False)
    tick(desk)
    assert [panel.updates[-1] for panel in calm] == [7] * 3


def test_what_is_chosen_shows_at_once_while_the_run_hurries_on(desk: Desk, calm: list[Noting]) -> None:
    hurry(desk, Clock())
    before = [len(panel.updates) for panel in calm]
    desk.workspace.select(row=1)
    tick(desk)
    assert [len(panel.updates) for panel in calm] == [count + 1 for count in before]


def test_curves_are_drawn_in_every_second_frame_of_a_run_that_hurries_on(desk: Desk, growing: Noting) -> None:
    for _ in range(6):
        grow(desk)
        tick(desk)
    head = desk.shown.head
    assert growing.updates in ([head - 5, head - 3, head - 1], [head - 4, head - 2, head])


def test_curves_show_every_update_that_comes_after_a_frame_without_one(desk: Desk, growing: Noting) -> None:
    for _ in range(3):
        tick(desk)
        grow(desk)
        tick(desk)
    assert growing.updates == [6, 7, 8]


def test_curves_of_a_run_that_stops_end_at_its_last_update(desk: Desk, growing: Noting) -> None:
    for _ in range(2):
        grow(desk)
        tick(desk)
    desk.workspace.set_running(False)
    tick(desk)
    assert growing.updates[-1] == desk.shown.head


def test_what_is_chosen_shows_at_once_in_curves_that_have_just_been_drawn(desk: Desk, growing: Noting) -> None:
    for row in range(3):
        desk.workspace.select(row=row)
        tick(desk)
    assert len(growing.updates) == 3
