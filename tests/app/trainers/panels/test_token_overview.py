"""Token overview: the raster, the brushed selection, and the selected token."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QRect, Qt
from pytestqt.qtbot import QtBot

from app.token_grid.tints import OVERVIEW
from app.trainers.panel_rows import TOKEN_OVERVIEW
from app.trainers.panels.token_overview.panel import TITLES, TokenOverviewPanel
from app.trainers.panels.token_overview.strips import aligned, binned, edges, offsets, picture
from tests.app.trainers.panels.conftest import Drawn, shown_step
from tests.core.trainers.trace_files import DATA

DISEASED = DATA.parent / "diseased"


@given(
    rows=st.integers(1, 12),
    columns=st.integers(1, 40),
    high=st.integers(1, 20),
    wide=st.integers(1, 60),
    seed=st.integers(0, 99),
)
def test_the_largest_value_of_a_pixel_wins(rows: int, columns: int, high: int, wide: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = np.where(chance.random((rows, columns)) < 0.3, np.nan, chance.normal(size=(rows, columns)))
    found = binned(values, high, wide)
    assert found.shape == (high, wide)
    down, across = edges(rows, high), edges(columns, wide)
    for y, x in itertools.product(range(high), range(wide)):
        part = values[down[y] : max(down[y + 1], down[y] + 1), across[x] : max(across[x + 1], across[x] + 1)]
        known = part[~np.isnan(part)]
        if len(known):
            assert abs(found[y, x]) == np.abs(known).max() and found[y, x] in known
        else:
            assert np.isnan(found[y, x])


@pytest.mark.parametrize("alignment", TITLES)
def test_completions_are_aligned_and_keep_their_tokens(alignment: str) -> None:
    there = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    mask = there & ~np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]], bool)
    values = np.arange(12.0).reshape(3, 4)
    before = offsets(there, mask, alignment)
    found = aligned(values, there, before)
    expected = {"start": [0, 0, 0], "end": [1, 3, 0], "turn": [2, 2, 0]}[alignment]
    assert before.tolist() == expected
    for row, first in enumerate(expected):
        assert found[row][~np.isnan(found[row])].tolist() == values[row][there[row]].tolist()
        assert np.isnan(found[row][:first]).all()


def test_colours_follow_sign_and_size() -> None:
    up, down = np.arange(5, dtype=np.uint32), np.arange(10, 15, dtype=np.uint32)
    shares = np.array([[np.nan, 0.0, 1.0, 9.0, -1.0, -0.25]])
    assert picture(shares, up, down, 99).tolist() == [[99, 0, 4, 4, 14, 12]]


@pytest.fixture
def panel(drawn: Drawn) -> TokenOverviewPanel:
    made = drawn(TOKEN_OVERVIEW, DISEASED / "ever_longer", width=800, height=500)
    made.show()
    made.draw(made.workspace.view)
    return made


def test_a_click_selects_the_token_under_it(panel: TokenOverviewPanel, qtbot: QtBot) -> None:
    step = shown_step(panel)
    strips = panel.strips
    for row, token in ((0, 0), (2, 11), (15, 3)):
        assert step.there[row, token]
        box = strips.box(int(np.flatnonzero(np.argsort(step.group, kind="stable") == row)[0]), token)
        qtbot.mouseClick(strips, Qt.MouseButton.LeftButton, pos=box.center().toPoint())
        assert (panel.workspace.selection.row, panel.workspace.selection.token) == (row, token)
    asked = list[str]()
    panel.panel_wanted.connect(asked.append)
    qtbot.keyClick(strips, Qt.Key.Key_Return)
    assert asked == ["token_inspector"]


def drag(strips: object, qtbot: QtBot, begin: QPoint, end: QPoint) -> None:
    qtbot.mousePress(strips, Qt.MouseButton.LeftButton, pos=begin)
    qtbot.mouseMove(strips, pos=(begin + end) / 2)
    qtbot.mouseMove(strips, pos=end)
    qtbot.mouseRelease(strips, Qt.MouseButton.LeftButton, pos=end)


def test_what_is_brushed_is_enlarged_and_its_text_stands_below(panel: TokenOverviewPanel, qtbot: QtBot) -> None:
    strips, view = panel.strips, panel.workspace.view
    step = view.step.step
    assert step is not None and panel.text.toPlainText().startswith("#1  ") and not panel.whole.isEnabled()
    begin, end = strips.box(1, 2).center().toPoint(), strips.box(3, 6).center().toPoint()
    drag(strips, qtbot, begin, end)
    assert strips.window_shown == QRect(QPoint(2, 1), QPoint(6, 3))
    words = view.run.origin.vocabulary
    lines = panel.text.toPlainText().splitlines()
    assert len(lines) == 3 and panel.whole.isEnabled()
    for line, row in zip(lines, (1, 2, 3), strict=True):
        assert line == f"#{row + 1}  " + "".join(words[t] for t in step.tokens[row][step.there[row]][2:7].tolist())
    panel.whole.click()
    assert not strips.enlarged


@pytest.mark.parametrize("name", OVERVIEW)
def test_every_tint_is_drawn_or_says_that_it_is_not_recorded(panel: TokenOverviewPanel, name: str) -> None:
    panel.tint.setCurrentIndex(panel.tint.findData(name))
    for alignment in TITLES:
        panel.alignment.setCurrentIndex(panel.alignment.findData(alignment))
        panel.draw(panel.workspace.view)
        picture = panel.strips.grab().toImage()
        assert not picture.isNull()
    known = OVERVIEW[name].values(panel.workspace.view.step) is not None
    assert (OVERVIEW[name].absent in panel.legend.accessibleName()) != known or known


def test_keys_walk_and_enlarge(panel: TokenOverviewPanel, qtbot: QtBot) -> None:
    workspace, strips = panel.workspace, panel.strips
    workspace.select_token(2, 5)
    panel.draw(workspace.view)
    for key, place in ((Qt.Key.Key_Right, (2, 6)), (Qt.Key.Key_Down, (3, 6)), (Qt.Key.Key_Up, (2, 6))):
        qtbot.keyClick(strips, key)
        panel.draw(workspace.view)
        assert (workspace.selection.row, workspace.selection.token) == place
    qtbot.keyClick(strips, Qt.Key.Key_Plus)
    assert strips.enlarged and strips.window_shown.left() <= 6 <= strips.window_shown.right()
    qtbot.keyClick(strips, Qt.Key.Key_Escape)
    assert not strips.enlarged


def test_another_step_of_another_length_is_shown_whole(panel: TokenOverviewPanel, qtbot: QtBot) -> None:
    drag(panel.strips, qtbot, QPoint(50, 20), QPoint(90, 60))
    panel.workspace.move_to(1)
    panel.draw(panel.workspace.view)
    step = shown_step(panel)
    width = int(step.there.sum(axis=1).max())
    assert QRect(0, 0, width, len(step.group)).contains(panel.strips.window_shown)
