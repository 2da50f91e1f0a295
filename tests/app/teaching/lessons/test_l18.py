"""L18, the flight deck: what each patient's dials show, and that the remedy named by the lesson is the one that
helps.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.teaching.lessons.interactives.flight_deck import AUDIT, TITLES, FlightDeck
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.teaching.lessons import as_told
from grpo_core.teaching.lessons.experiments.checkup import REMEDIES, UPDATES, audits, cause, right_at_end, treatments
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of, settings_of

pytestmark = pytest.mark.one_window

Key = Qt.Key
RIGHT = 6
PATIENTS = {"beta": 2, "rate": 4, "dead": 6, "cold": 8, "collapse": 10, "hack": 14}
"""Cause -> the step, counted from 1, whose dials show it."""
LOW = 12


@cache
def course(step: int, seed: int) -> dict[str, np.ndarray]:
    """Return every dial of one run, (U,) each, with the audit after every update."""
    settings = settings_of("flight_deck", step).replace({"seed": seed})
    training = learner(settings)
    found = [metrics(next(training)) for _ in range(UPDATES)]
    dials = {name: np.array([one[name] for one in found]) for name in TITLES if name != AUDIT}
    return {**dials, AUDIT: audits(settings, RIGHT)[1:]}


def checked(settings: Settings, seeds: range) -> dict[str, Ensemble]:
    plan = treatments(settings, RIGHT)
    return dict(zip(plan, ensembles([*plan.values()], seeds, UPDATES), strict=True))


SEEDS = (3, 104)
"""The lesson's own seed, and another."""


@pytest.mark.parametrize("seed", SEEDS)
def test_beta_too_big_live_groups_an_open_policy_and_a_kl_that_stands_still(seed: int) -> None:
    dials = course(PATIENTS["beta"], seed)
    assert dials["dead_groups"].mean() < 0.05
    assert dials["entropy"].min() > 2.2
    assert dials["kl"].max() < 0.1
    assert dials["kl"][10:30].mean() == pytest.approx(dials["kl"][40:].mean(), abs=0.01), "it rose at once and stands"
    assert dials[AUDIT][-1] < 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_rate_too_high_one_jump_and_dead_from_then_on(seed: int) -> None:
    dials = course(PATIENTS["rate"], seed)
    assert dials["kl"][:3].max() > 1
    assert dials["clip_fraction"][0] >= 0.75, "nearly every push in the pass after the jump"
    assert dials["entropy"][10:].max() < 0.5
    assert dials["dead_groups"][10:].mean() > 0.8


@pytest.mark.parametrize("seed", SEEDS)
def test_dead_groups_an_open_policy_whose_groups_fail_alike(seed: int) -> None:
    dials = course(PATIENTS["dead"], seed)
    assert dials["entropy"][:20].min() > 3.5
    assert dials["dead_groups"][:20].mean() > 0.8
    assert dials[AUDIT][0] == pytest.approx(1 / (63 + np.exp(2.5)), abs=0.01), "once in seventy-five draws"


@pytest.mark.parametrize("seed", SEEDS)
def test_too_cold_no_entropy_from_the_start(seed: int) -> None:
    dials = course(PATIENTS["cold"], seed)
    assert dials["entropy"][0] < 0.1
    assert dials["dead_groups"][:5].mean() > 0.75


@pytest.mark.parametrize("seed", SEEDS)
def test_entropy_collapse_closes_by_and_by_on_the_lower_reward(seed: int) -> None:
    dials = course(PATIENTS["collapse"], seed)
    assert dials["entropy"][0] > 1
    assert 0.2 < dials["entropy"][15] < 0.7
    assert dials["entropy"][-1] < 0.25
    assert dials["reward_mean"][-20:].mean() == pytest.approx(0.7, abs=0.08)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hacked_reward_parts_from_the_right_answers(seed: int) -> None:
    dials = course(PATIENTS["hack"], seed)
    assert dials["reward_mean"][-20:].mean() > 0.85, "better than any healthy run"
    assert dials[AUDIT][-1] < 0.1
    assert dials[AUDIT].max() > dials[AUDIT][-1] + 0.1


def test_the_lessons_own_run_is_hacked_at_about_update_20() -> None:
    found = course(PATIENTS["hack"], 3)[AUDIT]
    assert found[19] > 0.5 > 0.2 > found[39]


@pytest.mark.parametrize("seed", SEEDS)
def test_far_too_low_a_rate_creeps_on(seed: int) -> None:
    kl = course(LOW, seed)["kl"]
    assert kl[-1] < 0.01
    assert kl[-1] > 2.5 * kl[29] > 2.5 * 2.5 * kl[14] > 0, "faster and faster"


@pytest.mark.parametrize("seed", SEEDS)
def test_beta_on_the_deck_halts_the_policy_on_its_way(seed: int) -> None:
    settings = settings_of("three_knobs", 2).replace({"seed": seed})
    held, free = (learner(settings.replace({"objective.beta": beta})) for beta in (settings.objective.beta, 0.0))
    assert 0.3 < [metrics(next(held))["kl"] for _ in range(UPDATES)][-1] < 2.0
    assert [metrics(next(free))["kl"] for _ in range(UPDATES)][-1] > 2.0


@pytest.mark.parametrize("first", [1000])
@pytest.mark.parametrize(("patient", "step"), [*PATIENTS.items(), ("rate", LOW)])
def test_the_remedy_that_the_lesson_names_is_the_one_that_helps(patient: str, step: int, first: int) -> None:
    runs = checked(settings_of("flight_deck", step), range(first, first + 16))
    assert cause(runs, RIGHT) == list(REMEDIES).index(patient) + 1
    ends = {name: float(np.nan_to_num(right_at_end(found, RIGHT)).mean()) for name, found in runs.items()}
    assert ends[""] < 0.55
    assert ends[patient] > ends[""] + 0.3
    others = [end for name, end in ends.items() if name not in ("", patient)]
    assert ends[patient] > max(others) + 0.1


def test_a_healthy_run_needs_no_remedy() -> None:
    runs = checked(settings_of("flight_deck", 1), range(24))
    ends = [right_at_end(found, RIGHT).mean() for found in runs.values()]
    assert min(ends) > 0.9


def test_the_audit_is_that_of_the_run_itself() -> None:
    settings = settings_of("flight_deck", PATIENTS["hack"])
    training = learner(settings)
    steps = [next(training) for _ in range(12)]
    assert audits(settings, RIGHT, 12)[:-1] == pytest.approx(
        [float(np.exp(step.dist_logp[0][0, RIGHT])) for step in steps if step.dist_logp is not None]
    )


@pytest.mark.long
def test_it_is_walked_by_keyboard_and_nothing_on_the_screen_gives_a_patient_away(pupil: Pupil) -> None:
    """Controls and remedies are hidden until a diagnosis is placed; then the cause is a setting."""
    guesses = {"beta": 5, "rate": 0, "dead": 2, "cold": 1, "collapse": 3, "hack": 4}
    places = {PATIENTS[name] + 1: place for name, place in guesses.items()} | {LOW + 1: 0}
    window = pupil.driver.program.window
    pupil.open("flight_deck")
    picture, steps = pupil.shown(FlightDeck), lesson_of("flight_deck").steps
    for step in range(2, len(steps) + 1):
        pupil.next()
        asked = steps[step - 1].predict
        if step in places:
            assert picture.dials.isVisible()
            assert not picture.twin.isVisible()
            assert not pupil.page.knobs.isVisible()
            assert not window.docks["controls"].isVisible()
            assert picture.runs == {}
        if asked is not None:
            placed = pupil.predict(places.get(step, 1))
            assert placed.value is not None
            assert as_told(asked, placed.value)
            assert placed.right
            assert pupil.page.knobs.isVisible()
        if step in places:
            assert picture.twin.isVisible()
            assert set(picture.runs) == {"", *REMEDIES}
        assert pupil.lesson_player.problem == ""


def test_the_cause_is_a_knob_that_heals_and_the_dials_have_tables(pupil: Pupil) -> None:
    pupil.open("flight_deck")
    pupil.walk_to(3)
    pupil.predict(5)
    picture = pupil.shown(FlightDeck)
    ill = picture.answer("ill")
    pupil.lesson_player.turn({"objective.beta": 0.0})
    pupil.driver.qtbot.waitUntil(lambda: not picture.ready)
    assert np.isnan(picture.answer("ill"))
    pupil.wait()
    assert picture.answer("ill") > ill + 0.5
    pupil.next()
    dial = picture.plots["entropy"]
    dial.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.driver.settle()
    pupil.press(Key.Key_T)
    twin = picture.twins["entropy"]
    assert twin.shows_table
    assert twin.table.table.rowCount() == UPDATES
    assert "nats" in picture.summary_of("entropy")


def test_every_dial_is_a_door(pupil: Pupil) -> None:
    picture = pupil.opened("flight_deck", FlightDeck)
    picture.plots["kl"].setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_E)
    workspace = pupil.driver.program.workspace
    assert workspace.view.quantity is not None
    assert workspace.view.quantity.name == "kl"
    assert workspace.cursor.step == UPDATES
    assert pupil.driver.program.window.docks["explain"].isVisible()


def test_steps_give_no_cause_away_in_words() -> None:
    for step in PATIENTS.values():
        text = lesson_of("flight_deck").steps[step - 1].text.lower()
        assert not any(word in text for word in ("β", "rate", "cold", "temperature", "collapse", "hack", "dead group"))
