"""When updates are requested, and a run that is left during an update but finishes it nevertheless."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from PySide6.QtCore import QObject, Slot
from pytestqt.qtbot import QtBot

from app.training import host
from app.training.controller import Controller
from app.workspace.player import Player
from app.workspace.run_manager import RunManager
from grpo_core.config import Settings
from grpo_core.errors import Cancelled
from grpo_core.host.process import serve
from grpo_core.learners import Learner
from grpo_core.record import Step
from tests.app.training.scripted import scripted
from tests.app.workspace.conftest import Desk, on_disk

ENTERED = threading.Event()
"""Set when a late learner is in the middle of an update."""


def late(real: Learner, poll: Callable[[], None]) -> Step:
    """Make an update that is past the last point at which it checks for cancellation, in a run with seed 1."""
    if real.settings.seed == 1:
        ENTERED.set()
        never = threading.Event()
        with suppress(Cancelled):
            while True:
                poll()
                never.wait(0.001)
    return next(real)


def begin_update(desk: Desk) -> None:
    """Press Step and wait, without handling the worker's reports, until the worker is in the middle of the update."""
    ENTERED.clear()
    desk.player.step()
    assert ENTERED.wait(60)


@pytest.fixture
def hasty(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose runs with seed 1 finish the update during which they are left."""
    monkeypatch.setattr(host, "learner", scripted(late))
    return desk


class Noted(Controller):
    """A controller that records calls of ``look``."""

    def __init__(self, parent: QObject, moments: list[str]) -> None:
        super().__init__(parent, process=serve)
        self.moments = moments

    @Slot()
    def look(self) -> None:
        self.moments.append("look")
        super().look()


def test_updates_are_asked_for_when_a_frame_is_drawn_and_never_beside_it(desk: Desk, qtbot: QtBot) -> None:
    """Otherwise the worker waits for the interpreter lock, wakes at each of the frame's Qt calls, and competes with
    the run's process.
    """
    assert desk.controller.shutdown(10)
    workspace, moments = desk.workspace, list[str]()
    desk.controller = Noted(workspace, moments)
    desk.player = Player(workspace, desk.controller, workspace)
    workspace.pull.connect(lambda: moments.append("begins"))
    workspace.drawn.connect(lambda: moments.append("drawn"))
    desk.run_manager = RunManager(workspace, desk.controller, desk.player, desk.folder, workspace)
    run = desk.run_manager.new_run(Settings())
    desk.player.set_speed(None)
    desk.player.run_n(200)
    qtbot.waitUntil(lambda: run.head == 200, timeout=60_000)
    desk.rest()
    before = [moments[place - 1] for place, moment in enumerate(moments) if moment == "look"]
    assert set(before) == {"drawn"}


def test_an_update_finished_after_its_run_was_left_is_not_forgotten(hasty: Desk) -> None:
    left = hasty.run_manager.new_run(Settings(seed=1))
    begin_update(hasty)
    hasty.run_manager.new_run(Settings(seed=2))
    hasty.player.step()
    hasty.rest()
    assert (left.head, on_disk(left)) == (1, 1)
    assert left.step(1) is not None
    assert len(left.series["loss"].values) == 1
    assert hasty.said == []


def test_a_run_left_and_taken_up_again_at_once_goes_on_behind_that_update(hasty: Desk) -> None:
    left = hasty.run_manager.new_run(Settings(seed=1))
    begin_update(hasty)
    other = hasty.run_manager.new_run(Settings(seed=2))
    hasty.player.step()
    hasty.run_manager.show(left)
    begin_update(hasty)
    assert left.head == 1
    hasty.run_manager.show(other)
    hasty.player.step()
    hasty.rest()
    assert (left.head, on_disk(left)) == (2, 2)
    assert other.head == on_disk(other)
    assert hasty.said == []
