"""What a screen reader says about the pictures in lessons, and that no label's name hides its text from it."""

from __future__ import annotations

import html
import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from app.panel_registry import PANELS
from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.plotting.table_twin import TableTwin
from app.widgets.panel import in_window
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of

pytestmark = pytest.mark.one_window

SLIDERS = {
    "same_rewards": "80%",
    "difficulty": "50%",
    "beta_sweep": "0.5",
    "clipping": "1 of 1",
}
"""Lesson -> the initial text of the slider below its picture."""


@pytest.mark.parametrize("lesson", SLIDERS)
def test_the_slider_below_a_lessons_picture_says_a_value(pupil: Pupil, lesson: str) -> None:
    pupil.driver.program.part("teaching").lessons.player.open(lesson_of(lesson))
    pupil.wait()
    interface = QAccessible.queryAccessibleInterface(pupil.picture.slider)  # type: ignore[attr-defined]
    assert interface.text(QAccessible.Text.Value) == SLIDERS[lesson]


@pytest.mark.parametrize(("lesson", "place"), [("kl", 3), ("kl", 6), ("reported", 0), ("pretrained", 0)])
def test_every_picture_of_a_lesson_says_in_a_sentence_what_it_shows(pupil: Pupil, lesson: str, place: int) -> None:
    pupil.driver.program.part("teaching").lessons.player.open(lesson_of(lesson), place)
    pupil.wait()
    kinds = (Plot, BarChart, TableTwin)
    shown = [part for part in pupil.picture.findChildren(QWidget) if isinstance(part, kinds) and in_window(part)]
    assert shown
    assert not [part.accessibleName() for part in shown if not part.accessibleDescription()]


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
