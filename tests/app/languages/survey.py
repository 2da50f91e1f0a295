"""Open the complete window in a made-up or a shipped language and report, as JSON, untranslated text and text that does
not fit.

python -m tests.app.languages.survey pseudo|pseudo-rtl|pseudo-zh|zh_CN HOME panels|lessons
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
from tools import pseudo

MADE_UP = sys.argv[1].startswith("pseudo")
if MADE_UP:  # before importing the panels, whose constants are strings
    pseudo.choose(sys.argv[1])
else:
    assert language.choose(["--language", sys.argv[1]]) == ""

from PySide6.QtCore import QAbstractListModel, QEvent, QEventLoop, QModelIndex, Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialogButtonBox,
    QDockWidget,
    QGroupBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QSizePolicy,
    QTabBar,
    QTableView,
    QTextBrowser,
    QWidget,
)

from app.application import Application
from app.examples import example
from app.formula.formula_label import FormulaLabel
from app.formula.term_strip import TermStrip
from app.panels.controls.recorded import RecordedSettings
from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.token_grid.grid import TokenGrid
from app.training.controller import State
from app.workspace.player import Mode
from grpo_core.config import PRESETS
from grpo_core.explain import Quantity
from grpo_core.text import tr
from tests.app.painted import painted_words
from tools.terms import terms

PROPER = re.compile(
    "|".join(map(re.escape, PRESETS))
    + r"|English|GRPO|REINFORCE|PPO|TRL|verl|arXiv|https?:|grpo|GAE|SGD|SNR|Adam|TRPO|max π|π_ref|^min$|dead_p"
    r"|nats|PFLOP|[GM]iB|CPU|CUDA|MPS|float|min\(|clip\(|DeepSeekMath|exp|[∂∇]|Williams|^\w+_\w+$"
)
"""Names of languages, algorithms, programs, settings and units, and formulas, which are the same in every language."""
KEPT = re.compile(
    "|".join(re.escape(form) for term in terms(sys.argv[1]) for form in term.forms if form.isascii()) or "(?!)",
    re.IGNORECASE,
)
"""Terms that stay English in a shipped language."""
QT = ("qt_", "ScrollLeftButton", "ScrollRightButton", "Export", "Export...")
"""Parts of Qt, which Qt's own catalogues translate, and of pyqtgraph, which are never visible."""
NEVER_TURNED = (Plot, TermStrip, FormulaLabel, TokenGrid)
"""Widgets with mathematics and tokens, which run from left to right in every language."""
RECORDED = Path(__file__).parents[2] / "data" / "diseased" / "kl_explodes"
DIALOGS = ("shortcut_sheet", "palette", "export_picture", "export_film", "export_sequence")
"""Commands that open a separate window."""
FOREIGN = re.compile(
    r"GRPO Lab|DeepSeekMath|defaults|baseline|running mean|DAPO|GSPO|RLOO|Williams|arXiv|https?:|[a-z]+_[a-z]|/"
    r"|algorithm \d|nats|Space|Home|Down|Left|Right|PgUp|PgDown|Ctrl|Shift|Alt|float"
)
"""Names of algorithms, papers, keys, units, files and settings of other programs."""
ENGLISH = re.compile(r"(?<![^\W\d_])(?=[a-zA-Z]*[aeo])[a-zA-Z]{3,}(?![^\W\d_]|…)")
"""A word without doubled vowels, which was never translated, although the text around it may have been."""
KEYS = re.compile(r" \([^()]*\)(?=\. «|$)")
"""The keys of a command in its tooltip."""


def settle(milliseconds: int = 60) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def texts(widget: QWidget) -> Iterator[tuple[str, str]]:
    """Yield (where, text) for everything in a widget that a person reads or hears."""
    if isinstance(widget, (QLabel, QAbstractButton)) and not isinstance(widget.parentWidget(), QDialogButtonBox):
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
        yield from (("axis", scale.label) for scale in (widget.frame.x, widget.frame.y))
    if isinstance(widget, QAbstractItemView) and not isinstance(widget, QHeaderView) and read_whole(widget):
        yield from (("cell", text) for text in cells(widget))
    if isinstance(widget, QMenu):
        yield "menu", widget.title()
    if isinstance(widget, QDockWidget):
        yield "dock", widget.windowTitle()
    if isinstance(widget, QAbstractSpinBox):
        yield "value", widget.text()
    yield "tip", widget.toolTip()
    yield "name", widget.accessibleName()
    yield "description", widget.accessibleDescription()


def cells(view: QAbstractItemView) -> Iterator[str]:
    """Yield the text of the cells in the first rows of a table, list or tree, except names, keys and completions."""
    model, top = view.model(), QModelIndex()
    if model is None:
        return
    columns = 1 if isinstance(model, QAbstractListModel) else model.columnCount(top)
    heads = [model.headerData(column, Qt.Orientation.Horizontal) for column in range(columns)]
    for row in range(min(model.rowCount(top), 40)):
        for column in range(columns):
            if heads[column] == tr("Completion"):
                continue
            for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
                text = model.data(model.index(row, column, top), role)
                if isinstance(text, str) and not FOREIGN.search(text):
                    yield text


def read_whole(view: QAbstractItemView) -> bool:
    """Return whether to read all cells of a table. False in lessons, whose tables contain prompts, and for trainers'
    settings.
    """
    return sys.argv[3] == "panels" and not isinstance(view.parentWidget(), RecordedSettings)


def painted(widget: QWidget) -> Iterator[str]:
    """Yield the text that a widget without children paints, except papers, cells (which are read), and Qt's buttons."""
    if widget.visibleRegion().isEmpty() or widget.findChildren(QWidget) or isinstance(widget, NEVER_TURNED):
        return
    if not isinstance(widget.parentWidget(), (QTextBrowser, QAbstractItemView, QDialogButtonBox)):
        yield from (word.text for word in painted_words(widget))


def untranslated(text: str) -> bool:
    """Return whether there are words outside « », or in a shipped language, a text of English words alone."""
    bare = KEYS.sub("", re.sub(r"<small>.*</small>|<[^>]*>|&\w+;", " ", text))
    if not MADE_UP and re.search(r"[\u4e00-\u9fff]", bare):
        return False
    bare = KEPT.sub(" ", bare)
    while "«" in bare:
        shorter = re.sub(r"«[^«»]*»", " ", bare)
        if shorter == bare:
            return False  # a sentence that was cut short
        bare = shorter
    return bool(re.search(r"[A-Za-z]{3,}", bare)) and not PROPER.search(bare)


def clipped(widget: QWidget) -> bool:
    """Return whether a label or button is smaller than its text."""
    if widget.visibleRegion().isEmpty() or not widget.text().strip():  # type: ignore[attr-defined]
        return False
    if widget.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Ignored:
        return False  # meant to be cut, with the full text next to it
    if widget.minimumWidth() == 1:
        return False  # the same
    if isinstance(widget, QLabel):
        if widget.wordWrap():
            return widget.height() + 1 < widget.heightForWidth(widget.width())
        return widget.width() + 1 < widget.minimumSizeHint().width()
    return widget.width() + 1 < widget.minimumSizeHint().width()


def cut_off(formula: FormulaLabel) -> bool:
    """Return whether a formula is lower than its lines."""
    return formula.height() < formula.heightForWidth(formula.width()) and not formula.visibleRegion().isEmpty()


def survey(window: QWidget, moment: str, found: dict[str, dict[str, str]]) -> None:
    QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)  # a text that has just come is still to get its room
    for widget in [window, *window.findChildren(QWidget)]:
        if widget.objectName().startswith(QT):
            continue
        path = f"{type(widget).__name__} in {_panel(widget)}"
        for where, text in texts(widget):
            formula = isinstance(widget, FormulaLabel) and not MADE_UP  # read out with English names of its marks
            if text and untranslated(text) and not formula:
                found["untranslated"].setdefault(text, f"{moment}: {where} of {path}")
        for text in painted(widget) if sys.argv[1] == "pseudo" and sys.argv[3] == "panels" else ():
            if ENGLISH.search(text) and not FOREIGN.search(text):
                found["untranslated"].setdefault(text, f"{moment}: painted by {path}")
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
    pseudo.arrange(application, sys.argv[1]) if MADE_UP else language.arrange(application)
    wanted = Preferences(theme="light", speed=None, reduced_motion=True)  # the window must not move
    program = Application(application, find_paths({"GRPO_LAB_HOME": home}), wanted)
    program.window.resize(1920, 1080)
    program.window.show()
    found: dict[str, dict[str, str]] = {"untranslated": {}, "clipped": {}, "turned": {}}
    program.doors.show_home()
    settle()
    survey(program.window, "first screen", found)
    program.window.leave_alone()
    settle()
    (lessons if what == "lessons" else panels)(program, found)
    print(json.dumps(found, ensure_ascii=False, indent=1))
    program.controller.finished.connect(application.quit)
    program.shutdown.close()
    settle(300)


def panels(program: Application, found: dict[str, dict[str, str]]) -> None:
    """Survey every layout, every panel with a run of each kind, and the dialogs."""
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
    survey(program.window, "bandit", found)
    each_panel(program, "bandit", found)
    program.run_manager.open(example())
    program.workspace.move_to(5)
    settle()
    survey(program.window, "language model", found)
    each_panel(program, "language model", found)
    program.runs.open_path(RECORDED)
    settle()
    while (
        program.part("trainers").recorded_runs.busy
        or program.part("trainers").examination.of(program.workspace.view.run.id) is None
    ):
        settle()
    survey(program.window, "recorded", found)
    each_panel(program, "recorded", found)
    for name in DIALOGS:
        dialog = opened(program, name)
        survey(dialog, name, found)
        dialog.close()


def each_panel(program: Application, kind: str, found: dict[str, dict[str, str]]) -> None:
    for name, holder in program.window.holders.items():
        there = holder.isVisible()
        holder.show()
        holder.raise_()
        settle(30)
        survey(holder, f"{kind}, {name}", found)
        holder.setVisible(there)


def opened(program: Application, command: str) -> QWidget:
    """Return the window that a command opens."""
    before = [window for window in QApplication.topLevelWidgets() if window.isVisible()]
    QTimer.singleShot(0, program.actions.by_id[command].trigger)
    settle()
    return next(w for w in QApplication.topLevelWidgets() if w.isVisible() and w not in before)


def lessons(program: Application, found: dict[str, dict[str, str]]) -> None:
    """Survey every step of every lesson, with its question and with its answer."""
    program.window.resize(1366, 768)
    program.part("teaching").lessons.show()
    settle()
    lesson_player = program.part("teaching").lessons.player
    for lesson in program.part("teaching").lessons.panel.lessons:
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
    """Wait up to a minute until the lesson's run and picture are ready."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        settle(100)
        page = program.part("teaching").lessons.panel.page
        ready = page is None or page.interactive is None or page.interactive.ready
        if ready and not program.part("teaching").lessons.player.busy:
            break
    before: list[tuple[int, int]] = []
    while time.monotonic() < until and (now := _sizes(program)) != before:  # late results cause a new layout
        before = now
        settle(150)


def _sizes(program: Application) -> list[tuple[int, int]]:
    """Return the size of every visible label."""
    labels = program.window.findChildren(QLabel)
    return [(label.width(), label.height()) for label in labels if label.isVisible()]


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3])
    sys.stdout.flush()
    Path(sys.argv[2], "done").touch()
