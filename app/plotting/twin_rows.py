"""The rows of a plot's table, created on demand, so that a million updates cost nothing until they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from app.plotting.pyramid import Pyramid


class SeriesRows(Sequence[Sequence[object]]):
    """One row per position: x or its displayed number, then the value of each series, or None if it has none there.

    The length is fixed when the object is created, so that a table does not change while it is displayed.
    """

    def __init__(
        self,
        series: Sequence[tuple[Pyramid, float]],
        *,
        whole: bool = True,
        number_at: Callable[[float], float] | None = None,
    ) -> None:
        self._series = [(pyramid.values, first) for pyramid, first in series]
        self._whole = whole
        self._number_at = number_at or float
        filled = [(first, first + len(values)) for values, first in self._series if len(values)]
        self._first = min((a for a, _ in filled), default=0.0)
        self._size = round(max((b for _, b in filled), default=self._first) - self._first)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, n: int) -> Sequence[object]: ...
    @overload
    def __getitem__(self, n: slice) -> Sequence[Sequence[object]]: ...
    def __getitem__(self, n: int | slice) -> Sequence[object] | Sequence[Sequence[object]]:
        if isinstance(n, slice):
            return [self[i] for i in range(*n.indices(self._size))]
        if not -self._size <= n < self._size:
            raise IndexError(n)
        x = self._first + n % self._size
        row: list[object] = [int(self._number_at(x)) if self._whole else x]
        for values, first in self._series:
            place = round(x - first)
            value = float(values[place]) if 0 <= place < len(values) else None
            row.append(None if value is None or value != value else value)
        return row
