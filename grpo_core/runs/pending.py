"""Updates that wait in memory for the next commit of a run file, as rows of its tables."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from grpo_core.config import Settings
from grpo_core.record import Step
from grpo_core.runs import series
from grpo_core.runs.checks import note_checks
from grpo_core.runs.connection import RunConnection
from grpo_core.runs.layout import encoded
from grpo_core.runs.meta import raise_needs


class PendingUpdates:
    """Rows that are created when an update is appended and stored together in the next commit.

    Several updates with the same layout or settings share one row, which is stored with the first of them.

    Attributes:
        last: number of the last update that was added, whether or not it has been stored.
    """

    def __init__(
        self, *, last: int, layouts: Mapping[str, int], settings_id: int, settings: Settings, changes: int
    ) -> None:
        self.last = last
        self.changes = changes
        self._layouts = dict(layouts)
        self._settings_id, self._settings = settings_id, settings
        self._steps: list[tuple[int, int, int, int, bytes]] = []
        self._scalars: list[tuple[int, bytes]] = []
        self._new_layouts: list[tuple[int, str]] = []
        self._new_settings: list[tuple[int, str]] = []
        self._needs = set[str]()

    def __bool__(self) -> bool:
        return bool(self._steps)

    @property
    def bytes(self) -> int:
        """Size in bytes of the pending records and values."""
        return sum(len(row[-1]) for row in self._steps) + sum(len(data) for _, data in self._scalars)

    def add(self, step: Step, scalars: Mapping[str, float] | None) -> None:
        """Encode the next update. ``scalars`` are its metrics, if already computed.

        Raises:
            ValueError: it does not follow the last update.
        """
        if step.step != self.last + 1:
            raise ValueError(f"update {step.step} cannot follow update {self.last}")
        layout, record = encoded(step)
        row = series.scalars(step, scalars)
        crc = zlib.crc32(record)
        self._steps.append((step.step, self._layout_id(layout), self._settings_of(step), crc, record))
        self._scalars.append((step.step, row))
        self.last = step.step

    def store(self, sql: RunConnection) -> None:
        """Write all pending rows, within the caller's transaction."""
        sql.executemany("INSERT INTO layout(id, fields) VALUES (?, ?)", self._new_layouts)
        sql.executemany("INSERT OR REPLACE INTO settings(id, json) VALUES (?, ?)", self._new_settings)
        if self._needs:
            raise_needs(sql, *self._needs)
        if self._new_layouts or self._new_settings:
            note_checks(sql, "layout", "settings")
        sql.executemany("INSERT INTO step(step, layout, settings, crc, record) VALUES (?, ?, ?, ?, ?)", self._steps)
        series.append(sql, self._scalars)

    def clear(self) -> None:
        """Discard the rows after the transaction that stored them has succeeded."""
        for waiting in (self._new_layouts, self._new_settings, self._steps, self._scalars, self._needs):
            waiting.clear()

    def _layout_id(self, layout: str) -> int:
        number = self._layouts.get(layout)
        if number is None:
            number = self._layouts[layout] = max(self._layouts.values(), default=0) + 1
            self._new_layouts.append((number, layout))
        return number

    def _settings_of(self, step: Step) -> int:
        if step.settings is not self._settings and step.settings != self._settings:
            self._settings_id = step.step
            self.changes += 1
            self._new_settings.append((step.step, step.settings.stored()))
            self._needs.add(step.settings.needs)
        self._settings = step.settings
        return self._settings_id
