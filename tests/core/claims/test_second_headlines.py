"""Headlines of random races, sweeps and repeats, read by a second check of their words."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from grpo_core.claims.comparison import Sooner, Trained
from grpo_core.claims.sweep import Moves
from grpo_core.experiments.outcome import found, outcome
from tests.core.claims.drawn import KINDS, said
from tests.core.claims.second_headlines import SAID, read


@pytest.mark.parametrize("count", [40, pytest.param(4000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_no_headline_is_contradicted_by_the_curves(count: int) -> None:
    chance, seen, wrong, unread = np.random.default_rng(23), Counter[str](), [], []
    while seen["headlines"] < count:
        for data, claims in said(chance):
            text = "; ".join(claim.words() for claim in claims)
            found = list(read(text, data))
            seen["headlines"] += 1
            seen.update(type(claim).__name__ for claim in claims)
            wrong += [(words, text) for words, holds in found if not holds]
            every = [claim.words() for claim in claims]
            unread += [words for words in every if not any(part in words or words in part for part, _ in found)]
    assert not wrong, (len(wrong), seen, wrong[:4])
    assert not unread and len(SAID) > 30, unread[:4]
    assert {kind.__name__ for kind in KINDS} - {*seen} <= {"Lead", "Since"}, seen


def headline(ends: dict[str, list[float]], ways: dict[str, list[float]] | None = None) -> tuple[str, Trained]:
    """Return what is said of runs that rise to these ends, and their arrays. ``ways`` gives their middle instead."""
    courses = {name: np.array([[0.1] * len(end), (ways or ends)[name], end]) for name, end in ends.items()}
    data = Trained(courses=courses, stuck={name: np.zeros(len(own), bool) for name, own in ends.items()}, floor=0.0)
    return "; ".join(claim.words() for claim in (*outcome(data), *found(data, Sooner))), data


@pytest.mark.parametrize(
    ("seeds", "others", "said_of_it"),
    [
        (4, [0.9, 0.2], "Fewer than 8 seeds are too few to tell who leads; highest is A, at 0.900"),  # two equal runs
        (8, [0.89996, 0.89992], "A, B and C end level at 0.900"),  # not 0.90000, which only one of them has
        (8, [0.1, 0.1], "A leads B by 0.800"),
    ],
)
def test_a_headline_tells_too_few_seeds_from_too_little_difference(
    seeds: int, others: list[float], said_of_it: str
) -> None:
    wobble = [0.0] * seeds if seeds < 8 or others[0] < 0.2 else [0.0004 * (-1) ** n for n in range(seeds)]
    ends = {name: [end + one for one in each] for name, end, each in (
        ("A", 0.9, [0.0] * seeds), ("B", others[0], wobble), ("C", others[1], wobble))}  # fmt: skip # one row each
    text, data = headline(ends)
    assert said_of_it in text and all(holds for _, holds in read(text, data)), text


def test_seeds_that_never_pass_a_line_are_not_too_few_seeds() -> None:
    """With eight seeds, half of which never pass, the interval of the median is infinite at both ends."""
    one, other = [0.9] * 5 + [0.1] * 3, [0.1] * 3 + [0.9] * 5
    text, data = headline({"A": one, "B": other})
    assert "is past" in text and "Too few seeds" not in text and "Too close to tell" in text, text
    assert all(holds for _, holds in read(text, data)), text


def test_a_median_stays_only_where_it_is_the_same_at_both_ends() -> None:
    facts: dict[str, Any] = {"low": 0.0, "high": 0.0, "least": 1e-5, "most": 2e-5, "seeds": 64}
    assert "too close to tell" in Moves(first=1e-5, last=2e-5, **facts).words()
    assert "stays" in Moves(first=1e-5, last=1e-5, **facts | {"most": 1e-5}).words()
