"""L20: a recorded run, walked through by keyboard. Its facts are read from its file; citations are marked."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.examples import RECORDED, example
from app.help.published import PARTS, published
from app.resources import resource
from app.teaching.lessons.catalogue import vocabulary
from app.teaching.lessons.interactives.reported import CHOSEN, WHOSE, Reported
from app.training.controller import State
from app.workspace.answers import GLYPHS, watched
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader
from grpo_core.teaching.lessons import LessonError
from grpo_core.teaching.lessons.reading import read_lesson
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import known, lesson_of

pytestmark = pytest.mark.one_window

Key = Qt.Key
FILE = resource("lessons") / "20-reported.toml"


def right(update: int) -> list[bool]:
    """Return which of the watched prompts the recorded run answers right before an update."""
    with RunReader.open(example()) as reader:
        step = reader.step(update)
        return [watched(step, place, reader.origin)[1].right is True for place in range(len(reader.origin.watched))]


def test_what_the_lesson_says_is_in_the_file() -> None:
    assert sum(right(1)) == 3
    assert all(right(32))
    with RunReader.open(example()) as reader:
        prompts = reader.origin.watched
        answers = {prompts[n]: watched(reader.step(1), n, reader.origin)[0] for n in range(len(prompts))}
        series = {name: reader.series(name) for name in METRICS}
        assert reader.meta.settings.language.prompts * reader.meta.settings.learner.group_size == 16
        assert reader.meta.settings.language.held_out == 128
    assert answers["5+9*5="] == "14*5=70", "from left to right"
    wrong = [prompt for prompt, well in zip(prompts, right(11), strict=True) if not well]
    assert len(wrong) == 2
    assert all(sum(prompt.count(sign) for sign in "+-*") == 3 for prompt in wrong), "two steps of working and the end"
    changes = np.diff([right(update) for update in range(1, 33)], axis=0)
    assert not (changes & ~np.array([right(update) for update in range(2, 33)])).any(), "changed for good"
    greedy, sampled = series["accuracy_greedy"], series["accuracy_sampled"]
    assert greedy[[0, 10, 30]] == pytest.approx([0.29, 0.76, 0.93], abs=0.01)
    assert sampled[30] < greedy[30] - 0.05
    assert 0.45 < sampled[0] < 0.6
    assert series["kl"][-1] < 0.1
    held_out = greedy[~np.isnan(greedy)]
    assert np.all(np.diff(held_out) > 0), "held-out prompts rise"
    assert np.diff(series["reward_mean"]).std() > 0.15, "the batch jumps about"


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_nothing_is_computed(pupil: Pupil) -> None:
    known(pupil, "reported", {2: 2, 3: 6, 4: 21, 5: 0, 6: 0.71, 8: 0})
    assert pupil.driver.program.controller.state is State.IDLE
    picture = pupil.picture
    assert isinstance(picture, Reported)
    for part in ("open", "aha", "results"):
        assert picture.page.part == part
        assert picture.page.mark.text() == WHOSE
        told = picture.page.browser.toPlainText()
        assert told.count("not computed here") == sum(entry.part == part for entry in published())
        assert PARTS[part] in picture.summary(pupil.driver.program.workspace.view)
        pupil.press(Key.Key_Left)
    assert picture.evolution.isVisible() and not picture.twin.isVisible()
    pupil.press(Key.Key_Left)
    assert picture.answers.isVisible()
    assert picture.recorded.text() == RECORDED


def test_the_same_prompts_answers_are_scrubbed_through(pupil: Pupil) -> None:
    pupil.open("reported")
    workspace, picture = pupil.driver.program.workspace, pupil.picture
    assert isinstance(picture, Reported)
    assert picture.evolution.place == CHOSEN
    assert picture.answer("right") == 3
    for update in range(2, 13):
        pupil.press(Key.Key_Period)
        assert workspace.cursor.step == update
        assert picture.answer("right") == sum(right(update))
    pupil.press(Key.Key_Comma)
    pupil.driver.settle()
    assert workspace.cursor.step == 11
    assert picture.summary(workspace.view).startswith("Update 11: 6 of 8 answers are right.")
    assert pupil.lesson_player.place == 0


def test_the_first_pictures_show_the_answers_of_one_update_and_nothing_of_later_ones(pupil: Pupil) -> None:
    pupil.open("reported")
    picture = pupil.picture
    assert isinstance(picture, Reported)
    assert not picture.evolution.isVisible()
    assert [row[0] == GLYPHS[True] for row in picture.rows(pupil.driver.program.workspace.view)] == right(1)
    assert picture.answer("all_right_at") == next(n for n in range(1, 33) if all(right(n)))


def test_leaving_gives_the_users_run_back_and_the_file_stays(pupil: Pupil) -> None:
    program = pupil.driver.program
    before = program.workspace.run
    pupil.open("reported")
    assert program.workspace.run is not None
    assert program.workspace.run.path == example()
    assert program.workspace.run in pupil.lesson_player.runs
    pupil.press(Key.Key_Escape)
    assert program.workspace.run is before
    assert all(run.path != example() for run in program.workspace.runs)
    assert example().exists()


def test_a_user_who_has_it_open_keeps_it(pupil: Pupil) -> None:
    program = pupil.driver.program
    pupil.driver.open_example()
    pupil.driver.settle()
    own = program.workspace.run
    pupil.open("reported")
    assert program.workspace.run is own
    pupil.next()
    pupil.press(Key.Key_S)
    pupil.press(Key.Key_Escape)
    assert program.workspace.run is own
    assert example().exists()


def test_the_lesson_can_be_opened_in_the_full_app(pupil: Pupil) -> None:
    pupil.open("reported")
    pupil.press(Key.Key_O)
    run = pupil.driver.program.workspace.run
    assert run is not None
    assert (run.path, pupil.lesson_player.lesson) == (example(), None)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({'recorded = "arithmetic"': 'recorded = "poetry"'}, "arithmetic"),
        ({'show = "answers"': 'show = "answers"\nknobs = ["objective.beta"]'}, "neither “settings” nor “knobs”"),
        ({'show = "answers"': 'show = "answers"\nsettings = { "objective.beta" = 0.1 }'}, "it is what it is|neither"),
    ],
)
def test_a_recorded_run_cannot_be_changed_by_a_lesson(change: dict[str, str], complaint: str) -> None:
    text = FILE.read_text("utf-8")
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new, 1)
    tomllib.loads(text)
    with pytest.raises(LessonError, match=complaint):
        read_lesson(Path("x.toml"), text, vocabulary())


def test_beyond_its_end_it_says_so(pupil: Pupil) -> None:
    """A step that needs more updates than were recorded gives the reason, and computes nothing."""
    pupil.open("reported")
    text = FILE.read_text("utf-8").replace("update = 32", "update = 33")
    lesson = read_lesson(FILE, text, vocabulary())
    assert lesson.steps != lesson_of("reported").steps
    pupil.lesson_player.open(lesson)
    pupil.wait()
    pupil.walk_to(4)
    pupil.press(Key.Key_S)
    assert pupil.lesson_player.problem == RECORDED
