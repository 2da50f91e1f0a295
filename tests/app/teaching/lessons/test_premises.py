"""A picture whose premise the settings of the run do not meet draws what it can, or says why it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest

from app.teaching.lessons.interactives.advantages import AdvantageHistogram, BuildGroup
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.by_hand import RatioExplorer
from app.teaching.lessons.interactives.credit import Credit, StepCredit
from app.teaching.lessons.interactives.flight_deck import FlightDeck
from app.teaching.lessons.interactives.group_size import GroupSize
from app.teaching.lessons.interactives.memory_bill import KNOBS, SWITCHES, MemoryBill
from app.teaching.lessons.interactives.table import INTERACTIVES
from app.teaching.lessons.interactives.temperature import Temperature
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


State = dict[str, object]
SCORED: tuple[State, ...] = ({"scored_at": 0.0}, {"scored_at": 5.0})


@pytest.mark.parametrize(
    ("kind", "changes", "states", "known"),
    [
        (
            MemoryBill,
            {},
            (
                {},
                {"parameters": -1.0},
                {"optimizer": "magic"},
                {"block": "critic/none"},
                {"knobs": (*SWITCHES, *KNOBS)},
                {"generated": 0, "critic": True},
            ),
            "gib",
        ),
        (
            AdvantageHistogram,
            {},
            ({"action": 99, "batches": 10**9}, {"action": 0, "batches": 0}, {"bar": "highest"}, {}),
            "",
        ),
        (
            RatioExplorer,
            {},
            ({}, {"action": 99, "probability": 5.0}, {"action": 0, "probability": -1}, {"gain": 2.0}),
            "",
        ),
        (Temperature, {}, SCORED, ""),
        (Temperature, {"task.landscape": "chain"}, SCORED, ""),
        (Temperature, {"task.landscape": "linear", "learner.group_size": 1}, SCORED, ""),
    ],
)
def test_odd_states_are_survived(
    driver: Driver, kind: type[Interactive], changes: State, states: tuple[State, ...], known: str
) -> None:
    """``known``: an answer that is a number in every state."""
    workspace = driver.program.workspace
    workspace.editing.edit(changes, "Another task")
    driver.settle()
    with opened(driver, kind) as picture:
        for state, show in product(states, set(picture.offer.shows) - {*TRAINS_A_PROCESS}):
            picture.show_step(LessonStep(text="", show=show, state=state))
            picture.draw(workspace.view)
            assert picture.summary(workspace.view)
            assert picture.problem == ""
            assert known == "" or np.isfinite(picture.answer(known))
            assert kind is not RatioExplorer or picture.answer("mean_ratio") == pytest.approx(1)


@pytest.mark.parametrize(
    ("kind", "show", "state", "task", "said", "unknown"),
    [
        (GroupSize, "silent", {"kinds": ("scaled",)}, "chain", "one decision", "updates_gain"),
        (GroupSize, "reward", {"kinds": ("scaled",)}, "chain", "one decision", "updates_gain"),
        (GroupSize, "left", {"kinds": ("scaled",)}, "chain", "one decision", "updates_gain"),
        (AdvantageHistogram, "histogram", {}, "chain", "one decision", "punished"),
        (Credit, "plain", {}, "single_peak", "", "praised"),
        (Credit, "ledger", {}, "single_peak", "", "praised"),
        (Credit, "critic", {}, "single_peak", "", "praised"),
        (Credit, "lengths", {}, "single_peak", "variable length", "wrong_growth"),
        (StepCredit, "tokens", {}, "single_peak", "", "needed_ratio"),
        (StepCredit, "race", {"lanes": (), "updates": 0}, "single_peak", "chain", "needed_ratio"),
        (StepCredit, "faulty", {"lanes": (), "updates": 0}, "single_peak", "chain", "needed_ratio"),
        (FlightDeck, "remedies", {"right": 99}, "single_peak", "whose actions include the right one", "cause"),
    ],
)
def test_a_task_without_the_numbers_of_a_picture_is_told_in_a_sentence(
    driver: Driver, kind: type[Interactive], show: str, state: State, task: str, said: str, unknown: str
) -> None:
    workspace = driver.program.workspace
    workspace.editing.edit({"task.landscape": task}, "Another task")
    driver.settle()
    with opened(driver, kind) as picture:
        picture.show_step(LessonStep(text="", show=show, state=state))
        picture.draw(workspace.view)
        driver.qtbot.waitUntil(lambda: picture.ready)
        picture.draw(workspace.view)
        assert said in f"{picture.progress_text} {picture.note.text()}"
        assert np.isnan(picture.answer(unknown))
