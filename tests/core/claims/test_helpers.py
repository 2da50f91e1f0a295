"""Helpers shared by checks and choosers, recomputed by loops over seeds and updates."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest

from grpo_core.claims.captions import MOVED, most_moved
from grpo_core.claims.comparison import CLIMBING, FINISH, Sooner, Trained, climbed, led_since
from grpo_core.claims.repeats import HALF, OnWrong, Repeated
from grpo_core.claims.sweep import Lowest, Moves, Smoothest, StillClimbing, Swept
from tests.core.claims.drawn import said

CASES = [6, pytest.param(100, marks=pytest.mark.long)]


def seeds_of(data: Trained, name: str) -> list[list[float]]:
    """Return the curve of each seed. A value that is not finite counts as the floor."""
    return [[float(v) if math.isfinite(v) else data.floor for v in seed] for seed in data.courses[name].T]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


@pytest.mark.parametrize("count", CASES)
def test_the_numbers_of_a_race_or_sweep_are_those_of_a_loop_over_its_seeds(count: int) -> None:
    chance = np.random.default_rng(5)
    for _ in range(count):
        for data, _ in said(chance):
            if isinstance(data, Trained):
                assert_trained(data)
            if isinstance(data, Swept):
                assert_swept(data)
            if isinstance(data, Repeated):
                assert_repeated(data)


def assert_trained(data: Trained) -> None:
    last = {name: mean([seed[-1] for seed in seeds_of(data, name)]) for name in data.courses}
    ranked = data.ranked()
    assert dict(ranked) == pytest.approx(last)
    assert all(last[a] >= last[b] - 1e-12 for (a, _), (b, _) in itertools.pairwise(ranked))
    for name, rise in climbed(data).items():
        courses = seeds_of(data, name)
        back = max(round((len(courses[0]) - 1) / 10), 1)
        assert rise.by == pytest.approx(mean([seed[-1] - seed[-1 - back] for seed in courses]), abs=1e-9)
    if len(data.courses) > 1 and data.equal_updates:
        for name in data.courses:
            assert led_since(data, name) == since_of(data, name)
    assert_first(data)


def since_of(data: Trained, leader: str) -> int | None:
    """Return the first update after which the leader's mean stays above every other mean."""
    means = {name: [mean(list(at)) for at in zip(*seeds_of(data, name), strict=True)] for name in data.courses}
    since = None
    for update in range(len(means[leader]) - 1, -1, -1):
        if any(means[leader][update] - own[update] <= 1e-9 for name, own in means.items() if name != leader):
            break
        since = update
    return since


def assert_first(data: Trained) -> None:
    found = Sooner.found_in(data)
    if found is None:
        return
    courses = [[mean(list(at)) for at in zip(*seeds_of(data, name), strict=True)] for name in data.courses]
    risen = [course for course in courses if course[-1] - course[0] > CLIMBING]
    lines = [course[0] + FINISH * (course[-1] - course[0]) for course in risen]
    lowest = min(course[-1] for course in risen)
    assert any(found.line == pytest.approx(y) for y, course in zip(lines, risen, strict=True) if course[-1] == lowest)
    middle = {}
    for name in data.courses:
        arrived = sorted(next((u for u, v in enumerate(s) if v > found.line), math.inf) for s in seeds_of(data, name))
        middle[name] = arrived[(len(arrived) - 1) // 2]
    assert middle[found.names[0]] == found.updates == min(middle.values())


def assert_swept(data: Swept) -> None:
    last = {name: mean([seed[-1] for seed in seeds_of(data, name)]) for name in data.courses}
    low, kl = Lowest.found_in(data), Moves.found_in(data)
    assert low.least == pytest.approx(min(last.values())) and last[low.names[0]] == pytest.approx(low.least)
    ends = [[float(v) if math.isfinite(v) else math.inf for v in data.kl[[*data.kl][end]][-1]] for end in (0, -1)]
    assert (kl.first, kl.last) == pytest.approx(tuple(statistics.median(end) for end in ends))
    fallen = {
        name: mean([math.fsum(max(a - b, 0.0) for a, b in itertools.pairwise(s)) for s in seeds_of(data, name)])
        for name in data.kl
    }
    found, still = Smoothest.found_in(data), StillClimbing.found_in(data)
    if found is not None:
        assert (found.least, found.most) == pytest.approx((min(fallen.values()), max(fallen.values())))
        assert (fallen[found.best], fallen[found.worst]) == pytest.approx((found.least, found.most))
    for name in () if still is None else still.names:
        seeds = seeds_of(data, name)
        back = max(round((len(seeds[0]) - 1) / 10), 1)
        assert mean([s[-1] - s[-1 - back] for s in seeds]) > 0.01


def assert_repeated(data: Repeated) -> None:
    for place, first in enumerate(data.passed):
        assert first == next((u + 1 for u, v in enumerate(data.max_prob[:, place]) if v > HALF), math.inf)
    found = OnWrong.found_in(data)
    if data.rewards is None:
        assert found is None
        return
    ended = [
        any(pay[c][a] < max(pay[c]) for c, a in enumerate(chosen))
        for pay in [data.rewards.tolist()]
        for chosen in data.likeliest.tolist()
    ]
    assert found is not None and found.wrong == sum(ended)


def test_those_that_have_moved_most_are_found_one_by_one() -> None:
    chance = np.random.default_rng(3)
    for _ in range(200):
        change = chance.normal(size=6) * chance.choice([1e-4, 1e-3, 0.1])
        left = dict(enumerate(change.tolist()))
        named: list[int] = []
        while len(named) < 3 and left and max(left.values()) >= MOVED:
            named.append(max(left, key=lambda place: left[place]))
            del left[named[-1]]
        assert most_moved(change) == tuple(named)


def test_nobody_is_ahead_by_what_rounding_has_left() -> None:
    courses = {"A": np.full((4, 8), 0.5 + 1e-12), "B": np.full((4, 8), 0.5)}
    data = Trained(courses=courses, stuck={name: np.zeros(8, bool) for name in courses}, floor=0.0)
    assert led_since(data, "A") is None and led_since(data, "B") is None


def test_no_run_is_called_first_whose_seeds_are_mostly_later() -> None:
    """In 14 of 17 seeds "two" is one update earlier, and in the others so late that the median of "one" is earlier."""
    one = np.arange(1, 18)
    two = np.where(one > 3, one - 1, 30)
    updates = np.arange(41)[:, None]
    courses = {name: (updates >= arrived).astype(float) for name, arrived in (("one", one), ("two", two))}
    assert np.median(one) < np.median(two)
    assert Sooner.found_in(Trained(courses=courses, stuck={}, floor=0.0)) is None
