"""The token inspector on a language model's completions: layout, notes, keys, one token's detail, and the film."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QScrollArea

from app.panel_registry import PIPELINE, TOKEN_INSPECTOR
from app.panels.tokens.detail import alternatives
from app.panels.tokens.panel import TokenInspectorPanel
from app.token_grid.grid import flow
from app.token_grid.terms import kl_share, lines, rows_of
from app.token_grid.tints import TINTS
from app.workspace.cursor import Stage
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front, view_of
from tests.core.lm_steps import FORK, lm_run, lm_settings, lm_step

pytestmark = pytest.mark.one_window


@pytest.fixture
def panel(language: Driver, front: Front) -> TokenInspectorPanel:
    language.program.workspace.move_to(3)
    return front(TOKEN_INSPECTOR)


def distance(one: QColor, other: QColor) -> int:
    return abs(one.red() - other.red()) + abs(one.green() - other.green()) + abs(one.blue() - other.blue())


# -- layout ----------------------------------------------------------------------------------------------------------


def test_tokens_follow_each_other_and_wrap_where_the_room_ends() -> None:
    laid = flow(["a"] * 10, left=50, space=100, glyph=10, gap=2)  # 19 wide, 21 apart: four on a line
    assert laid.starts == [0, 4, 8]
    assert [laid.left[i] for i in (0, 3, 4, 8)] == pytest.approx([50, 113, 50, 50])
    assert [laid.line_of(i) for i in (0, 3, 4, 9)] == [0, 0, 1, 2]
    assert list(laid.tokens(2)) == [8, 9]
    assert laid.ends == [3, 7, 9]
    assert laid.nearest(1, 75) == 5


def test_a_token_wider_than_the_room_has_a_line_of_its_own_and_nothing_has_one_line() -> None:
    assert flow(["a", "b" * 40, "c"], left=0, space=100, glyph=10, gap=2).starts == [0, 1, 2]
    empty = flow([], left=0, space=100, glyph=10, gap=2)
    assert (empty.starts, empty.ends, empty.nearest(0, 5)) == ([0], [], None)


def test_two_thousand_tokens_wrap_scroll_and_are_walked(driver: Driver, front: Front, tmp_path: Path) -> None:
    path = tmp_path / "long.grpo"
    lm_run(path, 1, prompts=2, length=2000)
    driver.program.run_manager.open(path)
    driver.program.window.show_layout("Language model")
    panel = front(TOKEN_INSPECTOR)
    grid = panel.grid
    driver.program.workspace.select(row=7, token=1999)
    driver.settle()
    shift = grid.verticalScrollBar().value()
    assert shift > 5 * grid.viewport().height()
    assert shift <= grid.box(7, 1999).top() <= shift + grid.viewport().height()
    grid.setFocus()
    QTest.keyClick(grid, Qt.Key.Key_Right)
    QTest.keyClick(grid, Qt.Key.Key_Up)
    driver.settle()
    assert (driver.program.workspace.selection.row, driver.program.workspace.selection.token) == (6, 1999)
    assert grid.verticalScrollBar().value() < shift


# -- what is told ----------------------------------------------------------------------------------------------------


def test_a_completion_is_marked_right_or_wrong_and_says_in_words_what_became_of_it() -> None:
    view = view_of(lm_step(3))
    rows = rows_of(view, 0, TINTS["fork"], None)
    assert [notes[0][0] for notes in rows.notes] == ["◆ right"] * 3 + ["◇ wrong"] * 5
    assert rows.notes[0][1][0].startswith("▲")
    assert rows.notes[7][1][0].startswith("▼")
    assert "went left to right" in rows.tip(7, None)
    assert "log π" in rows.tip(0, 0)


def test_the_reward_has_a_column_of_its_own_where_it_is_more_than_right_or_wrong() -> None:
    settings = lm_settings(**{"task.working_weight": 0.5})
    rows = rows_of(view_of(lm_step(3, settings=settings)), 0, TINTS["fork"], None)
    assert rows.notes[0][:2] == [("◆ right", "text"), ("R 1.500", "reward")]


def test_the_detail_tells_one_minus_pi_the_share_of_the_kl_and_the_entropy() -> None:
    view = view_of(lm_step(3))
    told = {name: value for name, value, _, _ in lines(view, 0, 0)}
    assert told["1 − π"] == f"{1 - FORK:.3f}"
    share = kl_share(view)
    assert share is not None and share.sum() == pytest.approx(1)
    assert told["Share of the KL"] == f"{100 * share[0, 0]:.1f}%"
    assert "→" in told["Entropy here"]
    assert all(door is not None for *_, door in lines(view, 0, 0))


def test_alternatives_stand_before_and_after_the_update_and_hold_the_sampled_token() -> None:
    view = view_of(lm_step(3))
    found = alternatives(view, view.origin.vocabulary, 0, 0)
    assert len(found) == 5
    assert [each.taken for each in found].count(True) == 1
    assert found[0].before == pytest.approx(FORK, abs=1e-4)
    assert sum(each.after for each in found) <= 1


# -- the panel -------------------------------------------------------------------------------------------------------


def test_the_prompt_stands_large_above_its_completions(language: Driver, panel: TokenInspectorPanel) -> None:
    assert panel.prompt_line.prompt.text() in panel.choices.prompt.currentText()
    assert panel.prompt_line.prompt.text().endswith("=")
    assert panel.prompt_line.tally.text() == "3 of 8 right"
    assert panel.prompt_line.prompt.font().pixelSize() > panel.findChildren(QLabel)[0].font().pixelSize()


def test_keys_walk_tokens_rows_groups_and_steps(language: Driver, panel: TokenInspectorPanel) -> None:
    workspace, grid = language.program.workspace, panel.grid
    grid.setFocus()
    workspace.select(row=0, token=0)
    language.settle()
    walk = [
        (Qt.Key.Key_Right, (0, 1)),
        (Qt.Key.Key_Down, (1, 1)),
        (Qt.Key.Key_PageDown, (9, 1)),
        (Qt.Key.Key_PageDown, (17, 1)),
        (Qt.Key.Key_PageUp, (9, 1)),
        (Qt.Key.Key_Up, (8, 1)),
        (Qt.Key.Key_Up, (8, 1)),
        (Qt.Key.Key_Left, (8, 0)),
        (Qt.Key.Key_Left, (8, 0)),
    ]
    for key, place in walk:
        QTest.keyClick(grid, key)
        language.settle()
        assert (workspace.selection.row, workspace.selection.token) == place
    assert panel.group == 1
    assert panel.choices.prompt.currentIndex() == 1


def test_a_prompt_of_the_update_drawn_before_that_this_one_lacks_is_no_choice(
    language: Driver, panel: TokenInspectorPanel
) -> None:
    before = panel.group, language.program.workspace.selection
    panel.choices.prompt.activated.emit(int(language.shown_step.group.max()) + 1)
    language.settle()
    assert (panel.group, language.program.workspace.selection) == before


def test_a_dead_group_says_so(language: Driver, panel: TokenInspectorPanel) -> None:
    panel.choices.prompt.activated.emit(1)
    language.settle()
    assert panel.remark_label.isVisible()
    assert "All 8 rewards" in panel.remark_label.text()


def test_a_click_selects_the_token_under_it(language: Driver, panel: TokenInspectorPanel) -> None:
    box = panel.grid.box(2, 3)
    QTest.mouseClick(panel.grid.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(*map(round, box.center().toTuple())))
    language.settle()
    selection = language.program.workspace.selection
    assert (selection.row, selection.token) == (2, 3)


def test_a_push_up_is_drawn_in_its_colour_in_every_look(language: Driver, panel: TokenInspectorPanel) -> None:
    for theme, scale in (("light", 1.0), ("dark", 2.0), ("projector", 1.0)):
        language.program.look.set(theme, scale)
        language.settle()
        view, corner = language.program.workspace.view, panel.grid.box(0, 0).topLeft().toPoint()
        fork = panel.grid.viewport().grab().toImage().pixelColor(corner + QPoint(2, 4))
        up, down = view.theme.colour("push_up"), view.theme.colour("push_down")
        assert fork != view.theme.colour("ground")
        assert distance(fork, up) < distance(fork, down)
        assert panel.detail.sizeHint().height() > 200 * scale


def test_five_answers_are_whole_on_a_small_screen_and_every_term_without_a_nested_scroll_bar(
    language: Driver, panel: TokenInspectorPanel
) -> None:
    assert language.program.window.size() == QSize(1366, 768)
    assert panel.grid.box(4, 0).bottom() <= panel.grid.viewport().height()
    assert panel.findChildren(QScrollArea) == []
    detail, wanted = panel.detail, list[object]()
    detail.wanted.connect(wanted.append)
    detail.setFocus()
    for _ in detail.quantities:
        QTest.keyClick(detail, Qt.Key.Key_Up)
    for place, quantity in enumerate(detail.quantities):
        language.settle()
        assert detail.rect().contains(detail.explained_box()), f"row {place} is on the page"
        assert detail.explained_box() != detail.rect()
        detail.explain_current()
        assert wanted[-1] == quantity
        QTest.keyClick(detail, Qt.Key.Key_Down)


def test_the_last_row_of_a_page_turns_it_by_a_click(language: Driver, panel: TokenInspectorPanel) -> None:
    detail = panel.detail
    first = detail.quantities[detail.current]
    below = [QPoint(20, y) for y in range(detail.height() - 2, 0, -4)]
    for point in below:  # up from the lower edge: the first row that a click meets is the one that turns the page
        QTest.mouseClick(detail, Qt.MouseButton.LeftButton, pos=point)
        if detail.quantities[detail.current] != first:
            break
    language.settle()
    assert detail.current > len(alternatives(panel.workspace.view.step, (), 0, 0)), "a row of the second page"
    assert detail.rect().contains(detail.explained_box())


# -- the film --------------------------------------------------------------------------------------------------------


def test_the_formula_has_the_values_of_the_token_that_is_shown_while_nobody_has_chosen(
    driver: Driver, front: Front, tmp_path: Path
) -> None:
    path = tmp_path / "dead.grpo"
    lm_run(path, 3, dead=(0,))
    driver.program.run_manager.open(path)
    driver.program.window.show_layout("Language model")
    inspector, strip = front(TOKEN_INSPECTOR), driver.program.window.panels.of(PIPELINE)
    assert driver.program.workspace.selection.row is None and inspector.group == 1, "the first group has no signal"
    assert strip.which.text() == "values of sample 9, token 1; L sums all"
    assert {button.value for button in strip.strip.buttons if button.term.key == "advantage"} != {"0.000"}
    driver.program.workspace.select_token(2, 1)
    driver.settle()
    assert inspector.group == 0 and strip.which.text() == "values of sample 3, token 2; L sums all"


def test_the_panel_plays_the_film_by_the_cursor_alone_and_tells_each_stage(
    language: Driver, panel: TokenInspectorPanel
) -> None:
    workspace, pictures, sentences = language.program.workspace, [], []
    for stage in (Stage.SAMPLE, Stage.SCORE, Stage.NORMALIZE, Stage.UPDATE):
        for progress in (0.1, 0.9):
            workspace.show_stage(stage, 0 if stage is Stage.UPDATE else -1, progress)
            language.settle()
            pictures.append(panel.grid.grab().toImage())
            sentences.append(panel.sentence.text())
            assert panel.summary(workspace.view) == panel.sentence.text()
    assert all(a != b for a, b in pairwise(pictures))
    assert [s.partition(" ")[0] for s in sentences[::2]] == ["Sample:", "Score:", "Normalize:", "Update"]
    assert sentences[::2] == sentences[1::2]
    workspace.show_stage(Stage.UPDATE)
    language.settle()
    assert panel.grid.grab().toImage() != pictures[-1], "the fork is not lit any more"


def test_nothing_but_the_completions_is_drawn_anew_within_a_stage(
    language: Driver, panel: TokenInspectorPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    language.program.workspace.show_stage(Stage.SAMPLE, -1, 0.1)
    language.settle()
    drawn: list[object] = []
    monkeypatch.setattr(panel, "draw_still", lambda *_: drawn.append(None))
    for progress in (0.2, 0.4, 0.9):
        language.program.workspace.show_stage(Stage.SAMPLE, -1, progress)
        language.settle()
    assert not drawn
    language.program.workspace.show_stage(Stage.SCORE, -1, 0.1)
    language.settle()
    assert drawn
