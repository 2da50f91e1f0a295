"""The pyramid draws the same as brute force, however the series was delivered."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.plotting.pyramid import Pyramid

values = st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), max_size=700)


@settings(max_examples=150, deadline=None)
@given(values, st.lists(st.integers(0, 700), max_size=6), st.integers(-5, 700), st.integers(0, 720), st.integers(1, 40))
def test_each_bucket_shows_its_minimum_and_its_maximum(
    numbers: list[float], cuts: list[int], start: int, stop: int, pixels: int
) -> None:
    series = np.array(numbers)
    pyramid = Pyramid()
    for part in np.split(series, sorted(cuts)):
        pyramid.extend(part)
    np.testing.assert_array_equal(pyramid.values, series)
    x, y = pyramid.window(start, stop, pixels)
    first, last = max(start, 0), min(stop, len(series))
    if last <= first:
        assert not x.size
        return
    if last - first <= 2 * pixels:
        np.testing.assert_array_equal(x, np.arange(first, last))
        np.testing.assert_array_equal(y, series[first:last])
        return
    width = Pyramid.bucket(last - first, pixels)
    buckets = [series[at : at + width] for at in range(first // width * width, last, width)]
    expected = [sorted((np.fmin.reduce(b), np.fmax.reduce(b))) for b in buckets]
    np.testing.assert_array_equal(np.sort(y.reshape(-1, 2), axis=1), expected)
    assert len(x) == len(y) <= 2 * pixels + 4
    assert np.all(np.diff(x) >= 0)
    assert x[0] >= 0
    assert x[-1] <= len(series) - 1


def test_old_places_look_the_same_after_new_ones_have_come() -> None:
    rng = np.random.default_rng(0)
    pyramid = Pyramid(rng.normal(size=5000))
    before = pyramid.window(0, 4096, 256)[1]
    pyramid.extend(rng.normal(size=5000))
    np.testing.assert_array_equal(pyramid.window(0, 4096, 256)[1][: len(before)], before)


def test_a_rising_line_rises_within_its_buckets_too() -> None:
    y = Pyramid(np.arange(10_000.0)).window(0, 10_000, 100)[1]
    assert np.all(np.diff(y) > 0)


def test_a_million_updates_of_eleven_series_fit_beside_their_raw_values() -> None:
    pyramid = Pyramid(np.zeros(1_000_000))
    assert pyramid.nbytes * 11 < 100 * 2**20
    assert len(pyramid.window(0, 1_000_000, 1000)[0]) <= 2004
