"""Numbers are written in the same way in every locale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.plotting.numbers import (
    ABSENT,
    Missing,
    brief,
    full,
    hover,
    in_bytes,
    plain,
    residue,
    residues,
    share,
    shown,
    signed,
    summed,
)
from grpo_core.evaluated_step import total


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (-0.0, "0.000"),
        (2.302585, "2.303"),
        (-1.2497, "−1.250"),
        (0.00042, "4.20e−4"),
        (-3e-9, "−3.00e−9"),
        (12_345_678.9, "1.23e7"),
        (13, "13"),
        (102_208, "102,208"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (None, "—"),
        (math.nan, "—"),
        (Missing("beta is 0"), "—"),
        (True, "yes"),
        ("clip", "clip"),
    ],
)
def test_a_card_shows(value: object, text: str) -> None:
    assert shown(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_full_precision_reads_back_as_the_same_float(value: float) -> None:
    assert float(plain(value)) == value
    assert float(full(value).replace("−", "-")) == value


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_a_number_that_is_not_zero_never_reads_as_zero(value: float) -> None:
    assert any(digit in shown(value).split("e")[0] for digit in "123456789")
    assert "-" not in shown(value)


def test_hover_says_why_a_number_is_not_there() -> None:
    assert hover(Missing("beta is 0")) == "not computed: beta is 0"
    assert hover(None) == "not computed"
    assert hover(0.25, "nats") == "0.25 nats"
    assert plain(None) == ""


def test_a_push_carries_its_sign() -> None:
    assert (signed(0.097), signed(-0.026), signed(0.0)) == ("+0.097", "−0.026", "0.000")


def test_a_share_that_is_not_all_never_reads_as_all() -> None:
    shares = [share(value) for value in (0.25, 0.999, 0.001, 1.0, None)]
    assert shares == ["25%", "> 99%", "< 1%", "100%", "—"]


def test_sizes_of_files_are_told_in_the_unit_that_suits() -> None:
    assert [in_bytes(size) for size in (0, 1_400, 999_400, 1_250_000, 2_050_000_000)] == [
        "0 kB",
        "1 kB",
        "999 kB",
        "1.2 MB",
        "2.05 GB",
    ]


@pytest.mark.parametrize(("value", "text"), [(3.5e-18, "≈ 0"), (-1.4e-17, "≈ 0"), (0.0, "0.000"), (2e-9, "2.00e−9")])
def test_a_sum_says_that_rounding_has_left_something_of_a_zero(value: float, text: str) -> None:
    assert summed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1.54e-4, "−2e−4"), (9.7e-5, "1e−4"), (0.0154, "0.015"), (None, "—"), (13, "13"), ("seven", "seven")],
)
def test_a_narrow_cell_keeps_one_digit_of_a_number_with_an_exponent(value: object, text: str) -> None:
    assert brief(value) == text


@pytest.mark.parametrize(
    ("left", "kind", "expected"),
    [(1e-10, np.float64, 0.0), (1e-7, np.float64, 1e-7), (1e-7, np.float32, 0.0), (1e-5, np.float32, 1e-5)],
)
def test_a_sum_is_zero_where_only_the_rounding_of_its_numbers_is_left(left: float, kind: type, expected: float) -> None:
    added: np.ndarray = np.array([1.0, -1.0, left], dtype=kind)
    assert total(added) == pytest.approx(expected, rel=1e-6)
    assert total(added.astype(np.float64)) == pytest.approx(expected, rel=1e-6), "wherever they are held"


def test_sums_of_no_numbers_and_of_huge_ones() -> None:
    assert total(np.empty(0)) == 0.0
    assert total(np.array([1e300, -1e290])) == 1e300 - 1e290


def test_what_rounding_leaves_of_a_difference_is_nearly_zero_and_a_small_number_stays_one() -> None:
    left = 0.1 + 0.2 - 0.3
    assert [shown(value) for value in residues([1.5, left, None, 1e-8])] == ["1.500", "≈ 0", ABSENT, "1.00e−8"]
    assert shown(residue(1e-11, scale=1e-10)) == "1.00e−11", "a true 1e-11 among numbers of its size"
    assert plain(residue(left, scale=1.0)) == repr(left), "on copy it is there in full"
    assert signed(residue(left, scale=1.0)) == "≈ 0"
