"""Breakpoints, which are checked after each update of the run in training to decide whether it stops."""

from __future__ import annotations

from contextlib import closing

from grpo_core.breakpoints import Breakpoint, Watch, nothing_before, sentence
from grpo_core.errors import GrpoError
from grpo_core.host.live_run import LiveRun
from grpo_core.runs.run_file import RunReader


class BreakpointWatch:
    """The breakpoints of the run in training.

    Attributes:
        breakpoints: all of them, enabled or not.
    """

    def __init__(self) -> None:
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._watch = Watch((), nothing_before)
        self._seen = 0

    @property
    def on(self) -> bool:
        """Whether any breakpoint is enabled, which means that the run must be checked after each update."""
        return any(one.on for one in self.breakpoints)

    def watch(self, live: LiveRun | None) -> None:
        """Check the breakpoints against the updates of ``live`` from now on.

        The run's record shows which conditions are already true; these do not stop it again.
        """
        self._watch = Watch((), nothing_before)
        if live is None or not self.on:
            return
        self._seen = live.head
        try:
            live.output.commit()
            with closing(RunReader.open(live.recorded)) as reader:
                self._watch = Watch(self.breakpoints, lambda name: reader.series(name)[: live.head])
        except GrpoError:  # no file yet, or none that can be read: then nothing is known of what was before
            self._watch = Watch(self.breakpoints, nothing_before)

    def reached(self, live: LiveRun) -> str:
        """Return why ``live`` should stop at the update that it has just finished. Empty if it should go on."""
        if live.head == self._seen or live.scalars is None:
            return ""
        self._seen = live.head
        reached = self._watch.reached(live.scalars)
        return sentence(live.head, reached, live.scalars) if reached else ""
