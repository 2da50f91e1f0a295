"""Helpers shared by checks and choosers. What headlines say by them is read by ``test_second_headlines.py``."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.claims.captions import MOVED, most_moved
from grpo_core.claims.comparison import CLIMBING, FINISH, Sooner, Trained, led_since
from grpo_core.claims.numbers import written
from tests.core.claims.drawn import said


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.long)])
def test_the_line_is_on_the_way_of_the_lowest_of_those_that_rise(count: int) -> None:
    chance = np.random.default_rng(5)
    every = [data for _ in range(count) for data, _ in said(chance) if isinstance(data, Trained)]
    for data in every:
        known = [np.where(np.isfinite(course), course, data.floor) for course in data.courses.values()]
        ends = [(float(course[-1].mean()), float(course[0].mean())) for course in known]
        risen = [(last, first) for last, first in ends if last - first > CLIMBING]
        if (found := Sooner.found_in(data)) is not None:
            last, first = min(risen)
            assert found.line == pytest.approx(first + FINISH * (last - first))


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


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((0.04, 0.01, 0.07), ("0.040", "0.010", "0.070")),
        ((1.1021, 1.1024), ("1.1021", "1.1024")),
        ((0.0003,), ("0.0003",)),
        ((-0.02, 0.0), ("\u22120.020", "0.000")),
        ((float("inf"), 1.0), ("∞", "1.000")),
        ((1.0, 1.0 + 1e-12), ("1.000000000", "1.000000000")),
    ],
)
def test_numbers_have_as_many_decimals_as_it_takes_to_tell_them_apart(
    values: tuple[float, ...], texts: tuple[str, ...]
) -> None:
    assert written(*values) == texts
