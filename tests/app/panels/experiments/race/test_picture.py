"""The picture of a race: lines and bands, what a click selects, and styles that every kind of colour vision can tell
apart.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.experiments.race.looks import LOOKS, look
from app.experiments.race.picture import MEASURES, SEED, race_picture, scale_of
from app.plotting.line_chart import LineChart
from app.theme.tokens import THEMES, Theme
from grpo_core.config import PRESETS
from grpo_core.experiments.race import OVER_SEEDS, SIX
from tests.app.panels.experiments.race.hands import ALIKE, GRPO, raced
from tests.app.theme.test_theme import APART, EYES, seen


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
            for name, digest in results.digests.items():
                line = plot.lines[name]
                filled = np.isfinite(plot.line_items[name].ribbon.extent()).all()
                assert filled == (measure not in OVER_SEEDS)
                assert plot.line_items[name].yData.tolist() == pytest.approx(
                    digest.courses[measure][0].tolist(), nan_ok=True
                )
                spacing, first = (8 if samples else 1), int(measure in OVER_SEEDS)
                assert line.x.tolist() == [spacing * update for update in range(first, 13)]
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
    assert plot.line_items[SEED].yData.tolist() == results.lanes[GRPO].measures["reward"][:, 2].tolist()
    assert plot.lines[SEED].label == "seed 2" and plot.lines[SEED].meaning == "policy"
    plot.show_picture(race_picture(results, "wrong_way", samples=False, chosen=GRPO, place=2))
    assert SEED not in plot.lines and not plot.line_items[SEED].isVisible()


def test_algorithms_that_leave_the_race_leave_the_picture(plot: LineChart) -> None:
    plot.show_picture(race_picture(raced(), "reward", samples=False))
    plot.show_picture(race_picture(raced(names=("REINFORCE",)), "reward", samples=False))
    assert [name for name, item in plot.line_items.items() if item.isVisible()] == ["REINFORCE"]
    assert [column.title for column in plot.table()[0]] == ["update", "REINFORCE", "25%", "75%"]


def test_every_preset_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(PRESETS)
    assert len(set(LOOKS.values())) == len(LOOKS)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_the_usual_six_are_told_apart_by_every_eye(theme: Theme, eye: str) -> None:
    for one, other in itertools.combinations((look(name) for name in SIX), 2):
        difference = np.linalg.norm(seen(theme.colour(one.meaning), eye) - seen(theme.colour(other.meaning), eye))
        assert difference >= APART, (one, other)
