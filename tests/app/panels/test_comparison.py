"""The parts of the comparison: what races, how it is drawn and told, and what becomes of the odd cases."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QPushButton,
    QTableView,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.experiments.jobs import Jobs
from app.panels.experiments.comparison import ComparisonPanel
from app.panels.experiments.race import words
from app.panels.experiments.race.headline import headline
from app.panels.experiments.race.looks import LOOKS, look, spoken
from app.panels.experiments.race.measures import MEASURES, scale_of
from app.panels.experiments.race.picture import SEED, race_picture
from app.panels.experiments.race.plan import RacePlan, base_of, remark_on
from app.panels.experiments.race.preset_menu import PresetMenu
from app.panels.experiments.race.results import COLUMNS, RaceResults
from app.panels.experiments.race.standing import RaceStanding
from app.panels.experiments.race.wrap import Wrap
from app.panels.registry import COMPARISON
from app.plotting.line_chart import LineChart
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.theme.tokens import DARK, THEMES, Theme
from grpo_core.bandit.simulate import never
from grpo_core.config import PRESETS, Settings, language_settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.digest import OVER_SEEDS, course
from grpo_core.experiments.ensemble import band
from grpo_core.experiments.race import SIX
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front
from tests.app.theme.test_theme import APART, EYES, seen

GRPO, BASELINE = "GRPO (DeepSeekMath)", "REINFORCE + baseline"
ALIKE = Settings().replace({"objective.beta": 0.0, "learner.mu": 1})


def raced(settings: Settings = ALIKE, **choices: object) -> RaceResults:
    """A small race."""
    plan = RacePlan(base=base_of(settings), **{"seeds": 4, "updates": 12, **choices})  # type: ignore[arg-type]
    results = RaceResults(plan)
    for digest in plan.digests(Jobs(), never):
        results.take(digest)
    return results


# -- what races --------------------------------------------------------------------------------------------------------


def test_a_race_takes_the_task_sampling_optimizer_and_beta_of_the_run_and_nothing_else() -> None:
    settings = Settings().replace(
        {
            "learner.group_size": 5, "learner.mu": 3, "optimizer.learning_rate": 0.7, "objective.beta": 0.2,
            "task.peak": 3.0, "seed": 99, "optimizer.step_length": 2.0, "learner.critic": True,
            "objective.baseline": "given", "objective.clip_high": 0.9,
        }
    )  # fmt: skip
    base = base_of(settings)
    expected = {"learner.group_size": 5, "learner.mu": 3, "optimizer.learning_rate": 0.7, "objective.beta": 0.2}
    assert {path: base.get(path) for path in expected} == expected
    assert base.bandit.peak == 3.0 and base.optimizer.step_length is None
    assert base == base_of(settings.replace({"seed": 1, "objective.clip_high": 0.3, "optimizer.step_length": None}))


def test_where_the_run_cannot_race_the_default_does_and_a_sentence_says_so() -> None:
    assert base_of(language_settings()) == base_of(Settings())
    assert "not those of the language model" in remark_on(language_settings())
    chain = Settings().replace({"task.landscape": "chain", "learner.group_size": 4})
    assert base_of(chain).bandit.landscape == "single_peak" and base_of(chain).learner.group_size == 4
    assert "one decision" in remark_on(chain)
    assert remark_on(Settings()) == ""


def test_a_constant_is_added_to_every_prompt_and_the_two_peaks_replace_the_landscape() -> None:
    plan = RacePlan(base=base_of(ALIKE), constant=10.0, levels=(0.0, 1.0, 2.0), local_peak=True)
    assert plan.settings.bandit.levels == (10.0, 11.0, 12.0)
    assert plan.settings.bandit.landscape == "double_peak" and plan.settings.bandit.bias == 2.0


def test_without_anybody_there_is_no_race() -> None:
    with pytest.raises(SettingsError, match="choose at least one"):
        RacePlan(base=base_of(ALIKE), names=()).digests(Jobs(), never)


def test_the_menu_stays_open_while_algorithms_are_chosen(qtbot: QtBot) -> None:
    entries = PresetMenu()
    qtbot.addWidget(entries)
    entries.show()
    menu = entries.menu()
    menu.popup(QPoint(0, 0))
    with qtbot.waitSignal(entries.changed):
        QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(entries.entries["DAPO"]).center())
    assert menu.isVisible()
    assert entries.names == (*SIX, "DAPO") and entries.text().startswith("7 algorithms")
    menu.setActiveAction(entries.entries["RLOO"])
    QTest.keyClick(menu, Qt.Key.Key_Space)
    assert menu.isVisible() and "RLOO" not in entries.names
    entries.usual.trigger()
    assert list(entries.names) == list(SIX)
    menu.close()


# -- what is told ------------------------------------------------------------------------------------------------------


def test_who_coincides_is_read_from_the_runs() -> None:
    equal = raced(fairness="step_length")
    assert equal.coinciding() == [[BASELINE, "RLOO", GRPO, "Dr. GRPO"]]
    assert words.of_same(equal).startswith(f"{BASELINE}, RLOO, GRPO and Dr. GRPO coincide")
    apart = raced(fairness="step_length", levels=(0.0, 1.0, 2.0))
    assert all(BASELINE not in group for group in apart.coinciding())
    assert raced(names=(GRPO, "REINFORCE")).coinciding() == []


def test_the_standing_shows_the_numbers_of_the_runs() -> None:
    results = raced(fairness="samples")
    rows = {str(row[0]): dict(zip([c.key for c in COLUMNS], row, strict=True)) for row in results.rows()}
    for name, runs in results.lanes.items():
        middle, low, high = (limit[-1] for limit in band(runs.measures["reward"]))
        assert (rows[name]["reward"], rows[name]["low"], rows[name]["high"]) == (middle, low, high)
        assert rows[name]["stuck"] == runs.stuck
        assert rows[name]["samples"] == 12 * 8
    assert (rows["REINFORCE"]["group"], rows["REINFORCE"]["updates"]) == (1, 96)


def test_the_headline_says_who_won_by_how_much_and_from_when() -> None:
    results = raced(Settings(), names=("REINFORCE", GRPO), seeds=16, updates=60)
    (first, best), (second, last) = results.ranked()
    courses = {name: digest.courses["reward"].middle for name, digest in results.digests.items()}
    sentence = headline(results)
    since = int(re.search(r"update (\d+)", sentence)[1])  # type: ignore[index]
    assert (courses[first][since:] > courses[second][since:]).all()
    assert since == 0 or courses[first][since - 1] <= courses[second][since - 1]
    assert spoken(first) in sentence and f"{shown(best - last)} above" in sentence


def test_the_headline_says_who_is_level_and_who_still_climbs() -> None:
    equal = raced(fairness="step_length", names=("RLOO", GRPO))
    assert headline(equal).startswith("2 of 2 algorithms end level")
    short = raced(Settings(), names=("REINFORCE", GRPO), seeds=16, updates=30)
    climbing = {name for name, digest in short.digests.items()
                if digest.courses["reward"].middle[-1] - digest.courses["reward"].middle[-4] > 0.01}  # fmt: skip
    assert climbing
    assert all(spoken(name) in headline(short).split("Still climbing at the end: ")[1] for name in climbing)


def test_of_those_that_end_level_the_one_that_was_there_first_is_named() -> None:
    results = raced(Settings(), names=("PPO-clip", GRPO), seeds=16, updates=200)
    best = results.ranked()[0][1]
    past = {
        name: int(np.argmax(digest.courses["reward"].middle > 0.9 * best)) for name, digest in results.digests.items()
    }
    first = min(past, key=lambda name: past[name])
    assert len(set(past.values())) == 2
    assert headline(results).startswith(f"{spoken(first)} is first past reward {shown(0.9 * best)}")
    assert f"after {past[first]} updates" in headline(results)


def test_a_race_that_is_not_complete_has_no_headline() -> None:
    plan = RacePlan(base=base_of(ALIKE), seeds=4, updates=5)
    results = RaceResults(plan)
    for digest in list(plan.digests(Jobs(), never))[:-1]:
        results.take(digest)
        assert headline(results) == ""


def test_the_summary_names_the_best_first_and_what_became_non_finite() -> None:
    results = raced()
    best = max(results.lanes, key=lambda name: float(np.median(results.lanes[name].measures["reward"][-1])))
    told = words.summary(results)
    assert told.index(best) < min(told.index(name) for name in SIX if name != best)
    results.lanes["REINFORCE"].measures["reward"][-1] = np.nan
    assert "REINFORCE became non-finite" in words.summary(results)
    assert words.summary(RaceResults(results.plan)) == "No algorithm has come in yet."


def test_a_change_of_the_settings_is_named() -> None:
    then = RacePlan(base=base_of(ALIKE))
    now = RacePlan(base=base_of(ALIKE.replace({"optimizer.learning_rate": 1.0, "learner.group_size": 4})))
    assert words.of_change(then, now) == "Raced before a change of “Group size” and “Learning rate”; press Race."


# -- the picture -------------------------------------------------------------------------------------------------------


@pytest.fixture
def plot(qtbot: QtBot) -> LineChart:
    made = LineChart("Race", pickable=True)
    qtbot.addWidget(made)
    made.resize(700, 400)
    made.show()
    return made


def test_every_measure_is_drawn_with_a_band_where_seeds_have_one(plot: LineChart) -> None:
    results = raced()
    for measure in MEASURES:
        for samples in (False, True):
            plot.show_picture(race_picture(results, measure, samples=samples))
            for name, runs in results.lanes.items():
                lane = course(runs, measure).every(8.0 if samples else 1.0)
                filled = np.isfinite(plot._line_items[name].ribbon.extent()).all()
                assert filled == (measure not in OVER_SEEDS)
                assert plot._line_items[name].yData.tolist() == pytest.approx(lane.middle.tolist(), nan_ok=True)
                assert lane.x[-1] == (12 * 8 if samples else 12)
            assert plot.table()[1]


def test_the_axis_of_the_reward_goes_from_the_worst_to_the_best_there_is() -> None:
    lifted = ALIKE.replace({"task.levels": (10.0, 11.0, 12.0)})
    scale = scale_of("reward", lifted)
    assert (scale.low, scale.high) == (11.0, 12.0)
    flat = ALIKE.replace({"task.landscape": "custom", "task.custom": (1.0,) * 10})
    assert scale_of("reward", flat).low is None


def test_a_click_picks_the_nearest_line_and_the_keys_go_through_all(qtbot: QtBot, plot: LineChart) -> None:
    results = raced(names=(GRPO, "REINFORCE"), updates=60)
    plot.show_picture(race_picture(results, "reward", samples=False))
    for name in results.lanes:
        spot = plot.to_pixels(40, plot.lines[name].value_at(40))
        at = plot.mapFromScene(plot.words.mapToScene(spot))
        with qtbot.waitSignal(plot.line_picked) as picked:
            qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=at)
        assert picked.args == [name]
    plot.setFocus()
    told: list[str] = []
    plot.line_picked.connect(told.append)
    plot.chosen = GRPO
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
        QTest.keyClick(plot, key)
    assert told == ["REINFORCE", "REINFORCE"]  # of two, the next and the one before are the same
    with qtbot.waitSignal(plot.activated):
        QTest.keyClick(plot, Qt.Key.Key_Return)


def test_the_read_out_has_the_highest_first_with_its_band(plot: LineChart) -> None:
    results = raced(names=("REINFORCE", GRPO), updates=60)
    plot.show_picture(race_picture(results, "reward", samples=False))
    heading, first, second = plot.read_at(59.8)
    assert heading[0] == "update 60"
    assert first[0].startswith("GRPO  0.") and "to" in first[0] and first[1] == "policy"
    assert second[0].startswith("REINFORCE")


def test_one_seed_is_drawn_over_the_bands_and_measures_without_seeds_draw_none(plot: LineChart) -> None:
    results = raced()
    plot.show_picture(race_picture(results, "reward", samples=False, chosen=GRPO, place=2))
    assert plot._line_items[SEED].yData.tolist() == results.lanes[GRPO].measures["reward"][:, 2].tolist()
    assert plot.lines[SEED].label == "seed 2" and plot.lines[SEED].meaning == "policy"
    plot.show_picture(race_picture(results, "wrong_way", samples=False, chosen=GRPO, place=2))
    assert SEED not in plot.lines and not plot._line_items[SEED].isVisible()


def test_algorithms_that_leave_the_race_leave_the_picture(plot: LineChart) -> None:
    plot.show_picture(race_picture(raced(), "reward", samples=False))
    plot.show_picture(race_picture(raced(names=("REINFORCE",)), "reward", samples=False))
    assert [name for name, item in plot._line_items.items() if item.isVisible()] == ["REINFORCE"]
    assert [column.title for column in plot.table()[0]] == ["update", "REINFORCE", "25 %", "75 %"]


def test_every_preset_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(PRESETS)
    assert len(set(LOOKS.values())) == len(LOOKS)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_the_usual_six_are_told_apart_by_every_eye(theme: Theme, eye: str) -> None:
    for one, other in itertools.combinations((look(name) for name in SIX), 2):
        difference = np.linalg.norm(seen(theme.colour(one.meaning), eye) - seen(theme.colour(other.meaning), eye))
        assert difference >= APART, (one, other)


def test_the_standing_sorts_and_copies_every_digit(qtbot: QtBot) -> None:
    standing, results = RaceStanding(), raced()
    qtbot.addWidget(standing)
    standing.set_rows(results.rows())
    standing.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert str(standing.table.value(0, 0)) == results.ranked()[0][0]
    standing.copy()
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 7 and repr(results.ranked()[0][1]) in lines[1]
    standing.set_look(DARK, 1.0)
    assert standing.table.ink(0, 0) == DARK.ink(look(results.ranked()[0][0]).meaning)


def test_a_row_that_is_too_narrow_breaks(qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    line = Wrap(holder)
    line.setSpacing(8)
    line.setContentsMargins(0, 0, 0, 0)
    buttons = [QPushButton(text) for text in ("one", "two", "three")]
    for button in buttons:
        line.addWidget(button)
    wide = line.sizeHint().width()
    assert line.heightForWidth(wide) == line.sizeHint().height()
    line.setGeometry(QRect(0, 0, wide - 1, 200))
    assert buttons[0].y() == buttons[1].y() < buttons[2].y()
    assert buttons[2].x() == 0
    assert line.heightForWidth(1) == 3 * buttons[0].height() + 2 * 4
    assert line.minimumSize().width() < wide
    holder.resize(QSize(50, 50))


# -- odd cases ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def panel(driver: Driver, front: Front) -> ComparisonPanel:
    """A small race in the window."""
    panel = driver.program.window.panels["comparison"]
    assert isinstance(panel, ComparisonPanel)
    panel.choices.seeds.setCurrentIndex(0)
    panel.choices.updates.setCurrentIndex(0)
    front(COMPARISON)
    settle(driver, panel)
    return panel


def settle(driver: Driver, panel: ComparisonPanel) -> None:
    driver.qtbot.waitUntil(lambda: not (panel.controller.busy or panel._settle.isActive()))
    driver.settle()


def test_a_chosen_seed_stays_while_nobody_races_and_what_was_shown_is_dimmed(
    driver: Driver, panel: ComparisonPanel
) -> None:
    panel.pick("RLOO")
    assert panel.controller.results is not None
    assert panel.chosen == panel.controller.results.lanes["RLOO"].median()
    assert panel.run.seed.text().endswith("median")
    panel.run.seed.setValue(3)
    assert (panel.chosen, panel.lane) == (3, "RLOO")
    panel.choices.entries.choose(())
    panel.choices.entries.changed.emit()
    settle(driver, panel)
    assert "choose at least one" in panel.says.text()
    assert panel.plot.frame.opacity() < 1
    assert not panel.standing.isEnabled()
    panel.choices.entries.usual.trigger()
    settle(driver, panel)
    assert panel.plot.frame.opacity() == 1 and panel.standing.table.rowCount() == 6
    assert (panel.chosen, panel.lane, panel.run.seed.value()) == (3, "RLOO", 3)
    panel.pick(GRPO)
    assert panel.place is None


def test_numbers_that_explode_are_drawn_as_far_as_there_are_any_and_all_has_a_name(
    driver: Driver, panel: ComparisonPanel
) -> None:
    driver.program.workspace.editing.edit(
        {
            "optimizer.learning_rate": 1e3, "learner.temperature": 0.01,
            "task.landscape": "custom", "task.custom": (1e9,) * 9 + (-1e9,),
        },
        "Too much",
    )  # fmt: skip
    driver.settle()
    settle(driver, panel)
    assert panel.controller.results is not None and panel.controller.results.complete
    for index in range(len(MEASURES)):
        panel.choices.measure.setCurrentIndex(index)
        driver.settle()
    assert panel.summary(driver.program.workspace.view)
    for widget in panel.findChildren(QWidget):
        if isinstance(widget, (QPushButton, QToolButton, QCheckBox, QComboBox, QAbstractSpinBox, QTableView, Plot)):
            assert widget.accessibleName() or getattr(widget, "text", str)(), widget
    assert "the best first" in panel.plot.accessibleDescription()
    assert "the best first" in panel.standing.accessibleDescription()


def test_a_language_model_is_told_that_the_bandit_races(language: Driver, front: Front) -> None:
    panel = language.program.window.panels["comparison"]
    assert isinstance(panel, ComparisonPanel)
    panel.choices.seeds.setCurrentIndex(0)
    panel.choices.updates.setCurrentIndex(0)
    assert front(COMPARISON) is panel
    settle(language, panel)
    assert "A race is run on the bandit" in panel.says.text()
    assert panel.controller.results is not None and panel.controller.results.plan.base == base_of(Settings())
