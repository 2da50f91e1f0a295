"""A picture whose premise the settings of the run do not meet draws what it can, or says why it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from app.teaching.lessons.interactives.advantages import BuildGroup
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.table import INTERACTIVES
from grpo_core.advantages import advantages
from grpo_core.config import Objective
from grpo_core.teaching.lessons import LessonStep
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window

TRAINS_A_PROCESS = ("language", "real")
"""Pictures that a test does not open, because they start the language model."""
CRITIC = {"learner.critic": True, "objective.baseline": "given"}
KL_IN_REWARD = {"objective.kl_in": "reward", "objective.beta": 0.5}
TWO_ACTIONS = {"task.landscape": "custom", "task.actions": 2, "task.custom": (0.0, 1.0)}

NEED_ADVANTAGES = {"build_group", "advantage_histogram", "temperature"}
"""Pictures that compute advantages without a critic."""


@contextmanager
def opened(driver: Driver, kind: type[Interactive]) -> Iterator[Interactive]:
    """Create a picture outside a lesson, and cancel its computations at the end."""
    picture = kind(driver.program.workspace)
    driver.qtbot.addWidget(picture)
    picture.resize(700, 500)
    yield picture
    picture.dispose()


def draw_all(driver: Driver) -> set[str]:
    """Draw every view of every picture, and return the names of those that say that they cannot be drawn."""
    silent, view = set(), driver.program.workspace.view
    for name, kind in INTERACTIVES.items():
        with opened(driver, kind) as picture:
            for show in set(picture.offer.shows or ("",)) - {*TRAINS_A_PROCESS}:
                picture.show_step(LessonStep(text="", show=show))
                picture.draw(view)
                if picture.problem:
                    silent.add(name)
                    assert picture.summary(view) == picture.note.text() == picture.problem
                    assert all(np.isnan(picture.answer(check)) for check in picture.offer.checks)
    return silent


@pytest.mark.parametrize(
    ("changes", "before", "after"),
    [(CRITIC, NEED_ADVANTAGES, NEED_ADVANTAGES), (TWO_ACTIONS, {"advantage_histogram"}, set())],
    ids=["critic", "two_actions"],
)
def test_no_settings_of_the_run_are_too_much_for_a_picture(
    driver: Driver, changes: dict[str, object], before: set[str], after: set[str]
) -> None:
    driver.program.workspace.editing.edit(changes, "Other settings")
    assert draw_all(driver) == before, "while the run shown is still the old one"
    driver.rest()
    driver.run(1)
    assert draw_all(driver) == after


def test_the_run_of_a_language_model_is_refused_where_a_bandit_is_needed(driver: Driver) -> None:
    driver.open_example()
    driver.settle()
    needed = {name for name, kind in INTERACTIVES.items() if kind.of_bandit}
    assert draw_all(driver) >= needed | {"temperature"} > needed


def test_a_group_made_by_hand_has_no_kl_to_subtract(driver: Driver) -> None:
    workspace = driver.program.workspace
    with opened(driver, BuildGroup) as picture:
        assert isinstance(picture, BuildGroup)
        picture.show_step(LessonStep(text="", state={"rewards": (0.0, 1.0, 0.0)}))
        workspace.editing.edit(KL_IN_REWARD, "KL in the reward")
        picture.draw(workspace.view)
        assert picture.now == pytest.approx(advantages(Objective(beta=0.0), np.array([[0.0, 1.0, 0.0]]))[0])
        workspace.editing.edit(CRITIC, "A critic")
        picture.draw(workspace.view)
        assert "given" in picture.note.text()
        assert np.isnan(picture.answer("last"))
        workspace.editing.edit({"learner.critic": False, "objective.baseline": "group_mean"}, "No critic")
        picture.draw(workspace.view)
        assert picture.note.text().startswith("Sum 0")
        assert picture.answer("last") < 0
