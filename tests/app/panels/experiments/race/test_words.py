"""What is said of a race: its headline, its summary, who coincides, and what has changed since."""

from __future__ import annotations

import re

import numpy as np

from app.experiments.jobs import Jobs
from app.panels.experiments.race import words
from app.panels.experiments.race.headline import headline
from app.panels.experiments.race.looks import spoken
from app.panels.experiments.race.plan import RacePlan, base_of
from app.panels.experiments.race.results import RaceResults
from app.plotting.numbers import shown
from grpo_core.bandit.simulate import never
from grpo_core.config import Settings
from grpo_core.experiments.race import SIX
from tests.app.panels.experiments.race.hands import ALIKE, BASELINE, GRPO, raced


def test_who_coincides_is_read_from_the_runs() -> None:
    equal = raced(fairness="step_length")
    assert equal.coinciding() == [[BASELINE, "RLOO", GRPO, "Dr. GRPO"]]
    assert words.of_same(equal).startswith(f"{BASELINE}, RLOO, GRPO and Dr. GRPO coincide")
    apart = raced(fairness="step_length", levels=(0.0, 1.0, 2.0))
    assert all(BASELINE not in group for group in apart.coinciding())
    assert raced(names=(GRPO, "REINFORCE")).coinciding() == []


def test_the_headline_says_who_won_by_how_much_and_from_when() -> None:
    results = raced(Settings(), names=("REINFORCE", GRPO), seeds=16, updates=60)
    (first, best), (second, last) = results.ranked()
    courses = {name: digest.courses["reward"].middle for name, digest in results.digests.items()}
    sentence = headline(results)
    since = int(re.search(r"update (\d+)", sentence)[1])  # type: ignore[index]
    assert (courses[first][since:] > courses[second][since:]).all()
    assert since == 0 or courses[first][since - 1] <= courses[second][since - 1]
    assert spoken(first) in sentence and f"{shown(best - last)} above" in sentence


def test_the_headline_says_who_is_level_and_who_still_climbs() -> None:
    equal = raced(fairness="step_length", names=("RLOO", GRPO))
    assert headline(equal).startswith("2 of 2 algorithms end level")
    short = raced(Settings(), names=("REINFORCE", GRPO), seeds=16, updates=30)
    climbing = {name for name, digest in short.digests.items()
                if digest.courses["reward"].middle[-1] - digest.courses["reward"].middle[-4] > 0.01}  # fmt: skip
    assert climbing
    assert all(spoken(name) in headline(short).split("Still climbing at the end: ")[1] for name in climbing)


def test_of_those_that_end_level_the_one_that_was_there_first_is_named() -> None:
    results = raced(Settings(), names=("PPO-clip", GRPO), seeds=16, updates=200)
    best = results.ranked()[0][1]
    past = {
        name: int(np.argmax(digest.courses["reward"].middle > 0.9 * best)) for name, digest in results.digests.items()
    }
    first = min(past, key=lambda name: past[name])
    assert len(set(past.values())) == 2
    assert headline(results).startswith(f"{spoken(first)} is first past reward {shown(0.9 * best)}")
    assert f"after {past[first]} updates" in headline(results)


def test_a_race_that_is_not_complete_has_no_headline() -> None:
    plan = RacePlan(base=base_of(ALIKE), seeds=4, updates=5)
    results = RaceResults(plan)
    for digest in list(plan.digests(Jobs(), never))[:-1]:
        results.take(digest)
        assert headline(results) == ""


def test_the_summary_names_the_best_first_and_what_became_non_finite() -> None:
    results = raced()
    best = max(results.lanes, key=lambda name: float(np.median(results.lanes[name].measures["reward"][-1])))
    told = words.summary(results)
    assert told.index(best) < min(told.index(name) for name in SIX if name != best)
    results.lanes["REINFORCE"].measures["reward"][-1] = np.nan
    assert "REINFORCE became non-finite" in words.summary(results)
    assert words.summary(RaceResults(results.plan)) == "No algorithm has come in yet."


def test_a_change_of_the_settings_is_named() -> None:
    then = RacePlan(base=base_of(ALIKE))
    now = RacePlan(base=base_of(ALIKE.replace({"optimizer.learning_rate": 1.0, "learner.group_size": 4})))
    assert words.of_change(then, now) == "Raced before a change of “Group size” and “Learning rate”; press Race."
