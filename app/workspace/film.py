"""The film of an update as a schedule: which stage is shown at each second, and how much of it has been played.

A clock moves the cursor through it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.clock import Timer
from app.workspace.cursor import Cursor, Stage
from app.workspace.workspace import Workspace

SECONDS = {Stage.SAMPLE: 0.4, Stage.SCORE: 0.35, Stage.NORMALIZE: 0.35, Stage.UPDATE: 0.5}
"""Duration of each stage in seconds. The passes of the update share its time."""
BEATS = (Stage.SAMPLE, Stage.NORMALIZE, Stage.UPDATE)
"""The stages played if an update gets less than :data:`WHOLE` seconds."""
WHOLE = 1.0
"""Minimum time per update in seconds at which all stages are played. Shorter films play only :data:`BEATS`."""
SHORT = 1.2
"""Minimum duration in seconds of an update's film in which the heights of the lanes change."""
LONGEST = 7.0
"""Maximum duration in seconds of an update's film."""
PLAYED = 0.9
"""Share of an update's time in which its film plays. After that, the picture stays still until the next update."""
SLOWEST = LONGEST / PLAYED
"""Minimum time per update in seconds at which its film has the maximum duration."""


@dataclass(frozen=True, kw_only=True)
class Film:
    """A sequence of stages, and of passes of the last stage.

    Attributes:
        parts: the end of each stage or pass, and its duration in seconds.
        whole: whether the film covers the entire update, which is fully revealed at its end, rather than one stage.
    """

    parts: tuple[tuple[Cursor, float], ...]
    whole: bool

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.parts)

    @property
    def quick(self) -> bool:
        """Whether several stages pass faster than a viewer can follow."""
        return len(self.parts) > 1 and self.seconds < SHORT

    def at(self, seconds: float) -> Cursor:
        """Return the cursor at ``seconds`` into the film, or at its end if the film is shorter."""
        for end, duration in self.parts:
            if seconds < duration:
                return replace(end, progress=max(seconds / duration, 0.0))
            seconds -= duration
        return self.parts[-1][0]


def update_film(step: int, passes: int, interval: float) -> Film:
    """Return the film of an entire update that fits into ``interval`` seconds.

    A short film has only three of the stages. An infinite interval gives the usual length, the sum of :data:`SECONDS`.
    """
    stages = tuple(Stage) if interval >= WHOLE else BEATS
    parts = [part for stage in stages for part in _parts(step, stage, range(passes))]
    whole = sum(seconds for _, seconds in parts)
    speed = min(PLAYED * interval, LONGEST) / whole if math.isfinite(interval) else 1.0
    return Film(parts=tuple((end, speed * seconds) for end, seconds in parts), whole=True)


def stage_film(cursor: Cursor, passes: int) -> Film:
    """Return the film of the stage or pass at ``cursor``."""
    shown = range(cursor.pass_of(passes), cursor.pass_of(passes) + 1)
    return Film(parts=tuple(_parts(cursor.step, cursor.stage, shown)), whole=False)


def _parts(step: int, stage: Stage, passes: range) -> list[tuple[Cursor, float]]:
    passed = passes if stage is Stage.UPDATE else (-1,)
    return [(Cursor(step=step, stage=stage, passed=n), SECONDS[stage] / len(passed)) for n in passed]


TICK_MS = 33
"""Milliseconds between two frames of a film, for 30 frames per second."""


class FilmClock(QObject):
    """A clock that plays a film by moving the cursor.

    It ends when anything else moves the cursor.

    Attributes:
        film: the film being played or paused; None if there is none.

    Signals:
        changed: emitted when the film starts, pauses or ends.
        finished: emitted when a film has been played to its end.
    """

    changed = Signal()
    finished = Signal()

    def __init__(self, workspace: Workspace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.film: Film | None = None
        self._played = self._last = 0.0
        self._shown = Cursor()
        self._ticks = Timer(self, self._on_tick, TICK_MS, repeats=True)
        self._ticks.setTimerType(Qt.TimerType.PreciseTimer)

    def play(self, film: Film) -> None:
        """Play ``film`` from the beginning. If it covers an entire update, the update is fully revealed at the end."""
        self.pause()
        self.film, self._played = film, 0.0
        self._show()
        self.resume()

    def resume(self) -> None:
        if self.film is not None and not self.playing:
            self._last = self._ticks.now()
            self._ticks.start()
            self.changed.emit()

    def pause(self) -> None:
        if self.playing:
            self._ticks.stop()
            self.changed.emit()

    def end(self) -> None:
        self.pause()
        self.film = None

    @property
    def playing(self) -> bool:
        return self._ticks.isActive()

    @property
    def whole(self) -> bool:
        """Whether the film of an entire update, rather than of one stage, is playing."""
        return self.playing and self.film is not None and self.film.whole

    @property
    def paused(self) -> bool:
        """Whether a film is paused and the cursor is still where the film left it."""
        return self.film is not None and not self.playing and self._workspace.cursor == self._shown

    @Slot()
    def _on_tick(self) -> None:
        """Show the film's current position. If anything else has moved the cursor, the film ends."""
        if self._workspace.cursor != self._shown:
            self.end()
            return
        assert self.film is not None
        now = self._ticks.now()
        self._played, self._last = self._played + now - self._last, now
        if self._played < self.film.seconds:
            self._show()
            return
        end = Cursor() if self.film.whole else self.film.at(math.inf)
        self._workspace.show_stage(end.stage, end.passed)
        self.end()
        self.finished.emit()

    def _show(self) -> None:
        assert self.film is not None
        here = self.film.at(self._played)
        if here.step != self._workspace.cursor.step:
            self.end()
            return
        self._workspace.show_stage(here.stage, here.passed, here.progress, quick=self.film.quick)
        self._shown = self._workspace.cursor
