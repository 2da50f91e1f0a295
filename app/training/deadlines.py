"""Deadlines by which the process of a run has to say something, and what to say where it does not."""

from __future__ import annotations

import time

from grpo_core.child.process import PATIENCE
from grpo_core.host.commands import Command, Pause, Shutdown
from grpo_core.text import tr

STARTING, LOADING, LOADING_MODEL = 60.0, 60.0, 600.0
"""Seconds that a process has for its start, for loading torch, and for reading a model from a folder: several GB,
perhaps from a slow disk."""
QUIET = 20.0
"""Seconds in which it has to say that it has heard a pause; the update in progress may take longer than that."""
STARTED = 0.5
"""Seconds that it has at the end of the program where it is still starting or loading."""


class Deadlines:
    """The deadlines of one process, which has just been started.

    Attributes:
        ready: it has started.
        loading: name of what it loads, torch or a model from a folder: it cannot be asked anything meanwhile. Empty
            for nothing.
    """

    def __init__(self) -> None:
        self.ready, self.loading = False, ""
        self._model = False  # what it loads is a model from a folder
        self._loading_since = 0.0
        self._pause_waits = False  # a pause was asked for while it loads, and nothing was said of that yet
        self._ends = False  # it was asked to end
        self._due: float | None = None
        self._given = 0.0  # the seconds it was given, of which _due is the end
        self._give(STARTING)
        self._quiet_since: float | None = None  # it was asked to pause, and has said nothing since
        self._warned = False

    def rest(self) -> float | None:
        """Seconds until the process is late. None where nothing is expected of it."""
        due = [] if self._due is None else [self._due]
        if self._quiet_since is not None:
            due.append(self._quiet_since + (QUIET if self._warned else PATIENCE))
        return max(0.0, min(due) - time.monotonic()) if due else None

    def sent(self, command: Command) -> None:
        """Note that ``command`` was sent to the process."""
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
        """Note that the process has said something."""
        self._quiet_since = None

    def started(self, urgent: bool) -> None:
        """Note that the process is ready. ``urgent``, also below: an urgent command waits for it."""
        self.ready = True
        self.expect(urgent)

    def load(self, name: str, *, model: bool, urgent: bool) -> None:
        """Note that the process begins to load ``name``: torch, or a ``model`` from a folder, which a stranger may have
        made so that it never ends. Whoever is urgent does not wait for that."""
        self.loading, self._model, self._loading_since = name, model, time.monotonic()
        self._give(STARTED if self._ends else LOADING if not model else PATIENCE if urgent else LOADING_MODEL)

    def loaded(self, urgent: bool) -> None:
        """Note that the process has loaded torch or its model, and can be asked again."""
        self.loading, self._model, self._pause_waits = "", False, False
        self.expect(urgent)

    def expect(self, urgent: bool) -> None:
        """Expect nothing more than that the process takes an urgent command, if there is one."""
        self._due = None
        if self.ready and urgent:
            self._give(PATIENCE)

    def missed(self) -> float | None:
        """The seconds that the process had and let pass, so that it is to be ended. None while it may go on."""
        if self._due is not None and time.monotonic() >= self._due:
            return self._given
        if self._quiet_since is not None and time.monotonic() - self._quiet_since >= QUIET:
            return QUIET
        return None

    def warning(self) -> str:
        """A sentence, once, where a pause waits for what is being loaded, or the process has been quiet for long after
        one. Else empty.

        A pause lets the update in progress finish, but the process says at once that it has heard of it.
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
            "The process that trains has not answered for {seconds:.0f} seconds. It is given {more:.0f} more; "
            "then it is ended. Every finished update is kept."
        ).format(seconds=PATIENCE, more=QUIET - PATIENCE)

    def _give(self, seconds: float) -> None:
        """Give the process so many seconds from now on."""
        self._due, self._given = time.monotonic() + seconds, seconds
