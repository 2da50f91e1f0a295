"""L22: recorded runs of a real pretrained model; the lesson's statements about them are checked against their files."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.examples import RECORDED, example
from app.teaching.lessons.interactives.sampled_answers import (
    Pretrained,
    answer_text,
    bare_answers,
    exact_answers,
)
from app.training.controller import State
from grpo_core import recompute
from grpo_core.record import Origin, Step
from grpo_core.runs.run_file import RunReader
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import known, lesson_of

pytestmark = pytest.mark.one_window

Key = Qt.Key
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


def test_it_is_walked_by_keyboard_and_nothing_is_computed(pupil: Pupil) -> None:
    known(pupil, "pretrained", {2: 6, 3: 2, 4: 0.6, 5: 2, 6: 0, 7: 0, 8: 0, 9: 0.92})
    assert pupil.driver.program.controller.state is State.IDLE
    picture = pupil.picture
    assert isinstance(picture, Pretrained)
    assert picture.recorded.text() == RECORDED


def test_the_curve_ends_at_the_update_shown(pupil: Pupil) -> None:
    """The dip that the fourth step asks about is not visible before it."""
    pupil.driver.program.part("teaching").lessons.player.open(lesson_of("pretrained"), 1)
    pupil.wait()
    pupil.press(Key.Key_S)
    picture = pupil.picture
    assert isinstance(picture, Pretrained)
    pupil.driver.qtbot.waitUntil(lambda: picture.note.text().startswith("Update 6:"))
    np.testing.assert_array_equal(picture.curve.picture.by_name["right"].y, right_shares("smollm2")[:6])
    assert picture.note.text().startswith("Update 6: 30 of 32 answers right;")


def test_the_answers_are_those_that_were_sampled_in_the_update_shown(pupil: Pupil) -> None:
    pupil.open("pretrained")
    picture = pupil.picture
    assert isinstance(picture, Pretrained)
    steps, origin = read("smollm2")
    assert [picture.answers.table.value(row, 3) for row in range(32)] == [
        answer_text(steps[0], row, origin) for row in range(32)
    ]
    pupil.press(Key.Key_Period)
    pupil.driver.qtbot.waitUntil(lambda: picture.note.text().startswith("Update 2:"))
    assert [picture.answers.table.value(row, 3) for row in range(32)] == [
        answer_text(steps[1], row, origin) for row in range(32)
    ]
