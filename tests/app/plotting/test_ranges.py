"""Axes that do not jump, ticks at round numbers, labels that do not overlap."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.plotting.axis import tick_text
from app.plotting.ranges import held_range, lane_range, lane_ticks, push_apart, ticks

finite = st.floats(-1e6, 1e6)


held_before = st.tuples(finite, finite).map(sorted).map(tuple).filter(lambda ends: ends[1] > ends[0])


@given(finite, finite, st.none() | held_before, st.booleans())
def test_a_held_range_holds_its_data(a: float, b: float, held: tuple[float, float] | None, tight: bool) -> None:
    low, high = sorted((a, b))
    bottom, top = held_range(low, high, held, tight=tight)
    room = 1e-6 * max(abs(low), abs(high), 1)
    assert bottom <= low + room
    assert top >= high - room
    assert top > bottom


def test_a_range_stays_while_the_data_fill_enough_of_it() -> None:
    held = held_range(0.0, 0.93, None)
    assert held == (0.0, 1.0)
    assert held_range(0.2, 0.8, held) == held
    assert held_range(0.0, 1.01, held)[1] > 1
    assert held_range(0.0, 0.1, held)[1] < 0.2


def test_a_range_without_data_is_kept_or_is_zero_to_one() -> None:
    nan = float("nan")
    assert held_range(nan, nan, (2.0, 3.0)) == (2.0, 3.0)
    assert held_range(nan, nan, None) == (0.0, 1.0)


@given(finite, st.floats(1e-3, 1e6), st.integers(2, 12))
def test_there_are_always_two_ticks_and_they_lie_inside(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    assert len(found) >= 2
    assert all(low - 1e-6 * span <= value <= low + span * (1 + 1e-6) for value in found)


def test_updates_have_whole_ticks() -> None:
    assert ticks(1, 3, 9, whole=True) == [1, 2, 3]
    assert ticks(1, 15, 2, whole=True) == [5, 10, 15]
    assert ticks(0.4, 1.2, 9, whole=True) == [1]


def test_ticks_have_no_more_digits_than_they_need() -> None:
    assert [tick_text(v, 5e-5) for v in (0.0, 5e-5, 1e-4, 1.5e-4)] == ["0", "5e−5", "1e−4", "1.5e−4"]
    assert tick_text(0.50105, 5e-5) == "0.50105", "no digit that tells ticks apart is lost"
    assert [tick_text(v, 0.25) for v in (0.0, 0.25, 0.5, 1.0)] == ["0", "0.25", "0.5", "1"]
    assert [tick_text(v, s) for v, s in ((-0.5, 0.5), (25_000, 25_000), (2e-5, 1e-5))] == ["−0.5", "25,000", "2e−5"]


@given(st.lists(st.floats(-50, 250), max_size=12), st.floats(4, 30))
def test_labels_do_not_overlap_and_stay_inside(wanted: list[float], size: float) -> None:
    found = push_apart(wanted, size, 0, 100)
    placed = sorted(y for y in found if y is not None)
    assert len(found) == len(wanted)
    assert all(b - a >= size - 1e-6 for a, b in itertools.pairwise(placed))
    assert not placed or (placed[0] >= size / 2 - 1e-6 and placed[-1] <= 100 - size / 2 + 1e-6)
    assert len(placed) == min(len(wanted), int(100 / size + 1e-9))


def test_labels_with_room_stay_where_they_are() -> None:
    assert push_apart([20.0, 60.0], 10, 0, 100) == [20.0, 60.0]
    assert push_apart([50.0, 52.0], 10, 0, 100) == [46.0, 56.0]


@given(st.floats(-1e6, 0), st.floats(0, 1e6), st.booleans())
def test_a_lane_holds_its_data_and_what_reaches_furthest_fills_two_thirds(
    low: float, high: float, symmetric: bool
) -> None:
    bottom, top = lane_range(low, high, None, symmetric=symmetric)
    far = max(-low, high)
    slack = max(1e-9 * far, 1e-12)
    assert bottom <= low + slack and top >= high - slack
    if far > 1e-9:
        assert far >= (2 / 3 - 1e-9) * (top if high == far else -bottom)
    assert not symmetric or bottom == -top


@given(st.floats(1e-6, 1e6), st.floats(0.41, 1.0))
def test_a_lane_keeps_its_range_while_the_data_fill_enough_of_it(reach: float, share: float) -> None:
    held = lane_range(0.0, reach, None)
    assert lane_range(0.0, share * held[1], held) == held
    assert lane_range(0.0, 1.01 * held[1], held)[1] > held[1]
    assert lane_range(0.0, 0.2 * held[1], held)[1] < held[1]
    assert lane_range(0.0, 0.0, held) == held


@given(st.floats(1e-6, 1e6), st.integers(2, 9), st.booleans())
def test_the_digits_of_a_lane_are_steps_of_one_two_or_five(reach: float, most: int, symmetric: bool) -> None:
    low, high = lane_range(0.0, reach, None, symmetric=symmetric)
    values = lane_ticks(low, high, max(most, 3) if symmetric else most)
    assert 2 <= len(values) <= max(most, 3)
    assert 0.0 in values
    step = values[1] - values[0]
    digit = f"{step:.6e}"[0:3]
    assert digit in ("1.0", "2.0", "5.0")
