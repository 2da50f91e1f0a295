"""The program's font replaces the fonts that a system sets for kinds of widgets, such as menus on Windows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QListView, QMainWindow
from pytestqt.qtbot import QtBot

from app.theme.look import Look, put_font_on_all

KINDS = ("QMenuBar", "QMenu", "QAbstractItemView")


@pytest.fixture
def system(qapp: QApplication) -> Iterator[QFont]:
    """A font that the system sets for menus and lists. The application's fonts are restored afterwards."""
    before, foreign = qapp.font(), QFont("JetBrains Mono", 31)
    yield foreign
    qapp.setFont(before)  # takes those for kinds of widgets away


def test_menus_and_lists_take_the_applications_font(qtbot: QtBot, qapp: QApplication, system: QFont) -> None:
    Look(qapp, "light")
    for kind in KINDS:
        qapp.setFont(system, kind)  # type: ignore[arg-type]  # PySide6 takes str and says bytes
    window, listed = QMainWindow(), QListView()
    qtbot.addWidget(window)
    qtbot.addWidget(listed)
    widgets = (window.menuBar(), window.menuBar().addMenu("File"), listed)
    for widget in widgets:
        widget.ensurePolished()
    assert [widget.font().pointSize() for widget in widgets] == [31, 31, 31]  # as Windows would have them
    put_font_on_all(qapp)
    assert {widget.font().family() for widget in widgets} == {qapp.font().family()}
    assert {qapp.font(kind).family() for kind in KINDS} == {qapp.font().family()}  # type: ignore[call-overload]
