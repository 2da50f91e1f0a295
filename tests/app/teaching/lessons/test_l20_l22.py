"""L20 to L22: recorded runs, walked through by keyboard, and a language model's group of answers to one sum. What the
lessons say is read from the files of the runs, or checked over many seeds.
"""

from __future__ import annotations

import math
import re
import tomllib
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.examples import RECORDED, example
from app.help.published import PARTS, published
from app.panels.evolution.panel import EvolutionPanel
from app.panels.score import ScorePanel
from app.resources import resource
from app.teaching.lessons.catalogue import vocabulary
from app.teaching.lessons.interactives.reported import CHOSEN, WHOSE, Reported
from app.teaching.lessons.interactives.sampled_answers import (
    Pretrained,
    answer_text,
    bare_answers,
    exact_answers,
)
from app.workspace.answers import GLYPHS, watched
from grpo_core import recompute
from grpo_core.errors import GrpoError
from grpo_core.learners import learner
from grpo_core.lm.prompt_file import located
from grpo_core.lm.rewards import PromptSource
from grpo_core.metrics import METRICS
from grpo_core.record import Origin, Step
from grpo_core.runs.run_file import RunReader
from grpo_core.teaching.lessons import LessonError
from grpo_core.teaching.lessons.reading import read_lesson
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of, settings_of

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
def test_what_others_report_is_marked_and_its_pictures_come_back_by_keyboard(pupil: Pupil) -> None:
    picture = pupil.opened("reported", Reported, step=8)
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
    picture = pupil.opened("reported", Reported)
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


RUNS = ("smollm2", "smollm2_kl", "smollm2_bare")


@cache
def read(name: str) -> tuple[tuple[Step, ...], Origin]:
    """Return every update of a recorded run, and its start."""
    with RunReader.open(example(name)) as reader:
        return tuple(reader.step(number) for number in range(1, reader.last + 1)), reader.origin


def right_shares(name: str) -> np.ndarray:
    """Return the share of answers whose last number is right, according to their rewards, (n,)."""
    shares = [step.reward_parts[:, 0].mean() for step in read(name)[0] if step.reward_parts is not None]
    return np.array(shares)


@pytest.mark.parametrize("name", RUNS)
def test_an_answer_counts_as_right_where_its_last_number_is_the_sum(name: str) -> None:
    """The rewards in the file are compared with its own completions, judged by a rule other than the checker's."""
    steps, origin = read(name)
    for step in (steps[0], steps[-1]):
        for glyph, reward, question, answer in Pretrained.rows(step, origin):
            a, b = map(int, re.findall(r"\d+", str(question)))
            numbers = re.findall(r"-?\d+(?:\.\d+)?", str(answer))
            well = bool(numbers) and float(numbers[-1]) == a + b
            assert (glyph == "◆") == well, answer
            paid = re.fullmatch(r"\d+\.?", str(answer)) is not None if name == "smollm2_bare" else well
            assert reward == float(paid), answer


def test_only_the_bare_run_pays_for_the_bare_number() -> None:
    assert {name: read(name)[1].settings.language.form_weight for name in RUNS} == {
        "smollm2": 0.0,
        "smollm2_kl": 0.0,
        "smollm2_bare": 1.0,
    }


def test_what_the_lesson_says_is_in_the_files() -> None:
    shares = right_shares("smollm2")
    assert len(shares) == 20
    assert round(32 * shares[0]) == 6
    assert (read("smollm2")[0][0].mask.sum(axis=1) == 12).sum() > 16, "most of the first answers are cut off"
    assert np.flatnonzero(shares >= 0.9)[0] + 1 == 6
    assert shares[6:].min() == shares[6] == pytest.approx(0.59, abs=0.005), "lowest in the very next update"
    assert (np.diff(np.sign(shares[6:] - 0.9)) < 0).sum() > 1, "it recovers and falls back more than once"
    with RunReader.open(example("smollm2")) as reader:
        assert reader.series("accuracy_greedy")[0] == pytest.approx(8 / 9)
        assert reader.meta.settings.objective.beta == 0
        assert reader.meta.settings.seed == 2
        assert reader.meta.settings.model.adapter_rank == 8


def test_beta_holds_the_distance_and_not_the_share_of_right_answers() -> None:
    free, held = right_shares("smollm2"), right_shares("smollm2_kl")
    assert free[0] == held[0], "the same first batch"
    assert [int(np.flatnonzero(shares >= 0.9)[0]) + 1 for shares in (free, held)] == [6, 8]
    assert held[8:].min() == held[11] == pytest.approx(0.59, abs=0.005)
    with RunReader.open(example("smollm2")) as one, RunReader.open(example("smollm2_kl")) as other:
        assert [round(float(run.series("kl")[-1]), 2) for run in (one, other)] == [1.01, 0.32]
        changed = one.meta.settings.differences(other.meta.settings)
        assert changed == {"objective.beta": (0.0, 0.1)}


@pytest.mark.parametrize("name", RUNS)
def test_the_likeliest_tokens_of_each_place_have_texts(name: str) -> None:
    steps, origin = read(name)
    for step in (steps[0], steps[-1]):
        assert step.top_tokens is not None
        shown = step.top_tokens[step.mask]
        assert all(origin.vocabulary[token] for token in np.unique(shown))


def test_a_reward_that_nothing_earns_leaves_the_model_as_it_was() -> None:
    first, nearer = read("smollm2_bare")[0][0], read("smollm2")[0][0]
    np.testing.assert_array_equal(first.tokens, nearer.tokens)
    assert recompute.dead_groups(first).all()
    assert first.measurements["grad_norm"] == 0
    np.testing.assert_array_equal(first.logp[-1], first.logp[0])
    assert recompute.dead_groups(nearer).sum() == 1
    assert len(recompute.dead_groups(nearer)) == 4


def test_bare_numbers_are_rare_and_none_of_them_is_right() -> None:
    steps, origin = read("smollm2_bare")
    assert sum(len(step.tokens) for step in steps) == 128
    assert [int(bare_answers(step, origin).sum()) for step in steps] == [0, 2, 1, 3]
    assert not any(exact_answers(step, origin).any() for step in steps)
    paid = [answer_text(step, int(row), origin) for step in steps for row in np.flatnonzero(step.rewards)]
    assert len(paid) == 6
    assert "12" in paid


def test_the_run_that_pays_the_last_number_loses_the_bare_one() -> None:
    steps, origin = read("smollm2")
    bare = [int(bare_answers(step, origin).sum()) for step in steps]
    assert sum(len(step.tokens) for step in steps) == 640
    assert (sum(bare), bare[1], bare[2]) == (5, 2, 3)
    assert not any(exact_answers(step, origin).any() for step in steps)
    assert "6 + 5 equals 11 in Roman numerals" in [answer_text(steps[5], row, origin) for row in range(32)]
    assert "2 + 8 equals 10 in decimal form." in [answer_text(steps[19], row, origin) for row in range(32)]


def test_the_curve_ends_at_the_update_shown(pupil: Pupil) -> None:
    """The dip that the fourth step asks about is not visible before it."""
    pupil.driver.program.part("teaching").lessons.player.open(lesson_of("pretrained"), 1)
    pupil.wait()
    pupil.press(Key.Key_S)
    picture = pupil.shown(Pretrained)
    pupil.driver.qtbot.waitUntil(lambda: picture.note.text().startswith("Update 6:"))
    np.testing.assert_array_equal(picture.curve.picture.by_name["right"].y, right_shares("smollm2")[:6])
    assert picture.note.text().startswith("Update 6: 30 of 32 answers right;")


def test_the_answers_are_those_that_were_sampled_in_the_update_shown(pupil: Pupil) -> None:
    picture = pupil.opened("pretrained", Pretrained)
    assert picture.recorded.text() == RECORDED
    steps, origin = read("smollm2")
    assert [picture.answers.table.value(row, 3) for row in range(32)] == [
        answer_text(steps[0], row, origin) for row in range(32)
    ]
    pupil.press(Key.Key_Period)
    pupil.driver.qtbot.waitUntil(lambda: picture.note.text().startswith("Update 2:"))
    assert [picture.answers.table.value(row, 3) for row in range(32)] == [
        answer_text(steps[1], row, origin) for row in range(32)
    ]


SHARE = 0.40
"""Share of right answers to 2+2*6 that the lesson states."""


MANY = 2048


@cache
def answers(seed: int) -> Step:
    """Return the lesson's first update with many answers in one group, each sampled separately."""
    return next(iter(learner(settings_of("one_group").replace({"learner.group_size": MANY, "seed": seed}))))


@pytest.mark.long
def test_an_answer_of_ones_own_joins_the_group_and_nothing_is_called_held_out(pupil: Pupil) -> None:
    pupil.open("one_group")
    window = pupil.driver.program.window
    evolution = window.panels["evolution"]
    assert isinstance(evolution, EvolutionPanel)
    assert not evolution.dial.isVisible(), "the one prompt there is is trained on"
    pupil.walk_to(3)
    panel = window.panels["score_your_own"]
    assert isinstance(panel, ScorePanel) and panel.isVisible()
    panel.field.setText("14")
    with pupil.driver.qtbot.waitSignal(pupil.driver.program.workspace.answered, timeout=20_000):
        panel.field.returnPressed.emit()
    pupil.driver.settle()
    assert "advantage" in panel.summary(pupil.driver.program.workspace.view)
    assert pupil.lesson_player.place == 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_share_of_right_answers_is_as_told_and_has_two_habits(seed: int) -> None:
    """2,048 answers: four standard errors are 0.043."""
    step = answers(seed)
    assert step.rewards.mean() == pytest.approx(SHARE, abs=4 * math.sqrt(SHARE * (1 - SHARE) / 2048) + 0.005)
    opening, counts = np.unique(step.tokens[:, 0], return_counts=True)
    assert np.sort(counts)[-2:].sum() > 0.98 * 2048, "nearly every answer begins in one of two ways"
    right = {int(token): float(step.rewards[step.tokens[:, 0] == token].mean()) for token in opening[counts > 100]}
    assert sorted(round(share, 1) for share in right.values()) == [0.0, 1.0], "and the beginning decides"


@pytest.mark.parametrize("size", [8, 64])
def test_a_mean_strays_as_far_as_told(size: int) -> None:
    """The standard deviation of n means has a standard error of 1 / √(2 (n − 1)) of itself."""
    means = np.concatenate([answers(seed).rewards.reshape(-1, size).mean(-1) for seed in (0, 1)])
    expected = math.sqrt(SHARE * (1 - SHARE) / size)
    assert np.std(means, ddof=1) == pytest.approx(expected, rel=4 / math.sqrt(2 * (len(means) - 1)))
    assert round(expected, 2) == {8: 0.17, 64: 0.06}[size]


def test_two_answers_are_alike_about_half_of_the_time() -> None:
    assert settings_of("one_group", 7).learner.group_size == 2
    alike = np.mean(np.ptp(answers(0).rewards.reshape(-1, 2), axis=-1) == 0)
    expected = SHARE**2 + (1 - SHARE) ** 2
    assert alike == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / (MANY / 2)))


def test_ten_updates_change_the_habit() -> None:
    last = []
    for seed in range(20, 26):
        steps = [*islice(learner(settings_of("one_group", 5).replace({"seed": seed})), 10)]
        last.append(np.mean([step.rewards.mean() for step in steps[-3:]]))
    assert min(last) > 0.6
    assert np.mean(last) > 0.85


def test_a_shipped_list_is_found_wherever_the_program_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = settings_of("one_group")
    assert [(p.text, p.answer) for p in PromptSource(settings.language, settings.model.context).watched] == [
        ("2+2*6=", "14")
    ]
    assert located("mine/sums.csv") == Path("mine/sums.csv")
    missing = settings.replace({"task.file": "shipped:nothing.csv"})
    with pytest.raises(GrpoError, match=r"nothing\.csv cannot be read"):
        PromptSource(missing.language, missing.model.context)
