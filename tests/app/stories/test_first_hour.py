"""The first hour: everything requested is within two clicks, every answer of a worksheet takes at most three actions,
and nothing is disabled without a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QComboBox,
    QLineEdit,
    QScrollBar,
    QTabBar,
    QToolButton,
    QWidget,
)

from app.commands.actions import CommandAction
from app.examples import example
from app.formula.term_button import TermButton
from app.panel_registry import KL_OVER_BETA, POLICY_BARS, STEP_DETAIL, TOKEN_INSPECTOR, TRAINING_HISTORY
from app.widgets.panel import Panel, in_window
from grpo_core.claims.sweep import falls
from grpo_core.config.settings import flat
from tests.app.conftest import Driver
from tests.app.stories.hands import activate, panel, press
from tests.app.teaching.lessons.spoilers import texts_of

pytestmark = pytest.mark.one_window
ROOT = Path(__file__).parents[3]
TRACE = ROOT / "tests" / "data" / "traces" / "grpo"
OPERATED = (QAbstractButton, QComboBox, QAbstractSlider, QLineEdit)


# -- nothing is grey without its reason --------------------------------------------------------------------------------


def recorded(driver: Driver) -> None:
    program = driver.program
    program.runs.open_path(TRACE)
    driver.qtbot.waitUntil(lambda: program.workspace.view.run.is_recorded)
    panel(driver, "diagnosis")


def locked(driver: Driver) -> None:
    driver.run(3)
    driver.program.workspace.editing.restrict(("seed", "objective.beta", "learner.group_size"), ())


def asked(driver: Driver) -> None:
    driver.program.part("teaching").lessons.open("one_update")
    driver.qtbot.waitUntil(lambda: not driver.program.part("teaching").lessons.player.busy)


def language(driver: Driver) -> None:
    driver.program.run_manager.open(example())
    driver.program.layouts.reset()


def at_rest(one: Panel) -> bool:
    return not getattr(one, "busy", False)


def compared(driver: Driver) -> None:
    driver.run(3)
    for name in ("kl_over_beta", "comparison", "breakpoints", "queue", "what_if"):
        shown = panel(driver, name)
        driver.qtbot.waitUntil(partial(at_rest, shown))
        assert unreasoned(driver) == []


STATES: dict[str, Callable[[Driver], object]] = {
    "at the start": lambda driver: None,
    "after an update": lambda driver: driver.run(1),
    "a recorded example": language,
    "a recorded run": recorded,
    "a locked session": locked,
    "a lesson with an open question": asked,
    "experiments": compared,
}


def unreasoned(driver: Driver) -> list[str]:
    """Return visible controls that are disabled without giving a reason on hover or to a screen reader."""
    found = []
    for widget in driver.program.window.findChildren(QWidget):
        inner = widget.objectName().startswith("qt_") or isinstance(widget, QScrollBar)
        inner = inner or isinstance(widget.parentWidget(), QTabBar)
        inner = inner or (isinstance(widget, TermButton) and not widget.term.key)  # a sign between two terms
        if not isinstance(widget, OPERATED) or inner or widget.isEnabled() or not in_window(widget):
            continue
        action = widget.defaultAction() if isinstance(widget, QToolButton) else None
        why = action.why if isinstance(action, CommandAction) else widget.property("why")
        spoken = widget.accessibleDescription() or widget.toolTip()
        if not why or why not in widget.toolTip() or why not in spoken:
            found.append(f"{type(widget).__name__} {widget.objectName()} {widget.accessibleName()}: {why}")
    for action in driver.program.actions:
        if not action.isEnabled() and not (action.why.endswith(".") and action.why in action.toolTip()):
            found.append(action.objectName())
    return found


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_grey_without_its_reason(driver: Driver, state: str) -> None:
    STATES[state](driver)
    driver.settle()
    assert unreasoned(driver) == []


def test_a_reason_goes_with_what_it_was_for(driver: Driver) -> None:
    stage = next(iter(driver.program.window.panels["pipeline"].stages.values()))  # type: ignore[attr-defined]
    assert "Step" in stage.toolTip() and not stage.isEnabled()
    driver.run(1)
    assert stage.isEnabled() and "No update is shown" not in stage.toolTip() + stage.accessibleDescription()


# -- words on what is pressed most -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Reset", "New run", "Branch here"])
def test_what_is_pressed_most_says_its_name(driver: Driver, text: str) -> None:
    button = next(one for one in driver.program.transport.findChildren(QToolButton) if one.text() == text)
    assert button.isVisible() and button.toolButtonStyle() is not Qt.ToolButtonStyle.ToolButtonIconOnly
    assert button.toolTip().startswith(text)


def test_reset_begins_again_as_the_run_began_and_keeps_it_as_thin_lines(driver: Driver) -> None:
    program = driver.program
    driver.run(5)
    before = driver.shown_run
    program.workspace.editing.edit({"objective.beta": 0.5}, "β")
    driver.run(5)
    program.actions["reset"].trigger()
    driver.settle()
    run = driver.shown_run
    assert run is not before and run.head == 0
    assert run.origin.settings == before.origin.settings == program.workspace.editing.wanted
    assert [(trial.run, trial.shown) for trial in program.workspace.view.trials] == [(before, True)]
    driver.run(5)
    assert list(run.series["kl"].values) == list(before.series["kl"].values[:5]), "the same seed"
    assert program.actions["reset"].why == ""
    program.actions["new_run"].trigger()
    driver.settle()
    assert program.actions["reset"].why == "The run is already at update 0."


# -- within two clicks -------------------------------------------------------------------------------------------------


class Clicks:
    """A user's clicks in the window of an empty profile, counted. They begin on the first screen, unless ``inside``."""

    def __init__(self, driver: Driver, *, inside: bool = False) -> None:
        self.driver, self.count = driver, 0
        if not inside:
            driver.program.doors.show_home()
        driver.settle()

    def on(self, widget: QWidget, place: QPoint | None = None) -> None:
        assert in_window(widget) and widget.isEnabled()
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place or widget.rect().center())
        self.count += 1
        self.driver.settle()

    def on_tab(self, title: str) -> None:
        bars = self.driver.program.window.findChildren(QTabBar)
        bar, place = next(
            (bar, n) for bar in bars if bar.isVisible() for n in range(bar.count()) if bar.tabText(n) == title
        )
        self.on(bar, bar.tabRect(place).center())

    def on_button(self, text: str) -> None:
        buttons = self.driver.program.window.findChildren(QAbstractButton)
        self.on(next(one for one in buttons if one.text() == text and in_window(one)))


def test_the_policy_is_there_without_a_click_and_history_and_step_detail_after_one(driver: Driver) -> None:
    panels = driver.program.window.panels
    bars, history, detail = panels.of(POLICY_BARS), panels.of(TRAINING_HISTORY), panels.of(STEP_DETAIL)
    assert bars.seen and bars.plot.count == 10
    clicks = Clicks(driver)
    clicks.on_button("Play")
    driver.qtbot.waitUntil(lambda: driver.head > 2)
    driver.program.player.pause()
    driver.rest()
    driver.settle()
    assert history.seen and all(chart.has_data() for chart in history.charts)
    assert detail.seen and detail.table.model().rowCount() == 8
    assert clicks.count == 1


def test_kl_over_beta_shows_a_sweep_after_two_clicks(driver: Driver) -> None:
    clicks = Clicks(driver)
    clicks.on_button("Play")
    driver.program.player.pause()
    driver.rest()
    clicks.on_tab("KL over β")
    shown = driver.program.window.panels.of(KL_OVER_BETA)
    driver.qtbot.waitUntil(lambda: not shown.busy)
    assert shown.seen and shown.controller.results is not None and clicks.count == 2


def test_the_token_inspector_shows_a_language_model_after_one_click_on_the_first_screen(driver: Driver) -> None:
    clicks = Clicks(driver)
    clicks.on_button("A language model, token by token")
    driver.qtbot.waitUntil(lambda: driver.program.first_steps.playing is None, timeout=60_000)
    driver.settle()
    shown = driver.program.window.panels.of(TOKEN_INSPECTOR)
    assert shown.seen and driver.program.workspace.view.step.step is not None and clicks.count == 1


@pytest.mark.parametrize(("button", "language"), [("Show a language model", True), ("Compute an update", False)])
def test_the_empty_token_inspector_offers_what_fills_it(driver: Driver, button: str, language: bool) -> None:
    clicks = Clicks(driver, inside=True)
    clicks.on_tab("Token inspector")
    clicks.on_button(button)
    driver.qtbot.waitUntil(lambda: driver.head == 1, timeout=60_000)
    driver.qtbot.waitUntil(lambda: driver.program.first_steps.playing is None)
    driver.rest()
    driver.settle()
    run, shown = driver.program.workspace.run, driver.program.window.panels.of(TOKEN_INSPECTOR)
    assert run is not None and run.origin.settings.is_language is language
    assert shown.seen and not shown.compute.isVisible() and clicks.count == 2


def test_kl_over_beta_beside_a_language_model_offers_a_sweep_at_once(driver: Driver) -> None:
    language(driver)
    clicks = Clicks(driver, inside=True)
    shown = panel(driver, "kl_over_beta")
    clicks.on_button("Sweep now")
    driver.qtbot.waitUntil(lambda: shown.controller.results is not None)
    driver.settle()
    assert shown.busy and not shown.run.now.isVisible()  # its points come one by one
    clicks.on_button("Cancel")
    assert not shown.busy


# -- a class's worksheet ----------------------------------------------------------------------------------------------


def button(driver: Driver, command: str) -> QAbstractButton:
    found = driver.program.transport.widgetForAction(driver.program.actions[command])
    assert isinstance(found, QAbstractButton)
    return found


def test_one_step_and_what_it_shifts_take_one_key(driver: Driver) -> None:
    activate(driver)
    press(driver, Qt.Key.Key_Period)
    driver.rest()
    picture = panel(driver, "policy_bars").plot.picture
    assert picture.sentence.startswith("Update 1: more probability for")
    change = next(lane for lane in picture.lanes if lane.key == "change")
    assert [note for note in change.notes if note.startswith("+0.0")], "by how much, in digits"


@pytest.mark.long
def test_each_further_seed_takes_two_clicks_and_all_runs_stay(driver: Driver) -> None:
    driver.run(10)
    clicks = Clicks(driver, inside=True)
    for _ in range(3):
        clicks.on(button(driver, "new_seed"))
        clicks.on(button(driver, "run_n"))
        driver.rest()
    runs = driver.program.workspace.runs
    assert [run.origin.settings.seed for run in runs] == [7, 8, 9, 10]
    assert {run.head for run in runs[1:]} == {50}
    assert driver.program.transport.runs.count() == 4


def test_group_sizes_are_compared_in_three_actions_and_the_smoothest_is_named(driver: Driver) -> None:
    driver.program.window.resize(1366, 768)
    driver.run(1)
    clicks = Clicks(driver, inside=True)
    clicks.on_tab("KL over β")
    sweep = panel(driver, "kl_over_beta")
    driver.qtbot.waitUntil(lambda: not sweep.busy)
    clicks.on(sweep.choices.setup)
    box = sweep.choices.over
    assert box.isVisible()
    place = next(n for n in range(box.count()) if box.itemText(n).startswith("Group size"))
    box.setCurrentIndex(place)
    box.activated.emit(place)
    driver.qtbot.waitUntil(lambda: sweep.controller.results is not None and not sweep.busy)
    driver.qtbot.waitUntil(lambda: sweep.controller.results.sweep.over.path == "learner.group_size")
    driver.qtbot.waitUntil(lambda: not sweep.busy)
    driver.settle()
    assert {4, 16, 32} <= set(sweep.controller.results.sweep.over.values)
    assert flat(driver.program.workspace.editing.wanted)["learner.group_size"] == 8, "the run itself is left alone"
    results = sweep.controller.results
    values = results.sweep.over.values
    lost = {name: falls(results.done[place, 0].measures["reward"]).mean() for place, name in enumerate(values)}
    assert lost[32] < lost[16] < lost[4], "larger groups see through the noise"
    smoothest = min(lost, key=lambda size: lost[size])
    assert f"The smoothest is G {smoothest} " in results.headline
    assert results.headline in texts_of(driver.program.window)
