"""A race without its window: what it uses of the run, its choices, its table, and the text about it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.boxes import Wrap
from app.experiments.race import results as words
from app.experiments.race.choices import PresetMenu
from app.experiments.race.looks import look
from app.experiments.race.plan import RacePlan, base_of, remark_on
from app.experiments.race.results import COLUMNS, RaceResults
from app.experiments.race.standing import RaceStanding
from app.jobs.jobs import Jobs
from app.theme.tokens import DARK
from grpo_core.claims.claim import sentence
from grpo_core.claims.numbers import written
from grpo_core.commands.cli import main
from grpo_core.config import Settings, language_settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import band
from grpo_core.experiments.race import SIX, spoken
from grpo_core.progress import unpolled
from tests.app.panels.experiments.race.hands import ALIKE, BASELINE, GRPO, raced


def test_a_race_takes_the_task_sampling_optimizer_and_beta_of_the_run_and_nothing_else() -> None:
    settings = Settings().replace(
        {
            "learner.group_size": 5,
            "learner.mu": 3,
            "optimizer.learning_rate": 0.7,
            "objective.beta": 0.2,
            "task.peak": 3.0,
            "seed": 99,
            "optimizer.step_length": 2.0,
            "learner.critic": True,
            "objective.baseline": "given",
            "objective.clip_high": 0.9,
        }
    )
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
        RacePlan(base=base_of(ALIKE), names=()).digests(Jobs(), unpolled)


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


def test_a_row_that_is_too_narrow_breaks(qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    line = Wrap(on=holder)
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


def test_the_standing_shows_the_numbers_of_the_runs() -> None:
    results = raced(fairness="samples")
    rows = {str(row[0]): dict(zip([c.key for c in COLUMNS], row, strict=True)) for row in results.rows()}
    for name, runs in results.lanes.items():
        middle, low, high = (limit[-1] for limit in band(runs.measures["reward"]))
        assert (rows[name]["reward"], rows[name]["low"], rows[name]["high"]) == (middle, low, high)
        assert rows[name]["stuck"] == runs.stuck
        assert rows[name]["samples"] == 12 * 8
    assert (rows["REINFORCE"]["group"], rows["REINFORCE"]["updates"]) == (1, 96)


def test_the_standing_sorts_and_copies_every_digit(qtbot: QtBot) -> None:
    standing, results = RaceStanding(), raced()
    qtbot.addWidget(standing)
    standing.set_rows(results.rows())
    shown = [str(standing.table.value(place, 0)) for place in range(standing.table.rowCount())]
    assert shown == [name for name, _ in results.ranked()], "the best is on top at first"
    standing.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert str(standing.table.value(0, 0)) == results.ranked()[0][0]
    standing.copy()
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 7 and repr(results.ranked()[0][1]) in lines[1]
    standing.set_look(DARK, 1.0)
    ink = standing.table.data(standing.table.index(0, 0), Qt.ItemDataRole.ForegroundRole)
    assert ink == DARK.ink(look(results.ranked()[0][0]).meaning)


def higher(results: RaceResults) -> str:
    """Return what the headline says about who ends higher."""
    return results.headline.partition("Which ends higher? ")[2]


def test_who_coincides_is_read_from_the_runs() -> None:
    equal = raced(fairness="step_length")
    assert equal.coinciding() == [[BASELINE, "RLOO", GRPO, "Dr. GRPO"]]
    assert words.of_same(equal).startswith(f"{BASELINE}, RLOO, GRPO and Dr. GRPO coincide")
    apart = raced(fairness="step_length", levels=(0.0, 1.0, 2.0))
    assert all(BASELINE not in group for group in apart.coinciding())
    assert raced(names=(GRPO, "REINFORCE")).coinciding() == []


def test_the_headline_says_who_leads_by_how_much_within_what_limits_and_from_when() -> None:
    results = raced(Settings(), names=("REINFORCE", GRPO), seeds=16, updates=60)
    (first, best), (second, last) = results.ranked()
    assert results.headline is results.headline  # composed once, because it takes longer than a frame
    courses = {name: runs.measures["reward"].mean(axis=-1) for name, runs in results.lanes.items()}
    faster, told = results.headline.splitlines()
    line, sooner, earlier = re.search(r"is past (\S+) after (\d+) updates, (\d+) \[", faster).groups()  # type: ignore[union-attr]
    past = {name: runs.measures["reward"] > float(line) for name, runs in results.lanes.items()}
    firsts = {name: np.where(there.any(axis=0), there.argmax(axis=0), np.inf) for name, there in past.items()}
    arrivals = {name: float(np.quantile(own, 0.5, method="lower")) for name, own in firsts.items()}
    quick = min(arrivals, key=lambda name: arrivals[name])
    assert faster.startswith(f"Which is faster? {spoken(quick)} is past") and abs(arrivals[quick] - int(sooner)) <= 1
    (other,) = firsts.keys() - {quick}
    assert int(earlier) == np.quantile(firsts[other] - firsts[quick], 0.5, method="lower")
    since = int(re.search(r"update (\d+)", told)[1])  # type: ignore[index]
    assert (courses[first][since:] > courses[second][since:]).all()
    assert since == 0 or courses[first][since - 1] <= courses[second][since - 1]
    gap = results.trained.behind[spoken(second)]
    assert best - last == pytest.approx(gap.by) and gap.low < gap.by < gap.high
    by, low, high = written(gap.by, gap.low, gap.high)
    assert told.startswith(f"Which ends higher? {spoken(first)} leads {spoken(second)} by {by} [{low}, {high}]")
    assert f"{round(16 * results.lanes[first].stuck)} of 16 seeds stuck" in told


def test_who_is_level_is_said_and_who_still_climbs_stands_where_there_is_more_room() -> None:
    equal = raced(fairness="step_length", names=("RLOO", GRPO))
    assert higher(equal).startswith("RLOO and GRPO end level at")
    assert equal.headline.startswith("Which is faster? Too close to tell: RLOO is past")
    four = raced(fairness="step_length", names=("RLOO", GRPO, BASELINE, "Dr. GRPO"))
    assert higher(four).startswith("4 of 4 end level at")
    seeds = len(next(iter(equal.lanes.values())).seeds)
    assert f"of their {2 * seeds} runs stuck" in equal.headline and "seeds stuck" not in equal.headline
    short = raced(Settings(), names=("REINFORCE", GRPO), seeds=16, updates=30)
    means = {name: runs.measures["reward"].mean(axis=-1) for name, runs in short.lanes.items()}
    climbing = {name for name, course in means.items() if course[-1] - course[-4] > 0.01}
    assert climbing
    assert all(f"{spoken(name)} still climbs" in sentence(*short.details) for name in climbing)


def test_ends_that_are_too_close_to_tell_are_not_called_the_highest_of_them() -> None:
    results = raced(Settings().replace({"objective.beta": 0.0}), names=SIX, seeds=16, updates=20)
    steps = np.linspace(-0.4, 0.4, 16)
    for place, name in enumerate(results.lanes):
        results.lanes[name].measures["reward"][:] = 0.5 + 0.01 * place + np.roll(steps, 5 * place)
    assert higher(results).startswith("6 of 6 end at 0.500 to 0.550, too close to tell; ")


def test_the_command_line_says_what_the_window_says_to_the_digit(capsys: pytest.CaptureFixture[str]) -> None:
    for name, options in (("updates", []), ("samples", ["--fairness", "samples"])):
        results = raced(names=SIX, seeds=16, updates=50, fairness=name)
        asked = ["race", "--seeds", "16", "--updates", "50", "--set", "objective.beta=0", *options]
        assert main(asked) == 0
        printed = capsys.readouterr().out
        told = [line.partition("? ")[2] for line in results.headline.splitlines()]
        assert len(told) == (2 if name == "updates" else 1) and all(line in printed for line in told)
        assert all(f"{line}." in printed for line in sentence(*results.details).rstrip(".").split("; "))
        for other, gap in results.trained.behind.items():
            numbers = written(gap.by, gap.low, gap.high)
            assert f"{numbers[0]} [{numbers[1]}, {numbers[2]}]{'  level' if gap.level else ''}   {other}" in printed


def test_with_too_few_seeds_nobody_leads() -> None:
    few = raced(Settings(), names=("REINFORCE", GRPO), seeds=4, updates=60)
    assert higher(few).startswith("Fewer than 8 seeds are too few to tell who leads; highest is GRPO, at 0.")
    assert few.headline.startswith("Which is faster? Too few seeds to tell; ")


def test_of_those_that_end_level_the_one_that_was_there_first_is_named() -> None:
    results = raced(Settings().replace({"objective.beta": 0.0}), names=(GRPO, "GSPO"), seeds=16, updates=20)
    slow, quick = (np.linspace(0.1, 0.9, 21), np.minimum(np.linspace(0.1, 2.5, 21), 0.9))
    for name, course in ((GRPO, slow), ("GSPO", quick)):
        results.lanes[name].measures["reward"][:] = course[:, None]
    assert higher(results).startswith("GRPO and GSPO end level at 0.900")
    assert "GSPO is past 0.820 after 7 updates, 12 [12, 12] earlier than GRPO" in results.headline


def test_a_seed_that_diverged_is_counted() -> None:
    results = raced(Settings(), names=("REINFORCE", GRPO), seeds=16, updates=60)
    before = dict(results.ranked())[GRPO]
    results.lanes[GRPO].measures["reward"][30:, 3] = np.nan
    assert 0 < before - dict(results.ranked())[GRPO] < 0.1
    assert "1 diverged" in results.headline
    assert "GRPO (DeepSeekMath) became non-finite" in words.summary(results)


def test_a_race_that_is_not_complete_has_no_headline() -> None:
    plan = RacePlan(base=base_of(ALIKE), seeds=4, updates=5)
    results = RaceResults(plan)
    for digest in list(plan.digests(Jobs(), unpolled))[:-1]:
        results.take(digest)
        assert results.headline == ""


def test_the_summary_names_the_best_first_and_what_became_non_finite() -> None:
    results = raced()
    best = max(results.lanes, key=lambda name: float(results.lanes[name].measures["reward"][-1].mean()))
    told = words.summary(results)
    assert told.index(best) < min(told.index(name) for name in SIX if name != best)
    results.lanes["REINFORCE"].measures["reward"][-1] = np.nan
    assert "REINFORCE became non-finite" in words.summary(results)
    assert words.summary(RaceResults(results.plan)) == "No algorithm has finished yet."


def test_a_change_of_the_settings_is_named() -> None:
    then = RacePlan(base=base_of(ALIKE))
    now = RacePlan(base=base_of(ALIKE.replace({"optimizer.learning_rate": 1.0, "learner.group_size": 4})))
    assert words.of_change(then, now) == "Raced before a change of “Group size” and “Learning rate”; press Race."
