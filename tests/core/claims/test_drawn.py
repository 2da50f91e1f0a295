"""Claims on random runs: each is confirmed by the raw arrays, and a claim that says anything else is refused."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from tests.core.claims.drawn import KINDS, mutants, said

QUICK, LONG = 8, 300
"""Number of cases of each kind."""
MOST = 4000
"""Maximum number of samples drawn to reach that number of cases."""


@pytest.mark.parametrize(
    "cases", [QUICK, pytest.param(LONG, marks=[pytest.mark.long, pytest.mark.timeout(1800)])], ids=["quick", "long"]
)
def test_every_claim_is_borne_out_and_every_other_one_refused(cases: int) -> None:
    chance, seen, refused = np.random.default_rng(7), Counter[str](), 0
    for _ in range(MOST):
        for data, claims in said(chance):
            for claim in claims:
                kind = type(claim).__name__
                seen[kind] += 1
                assert claim.check(data), claim
                assert_plain(claim.words())
                if seen[kind] > cases:
                    continue
                for other in mutants(claim, data, chance):
                    assert not other.check(data), (claim, other)
                    refused += 1
        if all(seen[kind.__name__] >= cases for kind in KINDS):
            break
    assert {kind.__name__ for kind in KINDS if seen[kind.__name__] < cases} == set(), seen
    print(f"{sum(seen.values()):,} claims borne out, {refused:,} others refused: {dict(seen)}")


def assert_plain(words: str) -> None:
    """Assert that the words have no unfilled field, and describe no rise from a number to the same number."""
    assert words and "nan" not in words and "{" not in words
    for first, last in re.findall(r"(?:rises|falls) from (\S+) to (\S+)", words):
        assert first != last, words
