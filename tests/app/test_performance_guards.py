"""Behaviour that keeps the window quick. The benchmarks measure the times themselves."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.experiments.kl_over_beta import KlOverBetaPanel
from app.experiments.sweep.runs_beside import MOST, drawn_of
from app.formula.objective_terms import objective_terms
from app.formula.term_strip import TermStrip
from app.plotting.axis import Scale
from app.plotting.export import Paper, drawn
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.theme.tokens import LIGHT
from app.workspace import frame
from app.workspace.frame import FrameTimer
from grpo_core.config import Objective
from grpo_core.explain import Quantity
from tests.app.conftest import PEOPLE_SEE, Driver
from tests.app.layout_requests import LayoutRequests
from tests.app.stories.hands import panel, row_of

MOST_ENTERED = 13_800


def timer_of(driver: Driver) -> FrameTimer:
    timer = driver.program.workspace.findChild(FrameTimer)
    assert timer is not None
    return timer


def test_a_window_at_rest_has_no_timer_that_ticks(driver: Driver) -> None:
    driver.run(5)
    workspace = driver.program.workspace
    driver.qtbot.waitUntil(lambda: not any(timer.isActive() for timer in workspace.findChildren(QTimer)))


def test_a_panel_behind_a_tab_draws_when_it_comes_to_the_front(driver: Driver) -> None:
    window = driver.program.window
    panel = window.panels["kl_over_beta"]
    assert isinstance(panel, KlOverBetaPanel)
    window.docks["training_history"].raise_()
    driver.settle()
    driver.run(7)
    assert panel.isVisible()
    assert not panel.seen
    assert panel.views.kl.picture.points == ()
    window.docks["kl_over_beta"].raise_()
    driver.qtbot.waitUntil(lambda: [len(some.x) for some in panel.views.kl.picture.points if some.name == "own"] == [7])


def test_while_a_run_goes_on_the_window_is_not_laid_out_again(driver: Driver) -> None:
    """A request from a single label arranges all docks again and paints the window's background a second time."""
    driver.run(12)
    driver.settle()
    requests = LayoutRequests(driver.program.window)
    driver.program.player.set_speed(10.0)
    driver.program.player.set_length(None)
    driver.program.player.toggle()
    driver.qtbot.waitUntil(lambda: driver.program.workspace.view.head > 28)
    counted = requests.count
    driver.program.player.toggle()
    driver.rest()
    requests.deleteLater()
    assert counted <= 2, "the run's beginning, and one number that has grown by a digit"


class Reactions(QObject):
    """The events by which Qt makes widgets work: they appear, disappear, are arranged, or get another tooltip.

    Attributes:
        heard: names of the widgets' classes and of the events that they have received.
    """

    KINDS = (
        QEvent.Type.ShowToParent,
        QEvent.Type.HideToParent,
        QEvent.Type.LayoutRequest,
        QEvent.Type.ToolTipChange,
        QEvent.Type.Paint,
    )

    def __init__(self, widgets: Iterable[QWidget]) -> None:
        super().__init__()
        self.heard: list[str] = []
        for widget in widgets:
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in self.KINDS:
            self.heard.append(f"{type(watched).__name__} {event.type().name}")
        return False


def test_a_step_of_a_slider_changes_one_row_of_the_controls(driver: Driver) -> None:
    driver.run(3)
    beta = row_of(driver, "objective.beta")
    others = [row for row in panel(driver, "controls").rows if row is not beta]
    beta.slider.setSliderDown(True)
    beta.slider.setValue(beta.slider.value() + 5)  # from now on, the settings differ from those of the preset
    driver.settle()
    reactions = Reactions(part for row in others for part in (row, *row.findChildren(QWidget)))
    beta.slider.setValue(beta.slider.value() + 1)
    driver.settle()
    beta.slider.setSliderDown(False)
    assert beta.field.text() == f"{driver.program.workspace.editing.settings.objective.beta:g}"
    assert reactions.heard == []


@pytest.mark.parametrize("name", ["what_if", "policy_bars"])
def test_a_step_of_a_slider_leaves_other_panels_as_they_are(driver: Driver, name: str) -> None:
    driver.run(3)
    shown = panel(driver, name)
    beta = row_of(driver, "objective.beta")
    driver.settle()
    reactions = Reactions([shown, *shown.findChildren(QWidget)])
    beta.slider.setValue(beta.slider.value() + 1)
    driver.settle()
    assert reactions.heard == []
    driver.program.workspace.move_to(2)
    driver.settle()
    assert reactions.heard != []


@pytest.mark.parametrize("frames", [100, pytest.param(2000, marks=[pytest.mark.long, pytest.mark.timeout(300)])])
def test_frames_make_no_objects_and_cost_no_reference_to_none(driver: Driver, frames: int) -> None:
    driver.run(12)
    workspace, window = driver.program.workspace, driver.program.window
    asked = [Quantity("advantage", row=1, token=0), Quantity("loss"), Quantity("kl")]

    def frame(number: int) -> None:
        workspace.move_to(number % 12 + 1)
        workspace.select(row=number % 8, action=number % 10)
        workspace.explain(asked[number % len(asked)])
        timer_of(driver).tick.emit()
        QApplication.processEvents()

    for number in range(24):  # every picture once: what is kept is kept from now on
        frame(number)
    gc.collect()
    objects, nones = len(window.findChildren(QObject)), sys.getrefcount(None)
    tops = len(QApplication.topLevelWidgets())
    for number in range(frames):
        frame(number)
    gc.collect()
    assert len(window.findChildren(QObject)) == objects
    assert len(QApplication.topLevelWidgets()) == tops
    if sys.version_info < (3, 12):  # since then None is immortal, and the count of its references says nothing
        assert sys.getrefcount(None) > nones - 100


def test_showing_another_update_enters_few_functions(driver: Driver) -> None:
    """Counted rather than timed, so that it is the same on a busy machine. What is drawn is computed once."""
    driver.run(24)
    entered = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal entered
        entered += event in ("call", "c_call")

    for step in range(1, 25):
        driver.program.workspace.move_to(step)
        sys.setprofile(count if step > 12 else None)
        timer_of(driver).tick.emit()
        QApplication.processEvents()
        sys.setprofile(None)
    assert entered / 12 < MOST_ENTERED


def test_the_worker_waits_while_a_frame_is_drawn(driver: Driver) -> None:
    driver.program.player.set_speed(None)
    driver.program.player.set_length(None)
    moved: list[int] = []

    def draw() -> None:
        head, end = driver.program.controller.head, time.perf_counter() + 0.03
        while time.perf_counter() < end:
            str(head)
        moved.append(driver.program.controller.head - head)

    driver.program.player.toggle()
    driver.qtbot.waitUntil(lambda: driver.program.controller.head > 20)
    driver.program.workspace.frame.connect(draw)
    driver.qtbot.waitUntil(lambda: len(moved) > 8)
    driver.program.workspace.frame.disconnect(draw)
    head = driver.program.controller.head
    driver.qtbot.waitUntil(lambda: driver.program.controller.head > head + 5)
    driver.program.player.toggle()
    driver.rest()
    assert sorted(moved)[len(moved) // 2] <= 2  # the update in progress; without the wait it is some dozens


def test_a_worker_that_nobody_lets_go_on_does_so_by_itself(driver: Driver) -> None:
    driver.program.controller.worker.hold()
    driver.program.player.set_speed(None)
    driver.program.player.run_n(3)
    driver.rest()
    assert driver.head == 3


def test_there_are_at_most_sixty_frames_a_second(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "INTERVAL_MS", PEOPLE_SEE)
    frames, at = FrameTimer(), list[float]()
    frames.tick.connect(lambda: at.append(time.perf_counter()))
    frames.set_live(True)
    qtbot.waitUntil(lambda: len(at) > 8)
    frames.stop()
    assert at[-1] - at[1] > 0.95 * (len(at) - 2) / 60


def rest_after(qtbot: QtBot, frame_seconds: float, *, busy: bool, shared: bool = False) -> int:
    """Return the rest in milliseconds after a frame that takes ``frame_seconds``, either computing or waiting."""
    frames = FrameTimer()
    frames.shared = shared
    ticker = frames.findChild(QTimer)
    assert ticker is not None

    def draw() -> None:
        if not busy:
            time.sleep(frame_seconds)
            return
        end = time.thread_time() + frame_seconds
        while time.thread_time() < end:
            str(end)

    frames.tick.connect(draw)
    with qtbot.waitSignal(frames.drawn):
        frames.set_live(True)
    frames.stop()
    return ticker.interval()


def test_a_frame_that_costs_processor_time_is_followed_by_a_short_rest(qtbot: QtBot) -> None:
    assert 5 <= rest_after(qtbot, 0.06, busy=True) <= 8


def test_a_frame_that_other_programs_have_delayed_is_followed_by_the_next(qtbot: QtBot) -> None:
    assert rest_after(qtbot, 0.06, busy=False) <= 2


def test_a_run_in_this_very_process_gets_as_long_a_rest_as_the_frame_took(qtbot: QtBot) -> None:
    assert rest_after(qtbot, 0.06, busy=True, shared=True) >= 60


def test_a_frame_that_could_not_be_drawn_is_not_the_last(qtbot: QtBot) -> None:
    frames = FrameTimer()
    heard: list[str] = []

    def draw() -> None:
        heard.append("frame")
        if len(heard) == 1:
            raise ValueError("a panel is broken")

    frames.tick.connect(draw)
    with qtbot.captureExceptions() as errors:
        frames.set_live(True)
        qtbot.waitUntil(lambda: len(heard) > 2)
    frames.stop()
    assert len(errors) == 1


def test_a_long_run_is_a_few_points_of_the_scatter_that_stay_as_it_grows() -> None:
    for head in (1, MOST, MOST + 1, 123_456, 1_000_000):
        drawn = drawn_of(head)
        assert 0 < len(drawn) <= MOST
        assert set(drawn) <= set(drawn_of(head + 1)) or len(drawn) == MOST  # then every second one stays


def test_a_formula_that_may_come_late_lets_the_window_be_painted_first(qtbot: QtBot) -> None:
    strip = TermStrip(objective_terms(Objective(beta=0.0417)), late=True)  # a number that no preset has
    qtbot.addWidget(strip)
    strip.resize(700, 80)
    waiting = strip.heightForWidth(700)
    assert strip.waits
    assert all(button.drawn is None for button in strip.buttons)
    with qtbot.waitSignal(strip.typeset):
        strip.show()
    assert all(button.drawn is not None for button in strip.buttons)
    assert abs(strip.heightForWidth(700) - waiting) <= 1


def test_a_curve_that_is_kept_as_pixels_on_screen_is_written_as_a_line(qtbot: QtBot) -> None:
    plot = Plot("History", Scale(label="update", low=1, whole=True), Scale())
    qtbot.addWidget(plot)
    plot.add_curve("reward", "reward", "reward", Pyramid(np.sin(np.arange(300.0))))
    plot.resize(300, 150)
    plot.show()
    plot.refresh()
    plot.viewport().repaint()
    assert b"<image" not in drawn(plot, "svg", Paper(theme=LIGHT))
