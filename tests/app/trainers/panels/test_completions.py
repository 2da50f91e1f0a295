"""The panel of completions: searched, filtered, sorted, two side by side, for runs with tokens and with text only."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QBoxLayout

from app.plotting.numbers import MINUS
from app.theme.tokens import LIGHT
from app.trainers.panel_rows import COMPLETIONS
from app.trainers.panels.completions.conversation import CompletionText
from app.trainers.panels.completions.panel import CompletionsPanel
from app.trainers.panels.completions.rows import COLUMNS, Filter
from tests.app.trainers.panels.conftest import Drawn, shown_batch, shown_step
from tests.core.trainers.trace_files import DATA

SOURCES = DATA.parent / "sources"
KEYS = [column.key for column in COLUMNS]


@pytest.fixture
def panel(drawn: Drawn) -> CompletionsPanel:
    return drawn(COMPLETIONS, DATA / "grpo")


def listed(panel: CompletionsPanel) -> list[object]:
    """Return the numbers of the completions on screen, from the top."""
    return [panel.table.table.value(place, 0) for place in range(panel.table.table.rowCount())]


def test_every_completion_has_a_row_with_the_numbers_of_the_record(panel: CompletionsPanel) -> None:
    step = shown_step(panel)
    assert listed(panel) == list(range(1, len(step.rewards) + 1))
    rewards = [panel.table.table.value(place, KEYS.index("reward")) for place in range(len(step.rewards))]
    assert rewards == step.rewards.tolist()


def test_the_push_of_a_completion_is_the_sum_over_its_tokens(panel: CompletionsPanel) -> None:
    gradient = panel.workspace.view.step.gradient
    assert gradient is not None
    pushes = [row[KEYS.index("push")] for row in shown_batch(panel).cells]
    assert pushes == pytest.approx((-gradient.sum(axis=-1)).tolist())


def test_search_finds_text_in_prompts_and_completions(panel: CompletionsPanel) -> None:
    batch = shown_batch(panel)
    wanted = (batch.completions[2] or "").upper()
    panel.search.setText(wanted)
    assert listed(panel) == [3]
    panel.search.setText((batch.prompts[0] or "")[:3])
    assert 1 in listed(panel) and len(listed(panel)) >= 4
    panel.search.setText("")
    assert len(listed(panel)) == len(batch.cells)


def test_limits_keep_what_lies_between_them(panel: CompletionsPanel) -> None:
    batch = shown_batch(panel)
    panel.low.setText("0")
    assert [cells[KEYS.index("reward")] >= 0 for cells in batch.cells].count(True) == len(listed(panel))  # type: ignore[operator]
    panel.low.setText("no number")
    assert len(listed(panel)) == len(batch.cells)


def test_a_filter_leaves_the_chosen_completion_chosen(panel: CompletionsPanel) -> None:
    last = panel.table.table.rowCount() - 1
    reward = panel.table.table.value(last, KEYS.index("reward"))
    panel.workspace.select(row=last)
    panel.draw(panel.workspace.view)
    chosen: list[int] = []
    panel.table.selected.connect(chosen.append)
    panel.low.setText(str(reward).replace("-", MINUS))
    panel.high.setText(panel.low.text())
    assert last + 1 in listed(panel) and len(listed(panel)) <= last
    panel.draw(panel.workspace.view)
    assert panel.workspace.selection.row == last and not chosen
    assert panel.table.table.value(panel.table.currentIndex().row(), 0) == last + 1


def test_the_chosen_completion_is_marked_everywhere_and_read_as_text(panel: CompletionsPanel) -> None:
    batch = shown_batch(panel)
    panel.search.setText(batch.completions[2] or "")
    panel.table.selected.emit(0)
    assert panel.workspace.selection.row == 2
    panel.draw(panel.workspace.view)
    assert panel.here.text.toPlainText().endswith(batch.completions[2] or "?")


def test_a_completion_stays_beside_another_one_of_another_step(panel: CompletionsPanel) -> None:
    panel.workspace.select(row=1)
    panel.draw(panel.workspace.view)
    first = panel.here.text.toPlainText()
    panel.keep.setChecked(True)
    panel.workspace.move_to(1)
    panel.workspace.select(row=0)
    panel.draw(panel.workspace.view)
    assert panel.beside.text.toPlainText() == first != panel.here.text.toPlainText()
    panel.keep.setChecked(False)
    assert panel.beside.isHidden()


@pytest.mark.parametrize("path", ["trl", "verl", "verl_former"])
def test_texts_alone_are_listed_and_filtered_too(drawn: Drawn, path: str) -> None:
    panel = drawn(COMPLETIONS, SOURCES / path)
    batch = shown_batch(panel)
    assert panel.workspace.view.step.step is None
    assert len(batch.listed(Filter())) == len(batch.completions)
    assert batch.listed(Filter(column="kl", low=0.0)) == []  # no such number: falls out where it is limited
    assert batch.listed(Filter(text="no completion says this")) == []


def test_a_text_is_shown_letter_by_letter(panel: CompletionsPanel) -> None:
    hostile = "<img src=x><b>bold</b>"
    panel.here.show_text(LIGHT, 1.0, hostile, hostile, hostile)
    assert panel.here.text.toPlainText().count(hostile) == 2


@pytest.mark.parametrize("width", [420, 640, 900])
def test_a_narrow_table_keeps_what_is_filtered_by_and_scrolls_nothing_sideways(
    panel: CompletionsPanel, width: int
) -> None:
    panel.by.setCurrentIndex(panel.by.findData("push"))
    panel.resize(width, 400)
    panel.grab()
    panel.draw(panel.workspace.view)
    shown = [n for n in range(len(KEYS)) if not panel.table.isColumnHidden(n)]
    assert {KEYS.index("row"), KEYS.index("push")} <= set(shown)
    assert sum(panel.table.columnWidth(n) for n in shown) <= max(panel.table.width(), 2 * panel.table.full_width(6))


def test_of_a_long_prompt_the_completion_is_what_is_in_sight(qapp: QApplication) -> None:
    text = CompletionText("Completion chosen")
    text.resize(300, 160)
    text.show()
    text.show_text(LIGHT, 1.0, "heading", "a word of the prompt\n" * 80, "an answer\n" * 80)
    assert text.text.textCursor().block().text() == "Completion"
    assert text.text.cursorForPosition(QPoint(10, 10)).block().text() == "Completion"
    text.deleteLater()


def test_the_filters_stand_on_one_line_as_soon_as_there_is_room(panel: CompletionsPanel) -> None:
    panel.show()
    for width, together in ((420, False), (1400, True), (420, False)):
        panel.resize(width, 400)
        for row in panel.findChildren(QBoxLayout):
            row.activate()
        apart = abs(panel.search.geometry().center().y() - panel.keep.geometry().center().y())
        assert (apart < 4) is together, width


def test_a_search_shows_its_first_match_and_marks_all_of_them(panel: CompletionsPanel) -> None:
    batch = shown_batch(panel)
    texts = [text or "" for text in batch.completions]
    last = next(row for row in reversed(range(len(texts))) if len(texts[row]) > 2)
    wanted = texts[last][1:3].upper()
    panel.workspace.select(row=next(row for row in range(len(texts)) if wanted.lower() not in texts[row].lower()))
    panel.search.setText(wanted)
    panel.draw(panel.workspace.view)
    shown = panel.here.text.toPlainText()
    assert wanted.lower() in shown.lower(), "the first that has it, not the one that was chosen before"
    marks = panel.here.text.extraSelections()
    assert len(marks) == shown.lower().count(wanted.lower()) > 0
    assert all(mark.cursor.selectedText().lower() == wanted.lower() for mark in marks)
    assert panel.here.text.textCursor().position() in [mark.cursor.selectionStart() for mark in marks]
    panel.search.setText("")
    panel.draw(panel.workspace.view)
    assert panel.here.text.extraSelections() == []


def test_marks_stand_where_the_match_is_also_behind_characters_of_two_units(qapp: QApplication) -> None:
    shown = CompletionText("text")
    shown.show_text(LIGHT, 1.0, "", "🙂 İ", "🙂🙂 Needle, İ needle", "NEEDLE")
    marks = shown.text.extraSelections()
    assert [mark.cursor.selectedText() for mark in marks] == ["Needle", "needle"]
