"""Step detail: no column scrolls horizontally, sums are shown below their columns, and signs are correct."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtTest import QTest

from app.panel_registry import STEP_DETAIL
from app.panels.step_columns import LOOKS, values_shown
from app.panels.step_detail import StepDetailPanel
from app.plotting.numbers import shown
from app.workspace.cursor import Stage
from grpo_core import step_table
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain import Quantity, explain_from
from tests.app.conftest import Driver
from tests.app.layout_requests import LayoutRequests
from tests.app.panels.conftest import Front

pytestmark = pytest.mark.one_window


@pytest.fixture
def panel(driver: Driver) -> StepDetailPanel:
    return driver.program.window.panels.of(STEP_DETAIL)


def visible(panel: StepDetailPanel) -> list[str]:
    table = panel.table
    return [column.key for n, column in enumerate(table.table.columns) if not table.isColumnHidden(n)]


@pytest.mark.quick_cases("1280", "1920")
@pytest.mark.parametrize("width", [1280, 1366, 1920])
def test_at_the_side_nothing_is_scrolled_or_cut(driver: Driver, panel: StepDetailPanel, width: int) -> None:
    driver.program.window.resize(width, 768)
    driver.run(13)
    driver.program.window.show_layout("Bandit")
    driver.settle()
    driver.qtbot.waitUntil(lambda: panel.table.horizontalScrollBar().maximum() == 0)
    seen = visible(panel)
    assert {"sample", "action", "advantage", "gradient", "reward", "ratio", "clipped"} <= set(seen)
    for n, column in enumerate(panel.table.table.columns):
        if column.key in seen and column.kind in ("push", "number"):
            texts = [panel.table.table.text(row, n) for row in range(panel.table.table.rowCount())]
            room = panel.table.columnWidth(n) - 16 * panel.table.factor
            assert max(map(panel.table.cells.metrics.horizontalAdvance, texts)) <= room + 1, column.key


def test_columns_come_with_the_room_in_the_stated_order(language: Driver, front: Front) -> None:
    panel = front(STEP_DETAIL)
    shown: set[str] = set()
    for width in (300, 500, 700, 900, 1300, 2000):
        panel.resize(width, 300)
        now = set(visible(panel))
        assert shown <= now
        order = sorted((column.key for column in panel.table.table.columns), key=lambda key: LOOKS[key].rank)
        assert now == set(order[: len(now)])
        assert bool(panel.wider.text()) == (len(now) < len(order))
        shown = now
    panel.resize(300, 300)
    assert "KL" in panel.wider.toolTip() and "Weight" in panel.wider.toolTip()
    assert "Weight" in panel.table.table.tsv(range(2)), "a copy holds every column"


def test_an_advantage_that_rounding_has_left_of_a_zero_has_no_sign(driver: Driver, panel: StepDetailPanel) -> None:
    """Update 9 of seed 7 samples an action whose reward is the group's mean."""
    driver.run(9)
    table = panel.table.table
    column = next(n for n, one in enumerate(table.columns) if one.key == "advantage")
    cells = [(table.value(place, column), table.text(place, column)) for place in range(table.rowCount())]
    left = [text for value, text in cells if isinstance(value, float) and 0 < abs(value) < 1e-9]
    assert left and set(left) == {"≈ 0"}
    place = next(place for place, (_, text) in enumerate(cells) if text == "≈ 0")
    colour = table.data(table.index(place, column), Qt.ItemDataRole.ForegroundRole)
    assert colour == table.theme.ink("muted")


def test_the_sums_stand_below_their_columns(driver: Driver, panel: StepDetailPanel) -> None:
    driver.run(8)
    step = driver.shown_step
    assert panel.sums.texts["advantage"] == "0.000", "group means leave nothing but rounding"
    assert panel.sums.texts["reward"] == f"{step.rewards.sum():.3f}"
    assert panel.sums.texts["weight"] == "1.000"
    places = panel.sums.places()
    assert set(places) == set(visible(panel))
    for n, column in enumerate(panel.table.table.columns):
        if column.key in places:
            origin = panel.table.viewport().x()
            assert places[column.key].left() == origin + panel.table.columnViewportPosition(n)
    driver.program.workspace.show_stage(Stage.SCORE)
    driver.settle()
    assert set(panel.sums.texts) == {"reward"}


def test_a_sum_is_explained_by_a_double_click_and_by_the_keyboard(driver: Driver, panel: StepDetailPanel) -> None:
    driver.run(2)
    workspace = driver.program.workspace
    driver.settle()
    for key, place in panel.sums.places().items():
        text = panel.sums.texts.get(key)
        if text is None:
            continue
        QTest.mouseDClick(panel.sums, Qt.MouseButton.LeftButton, pos=place.center().toPoint())
        driver.settle()
        numbers = workspace.view.step.numbers
        assert workspace.quantity == Quantity(f"{key}_sum", passed=workspace.view.step.passed)
        assert numbers is not None
        node = explain_from(numbers, workspace.quantity)
        assert node.agrees and len(node.inputs) == 8
        assert shown(-node.engine if key == "gradient" else node.engine) == text
    panel.sums.setFocus()
    for _ in range(5):
        QTest.keyClick(panel.sums, Qt.Key.Key_Left)
    QTest.keyClick(panel.sums, Qt.Key.Key_Right)
    driver.program.actions["explain"].trigger()
    assert workspace.quantity == Quantity("advantage_sum", passed=workspace.view.step.passed)
    panel.sums.setFocus()
    QTest.keyClick(panel.sums, Qt.Key.Key_Left)
    driver.program.actions["explain"].trigger()
    assert workspace.quantity == Quantity("reward_sum", passed=workspace.view.step.passed)


@pytest.mark.quick_cases("settings0-1366", "settings2-1920", "settings5-1366", "settings8-1920")
@pytest.mark.parametrize("width", [1366, 1920])
@pytest.mark.parametrize(
    "settings",
    [
        *({"learner.group_size": size} for size in (4, 8, 16, 32, 64)),
        {"learner.group_size": 32, "task.landscape": "chain"},
        {"learner.group_size": 32, "task.landscape": "length"},
        {"learner.group_size": 64, "task.landscape": "linear", "task.levels": (5.0, 2.0, 0.0)},
        {"learner.group_size": 32, "task.landscape": "custom", "task.custom": (999.5,) * 9 + (-999.5,)},
    ],
)
def test_every_sum_fits_into_its_column(
    driver: Driver, panel: StepDetailPanel, settings: dict[str, object], width: int
) -> None:
    """The first digit of 31.800 used to be cut off, leaving 1.800."""
    driver.program.window.resize(width, 768)
    driver.program.workspace.editing.edit(settings, "another task")
    driver.run(3)
    driver.program.window.show_layout("Bandit")
    driver.settle()
    step = driver.shown_step
    assert step.settings.learner.group_size == settings["learner.group_size"]
    pad, places = 8 * panel.table.factor, panel.sums.places()
    assert {"reward", "advantage", "gradient"} <= set(places)
    for key, text in panel.sums.texts.items():
        if key in places:
            assert panel.table.cells.metrics.horizontalAdvance(text) <= places[key].width() - 2 * pad, (key, text)


def test_sums_of_another_update_lay_nothing_out_and_those_in_larger_type_do(
    driver: Driver, panel: StepDetailPanel
) -> None:
    """Each request reaches the window, which arranges all its docks again, at every step along the timeline."""
    driver.run(3)
    holder = panel.sums.parentWidget()
    assert holder is not None
    requests = LayoutRequests(holder)
    for reward in (1.0, 22.5, 333.25):
        panel.sums.show_sums({"reward": reward})
    QCoreApplication.sendPostedEvents()
    assert requests.count == 0
    scale = driver.program.workspace.scale
    panel.table.set_look(driver.program.workspace.theme, 2 * scale)
    QCoreApplication.sendPostedEvents()
    requests.count = 0
    panel.sums.show_sums({"reward": 1.0})
    QCoreApplication.sendPostedEvents()
    assert requests.count == 1
    requests.deleteLater()
    panel.table.set_look(driver.program.workspace.theme, scale)
    panel.sums.show_sums({"reward": 1.0})


def test_a_double_click_on_the_sentence_about_a_group_explains_its_mean(driver: Driver, panel: StepDetailPanel) -> None:
    driver.run(1)
    with driver.qtbot.waitSignal(driver.program.workspace.explained):
        QTest.mouseDClick(panel.foot, Qt.MouseButton.LeftButton, pos=panel.foot.rect().center())
    assert driver.program.workspace.quantity == Quantity("group_mean", group=0)


def test_the_sums_follow_the_last_row_however_high_the_panel_is(driver: Driver, panel: StepDetailPanel) -> None:
    driver.run(1)
    for height in (220, 900):
        panel.resize(400, height)
        rows = panel.table.verticalHeader().length() + panel.table.horizontalHeader().height()
        assert panel.table.height() <= rows + 2 * panel.table.frameWidth()
        assert panel.sums.geometry().top() == panel.table.geometry().bottom() + 1
    assert panel.table.verticalScrollBar().maximum() == 0, "every row is in sight"


def test_rewards_of_whole_completions_are_summed_once(language: Driver, front: Front) -> None:
    panel = front(STEP_DETAIL)
    view = language.program.workspace.view
    step = view.step.step
    assert step is not None and step.mask.shape[1] > 1
    assert panel.sums.texts["reward"] == f"{np.nansum(step.rewards):.3f}"
    rows = step_table.rows(EvaluatedStep(step), view.step.passed, origin=view.run.origin)
    place = [column.name for column in step_table.columns(step)].index("gradient")
    assert float(panel.sums.texts["gradient"].replace("−", "-")) == pytest.approx(
        -sum(row.cells[place] for row in rows), abs=6e-4
    )


def test_negative_numbers_have_a_minus_sign(driver: Driver, panel: StepDetailPanel) -> None:
    driver.run(8)
    table = panel.table.table
    place = next(n for n, column in enumerate(table.columns) if column.key == "advantage")
    values = [(table.value(row, place), table.text(row, place)) for row in range(table.rowCount())]
    negative = [text for value, text in values if isinstance(value, float) and value < 0]
    assert negative and all(text.startswith("▼ −") for text in negative)


def test_a_tooltip_keeps_the_meaning_beside_the_digits(driver: Driver, panel: StepDetailPanel) -> None:
    driver.run(3)
    table = panel.table.table
    place = next(n for n, column in enumerate(table.columns) if column.key == "ratio")
    tip = table.index(0, place).data(Qt.ItemDataRole.ToolTipRole)
    meaning, digits = tip.split("\n")
    assert meaning.startswith("Ratio. ")
    assert float(digits) == pytest.approx(table.value(0, place))


def test_samples_and_actions_of_two_digits_are_whole(driver: Driver, panel: StepDetailPanel) -> None:
    """Action 10 is one of the ten that every run begins with."""
    driver.program.workspace.editing.edit({"learner.group_size": 16}, "16 samples")
    driver.run(3)
    table, pad = panel.table, 8 * panel.table.factor
    for key, longest in (("sample", "16"), ("action", "10")):
        place = [column.key for column in table.table.columns].index(key)
        assert not table.isColumnHidden(place)
        assert table.cells.metrics.horizontalAdvance(longest) <= table.columnWidth(place) - 2 * pad, key


@pytest.mark.parametrize(("token", "shown"), [(" ", "·"), ("\n", "⏎"), ("7", "7")])
def test_a_token_of_white_space_can_be_seen(token: str, shown: str) -> None:
    column = step_table.Column(name="token", title="Token", help="", explained=False, decimals=None)
    assert list(values_shown(column, [token], Stage.UPDATE)) == [shown]


def test_in_a_low_panel_one_group_is_summed_up_and_the_tooltip_has_the_others(language: Driver, front: Front) -> None:
    panel = front(STEP_DETAIL)
    panel.resize(600, 600)
    assert panel.foot.text().count("mean R") > 1
    panel.resize(400, 170)
    whole = panel.feet[0]
    assert panel.foot.text().count("mean R") == 1
    assert whole.split(" · ")[0] in panel.foot.toolTip()


def test_a_panel_that_becomes_higher_shows_all_rows_that_fit_at_once(driver: Driver, panel: StepDetailPanel) -> None:
    driver.run(6)
    panel.resize(371, 302)
    panel.redraw()
    high = panel.table.maximumHeight()
    panel.resize(371, 185)
    panel.redraw()
    assert panel.table.maximumHeight() < high
    panel.resize(371, 302)
    assert panel.table.maximumHeight() == high
