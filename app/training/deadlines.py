"""The phases of a run's process, the deadlines by which it must report, and the messages when it does not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum

from grpo_core.child.process import PATIENCE
from grpo_core.host.commands import Command, Pause, Shutdown
from grpo_core.text import tr

STARTING, LOADING, LOADING_MODEL = 60.0, 60.0, 600.0
"""Seconds allowed for starting a process, for loading torch, and for reading a model from a folder: several GB,
possibly from a slow disk."""
QUIET = 20.0
"""Seconds allowed for acknowledging a pause. The update in progress may take longer."""
STARTED = 0.5
"""Seconds allowed for a process that is still starting or loading to end when the program quits."""


class Phase(Enum):
    """Phases of a run's process.

    Attributes:
        HERE: there is no process; runs are computed in the worker's thread until one needs a process.
        ABSENT: there is no process.
        STARTING: the process has been started but has not reported yet.
        LISTENING: the process accepts commands.
        LOADING: the process is loading torch and cannot react.
        LOADING_MODEL: the process is reading a model from a folder and cannot react.
        ENDING: the process has received the command to shut down and is closing its files; another can follow it.
        ENDED: the shutdown is complete.
        UNAVAILABLE: no process can be started; runs are computed in the worker's thread.
    """

    HERE = "here"
    ABSENT = "absent"
    STARTING = "starting"
    LISTENING = "listening"
    LOADING = "loading"
    LOADING_MODEL = "loading a model"
    ENDING = "ending"
    ENDED = "ended"
    UNAVAILABLE = "unavailable"


NEXT: Mapping[Phase, tuple[Phase, ...]] = {
    Phase.HERE: (Phase.STARTING, Phase.ENDED, Phase.UNAVAILABLE),
    Phase.ABSENT: (Phase.STARTING, Phase.ENDED, Phase.UNAVAILABLE),
    Phase.STARTING: (Phase.LISTENING, Phase.ABSENT),
    Phase.LISTENING: (Phase.LOADING, Phase.LOADING_MODEL, Phase.ENDING, Phase.ABSENT),
    Phase.LOADING: (Phase.LISTENING, Phase.ABSENT),
    Phase.LOADING_MODEL: (Phase.LISTENING, Phase.ABSENT),
    Phase.ENDING: (Phase.ENDED, Phase.ABSENT),
    Phase.ENDED: (),
    Phase.UNAVAILABLE: (Phase.ENDED,),
}
"""The phases that can follow each phase."""


class Deadlines:
    """The phase of a run's process, and the time by which the process must report.

    Attributes:
        phase: the phase; only :meth:`enter` changes it.
        loading: name of what is being loaded, torch or a model from a folder; empty if nothing is.
    """

    def __init__(self, phase: Phase = Phase.ABSENT) -> None:
        self.phase = phase
        self.loading = ""
        self._since = 0.0  # when the phase began
        self._due: float | None = None
        self._given = 0.0  # the seconds allowed, which end at _due
        self._warn_at: float | None = None  # when a message is due because a pause waits
        self._pausing = False  # _due is that of a pause, for which any report will do
        self._leaving = False  # it was asked to end

    def enter(self, phase: Phase, *, name: str = "", urgent: bool = False) -> None:
        """Enter ``phase``.

        A model from a folder may be malicious and never finish loading, so urgent commands do not wait for it to load.

        Args:
            urgent: whether an urgent command is waiting for the process.

        Raises:
            ValueError: this phase cannot follow the current one.
        """
        if phase not in NEXT[self.phase]:
            raise ValueError(f"a process cannot be {phase} after it was {self.phase}")
        self.phase, self.loading, self._since = phase, name, time.monotonic()
        self.expect(urgent and phase is Phase.LISTENING)
        match phase:
            case Phase.LISTENING:
                pass
            case Phase.LOADING | Phase.LOADING_MODEL if self._leaving:
                self._give(STARTED)
            case Phase.LOADING:
                self._give(LOADING)
            case Phase.LOADING_MODEL:
                self._give(PATIENCE if urgent else LOADING_MODEL)
            case Phase.STARTING:
                self._give(STARTING)
            case _:
                self._leaving = False

    def rest(self) -> float | None:
        """Return the seconds until the process is late, or None if nothing is expected of it."""
        moments = [moment for moment in (self._due, self._warn_at) if moment is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def sent(self, command: Command) -> None:
        now, waits = time.monotonic(), self.phase in (Phase.STARTING, Phase.LOADING)
        if command.urgent and not waits and (self._due is None or self._due > now + PATIENCE):
            self.expect(urgent=True)
        elif isinstance(command, Pause) and self.loading:
            self._warn_at = now
        elif isinstance(command, Pause) and self._due is None:
            self._give(QUIET)
            self._warn_at, self._pausing = now + PATIENCE, True
        if isinstance(command, Shutdown):
            self._leaving = True
            if self.phase is not Phase.LISTENING:  # it has nothing to lose
                self._give(STARTED)

    def heard(self) -> None:
        if self._pausing:
            self.expect(urgent=False)

    def expect(self, urgent: bool) -> None:
        """Expect only the acknowledgement of an urgent command if ``urgent``, otherwise nothing."""
        self._due, self._warn_at, self._pausing = None, None, False
        if urgent:
            self._give(PATIENCE)

    def missed(self) -> float | None:
        """Return the time limit in seconds that the process has exceeded, so that it must be killed, or None."""
        return self._given if self._due is not None and time.monotonic() >= self._due else None

    def warning(self) -> str:
        """Return a warning if a pause is waiting for something to load, or if the process has been silent for a long
        time since a pause. Return an empty string otherwise. Each warning is returned only once.

        A pause lets the update in progress finish, but the process acknowledges it at once.
        """
        if self._warn_at is None or time.monotonic() < self._warn_at:
            return ""
        self._warn_at = None
        if self.loading:
            return tr(
                "“{name}” has been loading for {seconds:.0f} seconds (at most {most:.0f} are allowed). The run pauses "
                "once it is loaded. To stop loading, start another run or close this one."
            ).format(
                name=self.loading,
                seconds=time.monotonic() - self._since,
                most=LOADING_MODEL if self.phase is Phase.LOADING_MODEL else LOADING,
            )
        return tr(
            "The training process has not answered for {seconds:.0f} seconds. If it does not answer within {more:.0f} "
            "more, it is ended. Every finished update is kept."
        ).format(seconds=PATIENCE, more=QUIET - PATIENCE)

    def _give(self, seconds: float) -> None:
        self._due, self._given = time.monotonic() + seconds, seconds
