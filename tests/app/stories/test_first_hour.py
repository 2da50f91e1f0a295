"""The first hour: whatever is asked for is within two clicks, and nothing is grey without its reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
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
from app.panels.base import Panel, in_window
from tests.app.conftest import Driver
from tests.app.stories.hands import panel

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
    driver.program.lessons.open("one_update")
    driver.qtbot.waitUntil(lambda: not driver.program.lessons.player.busy)


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
    """What is shown, can be operated at times, is disabled now, and says on hover or to a screen reader no reason."""
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
    before = program.workspace.run
    program.workspace.editing.edit({"objective.beta": 0.5}, "β")
    driver.run(5)
    program.actions["reset"].trigger()
    driver.settle()
    run = program.workspace.run
    assert run is not None and before is not None and run is not before and run.head == 0
    assert run.origin.settings == before.origin.settings == program.workspace.editing.wanted
    assert [(trial.run, trial.shown) for trial in program.workspace.view.trials] == [(before, True)]
    driver.run(5)
    assert list(run.series["kl"].values) == list(before.series["kl"].values[:5]), "the same seed"
    assert program.actions["reset"].why == ""
    program.actions["new_run"].trigger()
    driver.settle()
    assert program.actions["reset"].why == "The run is at update 0 already."
