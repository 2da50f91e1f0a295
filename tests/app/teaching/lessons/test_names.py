"""No label's accessible name hides its text from a screen reader."""

from __future__ import annotations

import html
import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel

from app.panel_registry import PANELS
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window


def spoken(label: QLabel) -> str:
    """Return the text of a label without markup."""
    text = label.text()
    rich = label.textFormat() == Qt.TextFormat.RichText
    return html.unescape(re.sub(r"<[^>]*>", "", text)).strip() if rich else text.strip()


def labels() -> list[QLabel]:
    return [one for one in QApplication.allWidgets() if isinstance(one, QLabel)]


def hidden_texts() -> list[str]:
    """Return what is wrong with labels whose text is neither in their name nor in their description."""
    return [
        f"{one.accessibleName()!r} hides {spoken(one)!r}"
        for one in labels()
        if one.accessibleName() and spoken(one) not in one.accessibleName() + one.accessibleDescription()
    ]


def test_no_name_hides_the_text_of_a_label(pupil: Pupil) -> None:
    program = pupil.driver.program
    for spec in PANELS:
        if spec.id in program.window.docks:
            program.window.show_panel(spec)
    pupil.driver.run(2)
    program.actions["speaker"].trigger()
    pupil.open("same_rewards")
    pupil.walk_to(2)
    pupil.press(Qt.Key.Key_S)
    pupil.driver.settle()
    pupil.driver.qtbot.waitUntil(lambda: not hidden_texts(), timeout=10_000)  # the status is announced at intervals
    assert len(labels()) > 200
