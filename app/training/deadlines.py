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
"""Seconds allowed for acknowledging a pause. The update in progress may take longer than that."""
STARTED = 0.5
"""Seconds allowed at the end of the program for a process that is still starting or loading."""


class Phase(Enum):
    """Phases of the process of a run.

    Attributes:
        HERE: there is none, and runs are computed in the worker's thread until one needs a process.
        ABSENT: there is none.
        STARTING: it has been started, and has not reported yet.
        LISTENING: it takes commands.
        LOADING: it loads torch, and cannot react.
        LOADING_MODEL: it reads a model from a folder, and cannot react.
        ENDING: it has taken the command to shut down, and closes its files.
        ENDED: a shutdown has been completed.
        UNAVAILABLE: none can be started, and runs are computed in the worker's thread.
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
    Phase.ENDING: (Phase.ENDED,),
    Phase.ENDED: (),
    Phase.UNAVAILABLE: (Phase.ENDED,),
}
"""The phases that may follow each phase."""


class Deadlines:
    """The phase of a run's process, and by when the process must report.

    Attributes:
        phase: the phase; only :meth:`enter` changes it.
        loading: name of what is being loaded, torch or a model from a folder. Empty for nothing.
    """

    def __init__(self, phase: Phase = Phase.ABSENT) -> None:
        self.phase = phase
        self.loading = ""
        self._since = 0.0  # when the phase began
        self._due: float | None = None
        self._given = 0.0  # the seconds allowed, which end at _due
        self._quiet_since: float | None = None  # it was asked to pause, and has not reported since
        self._warned = False
        self._pause_waits = False  # a pause was requested while it was loading, and no message has been shown yet
        self._leaving = False  # it was asked to end

    def enter(self, phase: Phase, *, name: str = "", urgent: bool = False) -> None:
        """Enter ``phase``.

        A model from a folder may be malicious and never finish loading, so urgent commands do not wait for that.

        Args:
            phase: the phase that begins.
            name: name of what is loaded.
            urgent: whether an urgent command waits for the process.

        Raises:
            ValueError: this phase cannot follow the current one.
        """
        if phase not in NEXT[self.phase]:
            raise ValueError(f"a process cannot be {phase} after it was {self.phase}")
        self.phase, self.loading, self._since = phase, name, time.monotonic()
        self._pause_waits = False
        match phase:
            case Phase.LISTENING:
                self.expect(urgent)
            case Phase.LOADING | Phase.LOADING_MODEL if self._leaving:
                self._give(STARTED)
            case Phase.LOADING:
                self._give(LOADING)
            case Phase.LOADING_MODEL:
                self._give(PATIENCE if urgent else LOADING_MODEL)
            case _:
                self._due, self._quiet_since, self._leaving = None, None, False
                if phase is Phase.STARTING:
                    self._give(STARTING)

    def rest(self) -> float | None:
        """Seconds until the process is late. None if nothing is expected of it."""
        due = [] if self._due is None else [self._due]
        if self._quiet_since is not None:
            due.append(self._quiet_since + (QUIET if self._warned else PATIENCE))
        return max(0.0, min(due) - time.monotonic()) if due else None

    def sent(self, command: Command) -> None:
        """Record that ``command`` was sent to the process."""
        now, reading = time.monotonic(), self.phase is Phase.LOADING_MODEL
        if command.urgent and (self._due is None or (reading and self._due > now + PATIENCE)):
            self._give(PATIENCE)
        if isinstance(command, Pause) and self.loading:
            self._pause_waits = True
        elif isinstance(command, Pause) and self._quiet_since is None and self.phase is Phase.LISTENING:
            self._quiet_since, self._warned = now, False
        if isinstance(command, Shutdown):
            self._leaving = True
            if self.phase is not Phase.LISTENING:  # it has nothing to lose
                self._give(STARTED)

    def heard(self) -> None:
        """Record that the process has reported."""
        self._quiet_since = None

    def expect(self, urgent: bool) -> None:
        """Expect nothing but the acknowledgement of an urgent command, if there is one."""
        self._due = None
        if urgent:
            self._give(PATIENCE)

    def missed(self) -> float | None:
        """The exceeded time limit in seconds, after which the process is to be killed. None while it is in time."""
        if self._due is not None and time.monotonic() >= self._due:
            return self._given
        if self._quiet_since is not None and time.monotonic() - self._quiet_since >= QUIET:
            return QUIET
        return None

    def warning(self) -> str:
        """A sentence, returned once, if a pause waits for loading, or if the process stays silent for long after a
        pause. Else empty.

        A pause lets the update in progress finish, but the process acknowledges it at once.
        """
        if self._pause_waits:
            self._pause_waits = False
            return tr(
                "“{name}” is still being loaded, for {seconds:.0f} seconds so far (at most {most:.0f}); then the run "
                "pauses. Another run, or closing this one, ends the loading."
            ).format(
                name=self.loading,
                seconds=time.monotonic() - self._since,
                most=LOADING_MODEL if self.phase is Phase.LOADING_MODEL else LOADING,
            )
        if self._quiet_since is None or self._warned or time.monotonic() - self._quiet_since < PATIENCE:
            return ""
        self._warned = True
        return tr(
            "The process that trains has not answered for {seconds:.0f} seconds. It is given {more:.0f} more; "
            "then it is ended. Every finished update is kept."
        ).format(seconds=PATIENCE, more=QUIET - PATIENCE)

    def _give(self, seconds: float) -> None:
        """Allow the process this many seconds from now on."""
        self._due, self._given = time.monotonic() + seconds, seconds
