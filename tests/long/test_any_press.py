"""Random key presses, clicks, choices and typing: no exception, no complaint from Qt, and intact files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QMenu,
    QMenuBar,
    QPushButton,
    QSlider,
    QToolButton,
    QWidget,
)

from app.workspace.cursor import Stage
from grpo_core.config import BanditTask, Settings
from grpo_core.runs import library
from tests.app.conftest import Driver
from tests.app.stories.hands import panel, type_into
from tests.app.workspace.conftest import on_disk

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
SEEDS, PRESSES = 8, 250
KEYS = tuple(
    getattr(Qt.Key, f"Key_{name}")
    for name in (
        "Space", "Period", "Comma", "E", "T", "N", "P", "Home", "End", "Left", "Right", "Up", "Down", "Return", "Tab",
        "PageUp", "PageDown", "Escape", "5", "Backspace",
    )
)  # fmt: skip # in rows
ENTRIES = ("", "abc", "0", "1", "3", "0.5", "-1", "1e9", "7", "12")
TASKS = ("single_peak", "double_peak", "linear", "custom", "length", "chain")


class Hands:
    """A user who presses anything.

    Attributes:
        did: what was pressed, in order, to help find the cause of a failure.
    """

    def __init__(self, driver: Driver, seed: int) -> None:
        self.driver, self.program = driver, driver.program
        self.any = random.Random(seed)
        self.did: list[tuple[Any, ...]] = []

    def act(self) -> None:
        """Press something at random."""
        deeds = (
            self.command,
            self.key,
            self.click,
            self.choose,
            self.slide,
            self.type,
            self.look,
            self.task,
            self.open,
        )
        deed = self.any.choice((*deeds, self.command, self.key, self.run))
        self.did.append((deed.__name__, *(deed() or ())))

    def command(self) -> tuple[Any, ...]:
        ready = [a for a in self.program.actions if a.isEnabled() and a.command.id != "quit"]
        action = self.any.choice(ready)
        action.trigger()
        return (action.command.id,)

    def key(self) -> tuple[Any, ...]:
        widget, key = QApplication.focusWidget() or self.program.window, self.any.choice(KEYS)
        shift = self.any.choice([Qt.KeyboardModifier.NoModifier] * 3 + [Qt.KeyboardModifier.ShiftModifier])
        QTest.keyClick(widget, key, shift)
        return type(widget).__name__, key, shift

    def click(self) -> tuple[Any, ...]:
        seen = [
            widget
            for widget in self.program.window.findChildren(QWidget)
            if widget.isVisible()
            and min(widget.width(), widget.height()) > 5
            and not isinstance(widget, (QMenuBar, QMenu, QComboBox))  # they would wait for an answer,
            and not (isinstance(widget, (QToolButton, QPushButton)) and widget.menu() is not None)  # these too
        ]
        widget = self.any.choice(seen)
        where = QPoint(self.any.randrange(widget.width()), self.any.randrange(widget.height()))
        self.any.choice((QTest.mouseClick, QTest.mouseDClick))(widget, Qt.MouseButton.LeftButton, pos=where)
        return type(widget).__name__, widget.objectName(), where

    def choose(self) -> tuple[Any, ...]:
        boxes = [box for box in self.program.window.findChildren(QComboBox) if box.isVisible()]
        if not boxes:
            return ()
        box = self.any.choice(boxes)
        place = self.any.randrange(max(box.count(), 1))
        if box.count():
            box.setCurrentIndex(place)
            box.activated.emit(place)
        return box.accessibleName(), place

    def slide(self) -> tuple[Any, ...]:
        slider = self.any.choice(self.program.window.findChildren(QSlider))
        slider.setValue(self.any.randint(slider.minimum(), slider.maximum()))
        return slider.accessibleName(), slider.value()

    def type(self) -> tuple[Any, ...]:
        controls: Any = self.program.window.panels["controls"]
        row = self.any.choice([row for row in controls.rows if hasattr(row, "field")])
        entry = self.any.choice(ENTRIES)
        type_into(row.field, entry)
        return row.paths, entry

    def look(self) -> tuple[Any, ...]:
        workspace = self.program.workspace
        workspace.move_to(self.any.randrange(-2, self.driver.head + 3))
        if workspace.cursor.step:
            workspace.show_stage(self.any.choice(list(Stage)), self.any.randrange(-1, 4))
        return (workspace.cursor,)

    def task(self) -> tuple[Any, ...]:
        task = BanditTask(landscape=self.any.choice(TASKS), levels=(0.0, -1.0))
        self.program.run_manager.new_run(Settings(task=task))
        return (task.landscape,)

    def run(self) -> tuple[Any, ...]:
        self.program.player.run_n(self.any.choice((1, 3, 20)))
        return ()

    def open(self) -> tuple[Any, ...]:
        files = sorted(self.program.paths.runs.glob("*.grpo"))
        if files:
            self.program.runs.open_path(self.any.choice(files))
        return ()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_anything_may_be_pressed_at_any_time(
    driver: Driver, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, answer in (
        ("QFileDialog.getOpenFileName", ("", "")),
        ("QFileDialog.getSaveFileName", (str(tmp_path / "copy.grpo"), "")),
        ("QFileDialog.getExistingDirectory", str(tmp_path)),
        ("QInputDialog.getText", ("Mine", True)),
        ("QMenu.exec", None),
    ):
        monkeypatch.setattr(f"PySide6.QtWidgets.{name}", lambda *_, answer=answer: answer)
    hands, program = Hands(driver, seed), driver.program
    panel(driver, "controls").further.more.setChecked(True)
    for press in range(PRESSES):
        hands.act()
        QApplication.processEvents()
        if press % 10 == 0:
            driver.settle()
            for dialog in QApplication.topLevelWidgets():
                if isinstance(dialog, QDialog):
                    dialog.hide()
        if len(program.workspace.runs) > 6:
            program.run_manager.close_run(hands.any.choice(program.workspace.runs))
    program.player.rest()
    program.controller.pause()  # whichever run it is
    driver.rest()
    program.window.setWindowState(Qt.WindowState.WindowNoState)
    assert [entry.error for entry in library.entries(program.paths.runs) if entry.error] == [], hands.did[-20:]
    for run in program.workspace.runs:
        assert not run.path.exists() or on_disk(run) == run.head, hands.did[-20:]
