"""L21: a language model's group of answers to one sum, by keyboard and over many seeds."""

from __future__ import annotations

import math
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from app.panels.evolution.panel import EvolutionPanel
from app.panels.score import ScorePanel
from grpo_core.errors import GrpoError
from grpo_core.learners import learner
from grpo_core.lm.prompt_file import located
from grpo_core.lm.rewards import PromptSource
from grpo_core.record import Step
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import UP, known, settings_of

SHARE = 0.40
"""Share of right answers to 2+2*6 that the lesson states."""


MANY = 2048


@cache
def answers(seed: int) -> Step:
    """Return the lesson's first update with many answers in one group, each sampled separately."""
    return next(iter(learner(settings_of("one_group").replace({"learner.group_size": MANY, "seed": seed}))))


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    known(pupil, "one_group", {2: 1, 4: 0.45, 5: UP, 6: 1, 7: 0.52})


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
