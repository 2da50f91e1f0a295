"""A growing series that can be drawn at any zoom, using the minima and maxima of fixed buckets on several levels."""

from __future__ import annotations

import numpy as np

FACTOR = 16
"""Number of values or buckets of one level per bucket of the next. The levels take 2 / 15 of the raw series' memory."""


class Pyramid:
    """A growing float64 series with the minimum and the maximum of every bucket of 16, 256, 4096, ... values.

    The bounds of buckets are fixed multiples, so that old values look the same after new ones are added. NaN marks a
    missing value: it is ignored in minima and maxima, and a bucket that contains only NaN leaves a gap.
    """

    def __init__(self, values: np.ndarray | None = None) -> None:
        self._raw = _Growing()
        self._levels: list[tuple[_Growing, _Growing]] = []
        self._raised = 0
        self.version = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._raw.size

    @property
    def values(self) -> np.ndarray:
        """The full series, (n,), as a read-only view."""
        return self._raw.view

    @property
    def last(self) -> float:
        """The newest value, or NaN if there is none."""
        return float(self._raw.view[-1]) if self._raw.size else float("nan")

    @property
    def nbytes(self) -> int:
        """Bytes used by the series and all levels."""
        self._raise()
        return self._raw.view.nbytes + sum(a.view.nbytes + b.view.nbytes for a, b in self._levels)

    def extend(self, values: np.ndarray) -> None:
        """Add values (k,) at the end. Do not modify an array after adding it to an empty series."""
        values = np.asarray(values, dtype=np.float64)
        if not values.size:
            return
        self._raw.write(len(self), values)
        self.version += 1

    def overwrite(self, start: int, values: np.ndarray) -> None:
        """Replace the values from ``start`` onwards with ``values`` (k,), for example when they become known later."""
        whole = np.array(self.values)
        whole[start : start + len(values)] = values
        self._raw, self._levels, self._raised = _Growing(), [], 0
        self.extend(whole)

    def _raise(self) -> None:
        """Update the levels. This happens only when the series is drawn, since few of a run's series are."""
        if self._raised == len(self):
            return
        start, self._raised = self._raised, len(self)
        low = high = self._raw
        for level in range(64):
            if low.size <= FACTOR:
                return
            if level == len(self._levels):
                self._levels.append((_Growing(), _Growing()))
                start = 0
            start //= FACTOR
            lows, highs = self._levels[level]
            lows.write(start, _bucketed(np.fmin, low.view[start * FACTOR :], FACTOR))
            highs.write(start, _bucketed(np.fmax, high.view[start * FACTOR :], FACTOR))
            low, high = lows, highs

    def window(self, start: int, stop: int, pixels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the values in [start, stop) thinned for ``pixels`` columns: x and y, both (k,), k <= 2 * pixels + 4.

        If there are few enough values, they are returned unchanged. Otherwise each bucket, whose width is a power of
        two, contributes two points at its middle: its minimum and its maximum, in the order that continues the line.
        Buckets at the ends are complete and can therefore extend beyond [start, stop) by less than their width.
        """
        start, stop = max(start, 0), min(stop, len(self))
        if stop <= start:
            return np.empty(0), np.empty(0)
        pixels = max(pixels, 1)
        if stop - start <= 2 * pixels:
            return np.arange(start, stop, dtype=np.float64), self._raw.view[start:stop].copy()
        width = self.bucket(stop - start, pixels)
        first, end = start // width, -(-stop // width)
        low, high = self._extremes(first, end, width)
        middle = (np.arange(first, end) + 0.5) * width - 0.5
        middle[-1] = min(middle[-1], len(self) - 1)
        return np.repeat(middle, 2), _zigzag(low, high)

    @staticmethod
    def bucket(span: int, pixels: int) -> int:
        """Return the smallest power of two at which at most ``pixels`` buckets of that width cover ``span`` values."""
        width = 1
        while width * pixels < span:
            width *= 2
        return width

    def _extremes(self, first: int, end: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the minima and maxima of the buckets [first, end) of ``width`` values.

        They are computed from the coarsest level whose bucket width divides ``width``.
        """
        self._raise()
        low = high = self._raw
        each = width
        for lows, highs in self._levels:
            if each % FACTOR:
                break
            low, high, each = lows, highs, each // FACTOR
        part = slice(first * each, end * each)
        return _bucketed(np.fmin, low.view[part], each), _bucketed(np.fmax, high.view[part], each)


class _Growing:
    """A float64 array that grows by doubling its capacity. Unused memory pages are never touched."""

    def __init__(self) -> None:
        self._space = np.empty(0)
        self.size = 0

    @property
    def view(self) -> np.ndarray:
        view = self._space[: self.size]
        view.flags.writeable = False
        return view

    def write(self, start: int, values: np.ndarray) -> None:
        """Replace everything from ``start`` onwards with ``values``. The first array is kept rather than copied."""
        self.size = start + len(values)
        if not len(self._space):
            self._space = values
            return
        if self.size > len(self._space):
            space = np.empty(max(self.size, 2 * len(self._space), 64))
            space[:start] = self._space[:start]
            self._space = space
        self._space[start : self.size] = values


def _bucketed(reduce: np.ufunc, values: np.ndarray, width: int) -> np.ndarray:
    """Apply ``reduce`` to groups of ``width`` values, a power of two. The last group can be shorter."""
    if width == 1:
        return values.copy()
    whole = len(values) // width * width
    full = values[:whole]
    # by repeated halving, which is four times as fast as reducing along a short axis
    for _ in range(width.bit_length() - 1):
        full = reduce(full[0::2], full[1::2])
    return np.concatenate((full, reduce.reduce(values[whole:], keepdims=True))) if whole < len(values) else full


def _zigzag(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return both extremes of every bucket, (2k,), the lower one first if the line is rising."""
    with np.errstate(invalid="ignore"):
        middle = low + high
    pairs = np.array((low, high)).T
    falling = ~(middle[1:] >= middle[:-1])
    pairs[1:][falling] = pairs[1:][falling, ::-1]
    return pairs.reshape(-1)
