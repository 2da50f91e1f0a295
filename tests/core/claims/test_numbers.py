"""Numbers in claims: different numbers are never written alike."""

from __future__ import annotations

import pytest

from grpo_core.claims.numbers import written


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
