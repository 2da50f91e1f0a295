"""Open the whole window in a made-up language and report, as JSON, what was not translated and what does not fit.

python -m tests.app.languages.survey pseudo|pseudo-rtl HOME panels|lessons
"""
# ruff: noqa: E402

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QT_LOGGING_RULES"] = "*.debug=false"

from app import language

language.choose(["--language", sys.argv[1]])  # before the panels are imported, whose constants are texts

from PySide6.QtCore import QEvent, QEventLoop, Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QGroupBox,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QTabBar,
    QTableView,
    QWidget,
)

from app.application import Application
from app.formula.formula_label import FormulaLabel
from app.formula.term_strip import TermStrip
from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.token_grid.grid import TokenGrid
from app.training.controller import State
from app.workspace.player import Mode
from grpo_core.config import PRESETS
from grpo_core.explain import Quantity

PROPER = re.compile(
    "|".join(map(re.escape, PRESETS)) + r"|GRPO|REINFORCE|PPO|TRL|verl|arXiv|https?:|grpo|GAE|SGD|SNR|Adam"
    r"|nats|PFLOP|[GM]iB|CPU|CUDA|MPS|float|min\(|clip\(|hat|exp|[∂∇]|Williams"
)
"""Names of algorithms, programs, settings and units are the same in any language, and so are formulas."""
QT = ("qt_", "ScrollLeftButton", "ScrollRightButton", "Export", "Export...")
"""Parts of Qt, which are translated by Qt's own catalogues, and of pyqtgraph, which nobody sees."""
NEVER_TURNED = (Plot, TermStrip, FormulaLabel, TokenGrid)
"""Mathematics and tokens run from left to right in any language."""
KEYS = re.compile(r" \([^()]*\)(?=\. «|$)")
"""Of a command, in its tip."""


def settle(milliseconds: int = 60) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def texts(widget: QWidget) -> Iterator[tuple[str, str]]:
    """(where, text) of everything a person reads or hears of a widget."""
    if isinstance(widget, (QLabel, QAbstractButton)):
        yield "text", widget.text()
    if isinstance(widget, QGroupBox):
        yield "title", widget.title()
    if isinstance(widget, QComboBox):
        yield from (("item", widget.itemText(place)) for place in range(widget.count()))
    if isinstance(widget, QTabBar):
        yield from (("tab", widget.tabText(place)) for place in range(widget.count()))
    if isinstance(widget, QLineEdit):
        yield "placeholder", widget.placeholderText()
    if isinstance(widget, QTableView) and widget.model() is not None:
        model = widget.model()
        for column in range(model.columnCount()):
            yield "header", str(model.headerData(column, Qt.Orientation.Horizontal) or "")
    if isinstance(widget, BarChart):
        picture = widget.picture
        labels = [lane.y.label for lane in picture.lanes if lane.y is not None]
        yield from (("axis", text) for text in (picture.label, picture.x_label or "", *labels))
    if isinstance(widget, Plot):
        yield from (("axis", scale.label) for scale in (widget.x_scale, widget.y_scale))
    if isinstance(widget, QAbstractSpinBox):
        yield "value", widget.text()
    yield "tip", widget.toolTip()
    yield "name", widget.accessibleName()
    yield "description", widget.accessibleDescription()


def untranslated(text: str) -> bool:
    """Whether words stand outside of « »."""
    bare = KEYS.sub("", re.sub(r"<small>.*</small>|<[^>]*>|&\w+;", " ", text))
    while "«" in bare:
        shorter = re.sub(r"«[^«»]*»", " ", bare)
        if shorter == bare:
            return False  # a sentence that was cut short
        bare = shorter
    return bool(re.search(r"[A-Za-z]{3,}", bare)) and not PROPER.search(bare)


def clipped(widget: QWidget) -> bool:
    """Whether a label or a button is smaller than its text."""
    if widget.visibleRegion().isEmpty() or not widget.text().strip():  # type: ignore[attr-defined]
        return False
    if widget.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Ignored:
        return False  # made to be cut, with the whole text beside it
    if widget.minimumWidth() == 1:
        return False  # the same
    if isinstance(widget, QLabel):
        if widget.wordWrap():
            return widget.height() + 1 < widget.heightForWidth(widget.width())
        return widget.width() + 1 < widget.minimumSizeHint().width()
    return widget.width() + 1 < widget.minimumSizeHint().width()


def cut_off(formula: FormulaLabel) -> bool:
    """Whether a formula is lower than its lines."""
    return formula.height() < formula.heightForWidth(formula.width()) and not formula.visibleRegion().isEmpty()


def survey(window: QWidget, moment: str, found: dict[str, dict[str, str]]) -> None:
    QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)  # a text that has just come is still to get its room
    for widget in [window, *window.findChildren(QWidget)]:
        if widget.objectName().startswith(QT):
            continue
        path = f"{type(widget).__name__} in {_panel(widget)}"
        for where, text in texts(widget):
            if text and untranslated(text):
                found["untranslated"].setdefault(text, f"{moment}: {where} of {path}")
        if isinstance(widget, NEVER_TURNED) and widget.layoutDirection() is not Qt.LayoutDirection.LeftToRight:
            found["turned"].setdefault(type(widget).__name__, f"{moment}: {path}")
        if isinstance(widget, (QLabel, QAbstractButton)) and clipped(widget):
            found["clipped"].setdefault(widget.text(), f"{moment}: {path}")
        if isinstance(widget, FormulaLabel) and cut_off(widget):
            found["clipped"].setdefault(widget.plain, f"{moment}: {path}")
    for action in window.findChildren(QAction):
        for text in (action.text(), action.toolTip()):
            if untranslated(text) and not text.startswith(QT):
                found["untranslated"].setdefault(text, f"{moment}: action {action.objectName()}")


def _panel(widget: QWidget) -> str:
    above: QWidget | None = widget
    names: list[str] = []
    while above is not None and len(names) < 4:
        names.append(type(above).__name__)
        above = above.parentWidget()
    return " < ".join(names[1:])


def main(home: str, what: str) -> None:
    application = QApplication(sys.argv[:1])
    language.arrange(application)
    wanted = Preferences(theme="light", speed=None, reduced_motion=True)  # what is looked at stands still
    program = Application(application, find_paths({"GRPO_LAB_HOME": home}), wanted)
    program.window.resize(1920, 1080)
    program.window.show()
    program.startup.welcome()
    found: dict[str, dict[str, str]] = {"untranslated": {}, "clipped": {}, "turned": {}}
    settle()
    (lessons if what == "lessons" else panels)(program, found)
    print(json.dumps(found, ensure_ascii=False, indent=1))
    program.controller.finished.connect(application.quit)
    program.shutdown.close()
    settle(300)


def panels(program: Application, found: dict[str, dict[str, str]]) -> None:
    """Every layout and every panel, before and after six updates."""
    survey(program.window, "start", found)
    for layout in ("Bandit", "Language model", "Compare"):
        program.layouts.choose(layout)
        settle()
        survey(program.window, layout, found)
    program.layouts.choose("Bandit")
    program.player.run_n(6)
    run = program.workspace.run
    assert run is not None
    while run.head < 6 or program.controller.state is not State.PAUSED or program.player.mode is not Mode.RESTING:
        settle()
    program.workspace.move_to(3)
    program.workspace.explain(Quantity("loss"))
    for name, holder in program.window.holders.items():
        there = holder.isVisible()
        holder.show()
        holder.raise_()
        settle(30)
        survey(program.window, name, found)
        holder.setVisible(there)


def lessons(program: Application, found: dict[str, dict[str, str]]) -> None:
    """Every step of every lesson, with its question and with its answer."""
    program.window.resize(1366, 768)
    program.lessons.show()
    settle()
    lesson_player = program.lessons.player
    for lesson in program.lessons.panel.lessons:
        lesson_player.open(lesson)
        for place in range(len(lesson.steps)):
            arrived(program)
            survey(program.window, f"lesson {lesson.number}, step {place + 1}", found)
            if lesson_player.covered:
                lesson_player.skip()
                arrived(program)
                survey(program.window, f"lesson {lesson.number}, step {place + 1}, answered", found)
            if place + 1 < len(lesson.steps):
                lesson_player.next()
        lesson_player.leave()
        settle()


def arrived(program: Application) -> None:
    """Wait until the lesson's run and picture are there, for a minute at most."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        settle(100)
        page = program.lessons.panel.page
        ready = page is None or page.picture.interactive is None or page.picture.interactive.ready
        if ready and not program.lessons.player.busy:
            break
    before: list[tuple[int, int]] = []
    while time.monotonic() < until and (now := _sizes(program)) != before:  # what arrives late is laid out anew
        before = now
        settle(150)


def _sizes(program: Application) -> list[tuple[int, int]]:
    """Of every label that is shown."""
    labels = program.window.findChildren(QLabel)
    return [(label.width(), label.height()) for label in labels if label.isVisible()]


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3])
    sys.stdout.flush()
    Path(sys.argv[2], "done").touch()
