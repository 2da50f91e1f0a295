"""A reveal plays from the state it describes, driven by one clock. With reduced motion, it ends at once."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.clock import ManualClock
from app.plotting.axis import Scale
from app.plotting.bar_data import BarPicture, BarSeries, Lane
from app.plotting.line_data import Line, LinePicture
from app.teaching.lessons.inputs import Value
from app.teaching.lessons.interactives.over_training import Climb
from app.teaching.lessons.morph import between_bars, between_lines
from app.teaching.lessons.page_parts import result_of
from app.teaching.lessons.prediction import Placed
from app.teaching.lessons.reveal import CHANGE_SECONDS, FILM_SECONDS, Reveal
from tests.app.geometry import pixel_at
from tests.app.painted import heights_of
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of

pytestmark = pytest.mark.one_window


def test_a_reveal_follows_its_clock_to_one_and_with_reduced_motion_nothing_plays(
    qapp: object, clock: ManualClock
) -> None:
    reveal, seen = Reveal(), list[float]()
    reveal.played.connect(lambda: seen.append(reveal.share))
    reveal.play(2.0)
    for ms in (500, 500, 1500):
        clock.advance(ms)
    assert seen == [0.0, 0.25, 0.5, 1.0]
    assert not reveal.playing
    reveal.play(2.0)
    reveal.finish()
    assert reveal.share == 1.0
    reveal.moves = False  # reduced motion
    reveal.play(2.0)
    assert not reveal.playing


def _bars(*heights: float) -> BarPicture:
    series = BarSeries(name="now", meaning="policy", heights=np.array(heights))
    return BarPicture(names=("1", "2"), label="action", lanes=(Lane(series=(series,), y=Scale(low=0, high=1)),))


def test_bars_grow_from_where_they_stood() -> None:
    between = between_bars(_bars(0.2, 0.4), _bars(0.6, 0.0), 0.25)
    assert between.series[0].heights == pytest.approx([0.3, 0.3])
    assert between_bars(None, _bars(0.6, 0.2), 0.5).series[0].heights == pytest.approx([0.3, 0.1])
    after = _bars(0.6, 0.2)
    assert between_bars(_bars(0.0, 0.0), after, 1.0) is after


def test_a_line_without_a_past_is_drawn_from_left_to_right() -> None:
    line = Line(name="a", meaning="policy", x=np.arange(5.0), y=np.arange(5.0))
    picture = LinePicture(x=Scale(), y=Scale(), lines=(line,))
    half = between_lines(None, picture, 0.5).lines[0].y
    assert half[:3] == pytest.approx([0, 1, 2])
    assert np.isnan(half[3:]).all()
    moved = LinePicture(x=Scale(), y=Scale(), lines=(line.over(line.x, line.y + 4),))
    assert between_lines(picture, moved, 0.5).lines[0].y == pytest.approx(line.y + 2)


def test_the_first_lesson_climbs_past_the_ghost_that_was_dragged_in_the_picture(pupil: Pupil) -> None:
    pupil.open("why_rl")
    pupil.walk_to(2)
    player, picture, clock = pupil.lesson_player, pupil.picture, ManualClock()
    assert isinstance(picture, Climb)
    chart = picture.bars
    start, end = pixel_at(chart, 6, 0.1).toPoint(), pixel_at(chart, 6, 0.5).toPoint()
    QTest.mousePress(chart, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(chart, end)
    QTest.mouseRelease(chart, Qt.MouseButton.LeftButton, pos=end)
    pupil.driver.settle()
    box = pupil.page.prediction.input
    assert isinstance(box, Value)
    assert box.guess == pytest.approx(0.5, abs=0.02)
    assert heights_of(chart)["your prediction"][6] == pytest.approx(0.5, abs=0.02)
    player.reveal.moves, player.reveal.ticks.clock = True, clock
    QTest.keyClick(box, Qt.Key.Key_Return)
    pupil.driver.qtbot.waitUntil(lambda: player.reveal.playing)
    heights = []
    for ms in (0, 500 * FILM_SECONDS):
        clock.advance(ms)
        pupil.driver.settle()
        heights.append(float(heights_of(chart)["now"][6]))
        assert not pupil.page.text.isVisible(), "no text during motion"
        assert not pupil.page.prediction.result.isVisible()
    assert pupil.driver.program.workspace.cursor.step == 25
    pupil.press(Qt.Key.Key_Right)  # whoever has seen enough
    assert not player.reveal.playing
    heights.append(float(heights_of(chart)["now"][6]))
    assert heights[0] == pytest.approx(0.1)
    assert heights[0] < heights[1] < heights[2]
    assert player.place == 1
    assert pupil.page.prediction.result.text().startswith("Not this time.")
    assert heights_of(chart)["your prediction"][6] == pytest.approx(0.5, abs=0.02)
    assert chart.mapTo(pupil.driver.program.window, QPoint()).x() >= 0


def test_a_picture_changes_into_its_answer(pupil: Pupil) -> None:
    pupil.open("build_group")
    pupil.walk_to(2)
    player, clock = pupil.lesson_player, ManualClock()
    chart = pupil.picture.ghosts[0]
    before = heights_of(chart)["Advantages"].copy()  # type: ignore[arg-type]
    player.reveal.moves, player.reveal.ticks.clock = True, clock
    box = pupil.page.prediction.input
    assert isinstance(box, Value)
    box.put(2.0)
    QTest.keyClick(box, Qt.Key.Key_Return)
    pupil.driver.qtbot.waitUntil(lambda: player.reveal.playing)
    clock.advance(500 * CHANGE_SECONDS)
    pupil.driver.settle()
    half = heights_of(chart)["Advantages"].copy()  # type: ignore[arg-type]
    clock.advance(500 * CHANGE_SECONDS)
    pupil.driver.settle()
    after = heights_of(chart)["Advantages"]  # type: ignore[arg-type]
    assert half == pytest.approx((before + after) / 2, abs=1e-6)
    assert after[-1] == pytest.approx(2.474, abs=0.001)


@pytest.mark.parametrize(("guess", "word"), [(2.47, "Right."), (2.7, "Close."), (3.5, "Not this time.")])
def test_a_number_is_right_close_or_wrong(pupil: Pupil, guess: float, word: str) -> None:
    pupil.open("build_group")
    pupil.walk_to(2)
    placed = pupil.predict(guess)
    assert pupil.page.prediction.result.text().startswith(word)
    assert (placed.right, placed.close) == (word == "Right.", word == "Close.")
    assert "Advantage of the right answer: 2.47" in pupil.page.prediction.result.text()


@pytest.mark.parametrize(
    ("placed", "sentence"),
    [
        ({1: Placed(None, 2.5), 2: Placed(None, 1.0)}, "The end. No prediction was made."),
        ({}, "The end. No prediction was made."),
        ({1: Placed(None, 2.5), 2: Placed(1.0, 1.0, right=True)}, "The end. Right predictions: 1 of 1."),
        (
            {1: Placed(1.0, 2.0), 2: Placed(2.0, 2.1, close=True), 3: Placed(None, 1.0)},
            "The end. Right predictions: 0 of 2, and close: 1.",
        ),
    ],
)
def test_a_skipped_question_counts_as_no_prediction(placed: dict[int, Placed], sentence: str) -> None:
    assert result_of(lesson_of("build_group"), placed) == sentence


def test_the_end_of_a_lesson_leads_on_to_the_next(pupil: Pupil) -> None:
    pupil.open("build_group")
    pupil.lesson_player.open(pupil.lesson_player.lesson, 9)  # type: ignore[arg-type]
    pupil.wait()
    pupil.press(Qt.Key.Key_S)
    pupil.next()
    ending = pupil.page.ending
    assert ending.isVisible()
    assert ending.following.text() == "Next lesson: When does a group teach nothing?"
    assert ending.following.hasFocus()
    pupil.press(Qt.Key.Key_Left)
    assert not ending.isVisible()
    pupil.next()
    pupil.next()
    pupil.wait()
    assert pupil.lesson_player.lesson is not None
    assert pupil.lesson_player.lesson.id == "same_rewards"
    assert pupil.lesson_player.place == 0
