"""Definitions appear on hover and on focus, and can be searched and followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit, QSplitter, QTextBrowser, QToolTip, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.clock import ManualClock
from app.help.glossary import glossary, lookup
from app.help.hover import DELAY_MS, FocusTip, explain_on_hover
from app.panels.help import GlossaryPanel, Reference, ReferencesPanel, references
from app.theme.tokens import LIGHT
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core import learners
from grpo_core.config import Settings


@pytest.fixture
def pair(qtbot: QtBot) -> Iterator[tuple[QLineEdit, QLineEdit]]:
    """Two fields in an active window. The second one is explained."""
    holder = QWidget()
    column = QVBoxLayout(holder)
    first, second = QLineEdit(), QLineEdit()
    column.addWidget(first)
    column.addWidget(second)
    qtbot.addWidget(holder)
    explain_on_hover(second, "clip range", "Allowed: 0 to 1.")
    holder.show()
    holder.activateWindow()
    qtbot.waitUntil(holder.isActiveWindow)
    first.setFocus()
    yield first, second
    holder.close()


def tip(widget: QWidget) -> FocusTip:
    found = widget.findChild(FocusTip)
    assert isinstance(found, FocusTip)
    return found


def test_tooltip_whats_this_and_accessible_description_are_set(pair: tuple[QLineEdit, QLineEdit]) -> None:
    _, explained = pair
    entry = lookup("clip range")
    assert entry is not None
    assert entry.sentence in explained.toolTip()
    assert explained.whatsThis() == explained.toolTip()
    assert explained.accessibleDescription() == f"{entry.sentence} Allowed: 0 to 1."


def test_the_definition_shows_after_the_keyboard_focus_has_rested(
    qtbot: QtBot, clock: ManualClock, pair: tuple[QLineEdit, QLineEdit]
) -> None:
    first, explained = pair
    QTest.keyClick(first, Qt.Key.Key_Tab)
    assert explained.hasFocus()
    clock.advance(DELAY_MS - 1)
    assert not QToolTip.isVisible()
    clock.advance(1)
    qtbot.waitUntil(QToolTip.isVisible)
    assert "Clip range" in QToolTip.text()
    QTest.keyClick(explained, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: not QToolTip.isVisible())


def test_typing_or_leaving_keeps_the_definition_away(pair: tuple[QLineEdit, QLineEdit]) -> None:
    first, explained = pair
    QTest.keyClick(first, Qt.Key.Key_Tab)
    assert tip(explained).waiting
    QTest.keyClick(explained, Qt.Key.Key_1)
    assert not tip(explained).waiting
    QTest.keyClick(explained, Qt.Key.Key_Tab)
    QTest.keyClick(first, Qt.Key.Key_Tab)
    assert tip(explained).waiting
    first.setFocus()
    assert not tip(explained).waiting


def test_the_mouse_does_not_start_it(pair: tuple[QLineEdit, QLineEdit]) -> None:
    _, explained = pair
    QTest.mouseClick(explained, Qt.MouseButton.LeftButton)
    assert explained.hasFocus()
    assert not tip(explained).waiting


def test_explaining_again_replaces_the_term_and_adds_nothing(pair: tuple[QLineEdit, QLineEdit]) -> None:
    _, explained = pair
    explain_on_hover(explained, "entropy")
    assert "Entropy" in explained.toolTip()
    assert len(explained.findChildren(FocusTip)) == 1


@pytest.fixture
def workspace(qapp: object, tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace(Settings(), LIGHT)
    made.activate(RunHandle(title="Run", origin=learners.origin(Settings()), path=tmp_path / "run.grpo"))
    yield made
    made.close()


@pytest.fixture
def panel(qtbot: QtBot, workspace: Workspace) -> GlossaryPanel:
    made = GlossaryPanel(workspace)
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    return made


def test_the_panel_lists_every_term_and_shows_the_first(panel: GlossaryPanel) -> None:
    assert len(panel.shown()) == len(glossary())
    assert panel.term == panel.shown()[0]


def test_searching_narrows_the_list_and_an_empty_result_is_said(panel: GlossaryPanel) -> None:
    QTest.keyClicks(panel.line, "leave")
    assert panel.shown()[0] == panel.term == "leave_one_out"
    assert panel.empty.isHidden()
    panel.line.setText("zebra")
    assert panel.shown() == ()
    assert panel.term == ""
    assert panel.empty.isVisible()


def test_a_term_can_be_shown_from_elsewhere_even_while_a_search_hides_it(panel: GlossaryPanel) -> None:
    panel.line.setText("entropy")
    assert panel.show_term("Dual clip")
    assert panel.term == "dual_clip"
    assert not panel.show_term("no such term")
    assert panel.term == "dual_clip"


def test_related_terms_can_be_followed(panel: GlossaryPanel) -> None:
    for entry in glossary():
        assert panel.show_term(entry.id)
        for other in entry.see:
            panel.see.linkActivated.emit(f"term:{other}")
            assert panel.term == other
            panel.show_term(entry.id)


def test_sentences_are_shown_as_they_are_written(panel: GlossaryPanel) -> None:
    for entry in glossary():
        panel.show_term(entry.id)
        labels = [label for label in panel.findChildren(QLabel) if label.text() == entry.sentence]
        assert [label.textFormat() for label in labels] == [Qt.TextFormat.PlainText]


def test_the_formula_follows_the_look_and_hides_where_there_is_none(panel: GlossaryPanel, workspace: Workspace) -> None:
    panel.show_term("k3")
    workspace.set_look(LIGHT, 1.5)
    panel.redraw()
    assert panel.formula.isVisible()
    assert panel.formula.factor == 1.5
    panel.show_term("prompt")
    assert panel.formula.isHidden()


class Browser(QObject):
    """A substitute for the system's browser."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        self.opened.append(url.toString())


def test_references_are_readable_offline_and_open_on_a_click(qtbot: QtBot, workspace: Workspace) -> None:
    panel, browser = ReferencesPanel(workspace), Browser()
    qtbot.addWidget(panel)
    text = panel.browser.toPlainText()
    for paper in references():
        assert paper.title in text
        assert paper.gist in text
    QDesktopServices.setUrlHandler("https", browser, "open")  # type: ignore[arg-type]
    try:
        panel.browser.anchorClicked.emit(QUrl("https://arxiv.org/abs/2402.03300"))
    finally:
        QDesktopServices.unsetUrlHandler("https")
    assert browser.opened == ["https://arxiv.org/abs/2402.03300"]


def test_without_a_browser_the_address_is_told(qtbot: QtBot, workspace: Workspace) -> None:
    panel = ReferencesPanel(workspace)
    qtbot.addWidget(panel)
    with qtbot.waitSignal(workspace.problem) as told:
        panel.open_page(QUrl("relative-nothing:"))
    assert "No browser could be opened" in told.args[0]


def test_a_reference_is_shown_as_it_is_written() -> None:
    paper = Reference(
        id="x", short="X", title="T", authors="A", year=2000, where="W", url="nowhere://x", gist="Says <this> & that."
    )
    browser = QTextBrowser()
    browser.setHtml(paper.block)
    assert "Says <this> & that." in browser.toPlainText()


@pytest.mark.parametrize(("width", "beside"), [(340, False), (700, True)])
def test_a_definition_has_room_in_a_narrow_panel_too(panel: GlossaryPanel, width: int, beside: bool) -> None:
    panel.resize(width + 16, 342)
    panel.show_term("clip range")
    split = panel.findChild(QSplitter)
    assert split is not None
    first, second = (split.widget(n) for n in (0, 1))
    assert first is not None
    assert second is not None
    upper, lower = first.geometry(), second.geometry()
    assert (upper.right() < lower.left()) is beside
    assert lower.width() > 300
    assert lower.height() > 150
