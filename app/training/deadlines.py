"""Deadlines by which a run's process must report, and the messages when it does not."""

from __future__ import annotations

import time

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


class Deadlines:
    """The deadlines of one process, which has just been started.

    Attributes:
        ready: whether it has started.
        loading: name of what it is loading, torch or a model from a folder; it cannot react meanwhile. Empty for
            nothing.
    """

    def __init__(self) -> None:
        self.ready, self.loading = False, ""
        self._model = False  # it is loading a model from a folder
        self._loading_since = 0.0
        self._pause_waits = False  # a pause was requested while it was loading, and no message has been shown yet
        self._ends = False  # it was asked to end
        self._due: float | None = None
        self._given = 0.0  # the seconds allowed, which end at _due
        self._give(STARTING)
        self._quiet_since: float | None = None  # it was asked to pause, and has not reported since
        self._warned = False

    def rest(self) -> float | None:
        """Seconds until the process is late. None if nothing is expected of it."""
        due = [] if self._due is None else [self._due]
        if self._quiet_since is not None:
            due.append(self._quiet_since + (QUIET if self._warned else PATIENCE))
        return max(0.0, min(due) - time.monotonic()) if due else None

    def sent(self, command: Command) -> None:
        """Record that ``command`` was sent to the process."""
        if command.urgent and (self._due is None or (self._due > time.monotonic() + PATIENCE and self._model)):
            self._give(PATIENCE)
        if isinstance(command, Pause) and self.loading:
            self._pause_waits = True
        elif isinstance(command, Pause) and self._quiet_since is None and self.ready:
            self._quiet_since, self._warned = time.monotonic(), False
        if isinstance(command, Shutdown):
            self._ends = True
            if self.loading or not self.ready:  # it has nothing to lose
                self._give(STARTED)

    def heard(self) -> None:
        """Record that the process has reported."""
        self._quiet_since = None

    def started(self, urgent: bool) -> None:
        """Record that the process is ready. ``urgent``, here and below: an urgent command waits for it."""
        self.ready = True
        self.expect(urgent)

    def load(self, name: str, *, model: bool, urgent: bool) -> None:
        """Record that the process has begun to load ``name``: torch, or a ``model`` from a folder, which may be
        malicious and never finish loading. Urgent commands do not wait for that."""
        self.loading, self._model, self._loading_since = name, model, time.monotonic()
        self._give(STARTED if self._ends else LOADING if not model else PATIENCE if urgent else LOADING_MODEL)

    def loaded(self, urgent: bool) -> None:
        """Record that the process has loaded torch or its model, and reacts again."""
        self.loading, self._model, self._pause_waits = "", False, False
        self.expect(urgent)

    def expect(self, urgent: bool) -> None:
        """Expect nothing but the acknowledgement of an urgent command, if there is one."""
        self._due = None
        if self.ready and urgent:
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
                seconds=time.monotonic() - self._loading_since,
                most=LOADING_MODEL if self._model else LOADING,
            )
        if self._quiet_since is None or self._warned or time.monotonic() - self._quiet_since < PATIENCE:
            return ""
        self._warned = True
        return tr(
            "The process that trains has not answered for {seconds:.0f} seconds. If it does not answer "
            "within {more:.0f} more, it is ended. Every finished update is kept."
        ).format(seconds=PATIENCE, more=QUIET - PATIENCE)

    def _give(self, seconds: float) -> None:
        """Allow the process this many seconds from now on."""
        self._due, self._given = time.monotonic() + seconds, seconds
