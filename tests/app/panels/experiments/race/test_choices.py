"""The choices above a race: the menu of algorithms, and a row that wraps if there is too little space."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QPushButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.boxes import Wrap
from app.experiments.race.choices import PresetMenu
from grpo_core.experiments.race import SIX


def test_the_menu_stays_open_while_algorithms_are_chosen(qtbot: QtBot) -> None:
    entries = PresetMenu()
    qtbot.addWidget(entries)
    entries.show()
    menu = entries.menu()
    menu.popup(QPoint(0, 0))
    with qtbot.waitSignal(entries.changed):
        QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(entries.entries["DAPO"]).center())
    assert menu.isVisible()
    assert entries.names == (*SIX, "DAPO") and entries.text().startswith("7 algorithms")
    menu.setActiveAction(entries.entries["RLOO"])
    QTest.keyClick(menu, Qt.Key.Key_Space)
    assert menu.isVisible() and "RLOO" not in entries.names
    entries.usual.trigger()
    assert list(entries.names) == list(SIX)
    menu.close()


def test_a_row_that_is_too_narrow_breaks(qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    line = Wrap(on=holder)
    line.setSpacing(8)
    line.setContentsMargins(0, 0, 0, 0)
    buttons = [QPushButton(text) for text in ("one", "two", "three")]
    for button in buttons:
        line.addWidget(button)
    wide = line.sizeHint().width()
    assert line.heightForWidth(wide) == line.sizeHint().height()
    line.setGeometry(QRect(0, 0, wide - 1, 200))
    assert buttons[0].y() == buttons[1].y() < buttons[2].y()
    assert buttons[2].x() == 0
    assert line.heightForWidth(1) == 3 * buttons[0].height() + 2 * 4
    assert line.minimumSize().width() < wide
    holder.resize(QSize(50, 50))
