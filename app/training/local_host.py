"""A run's loop in the worker's own thread, for tests, headless use, and where no process can be started."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.host.commands import Command
from grpo_core.host.live_run import Learners
from grpo_core.host.loop import Loop
from grpo_core.host.reports import Outlet
from grpo_core.host.run_output import Writers
from grpo_core.learners import Earlier, Learner, learner
from grpo_core.record import Step
from grpo_core.text import tr

LONGEST_FRAME = 0.1
"""Longest time in seconds for which the loop waits for the window to draw."""


class LocalHost:
    """The loop in this thread. It waits before its next pass while the window draws, because both share the interpreter
    lock."""

    def __init__(
        self,
        outlet: Outlet,
        learners: Learners,
        writers: Writers,
        interrupts: Callable[[], bool],
        may_go_on: threading.Event,
    ) -> None:
        self._interrupts, self._may_go_on = interrupts, may_go_on
        self._loop = Loop(outlet, learners, writers, self._interrupted)

    @property
    def connection(self) -> None:
        """None: there is no connection to listen to."""
        return None

    @property
    def ended(self) -> bool:
        """Whether a shutdown has been completed."""
        return self._loop.ended

    def rest(self) -> float | None:
        """Seconds until there is something to do without a command. None for never."""
        return self._loop.rest()

    def obey(self, commands: Sequence[Command]) -> None:
        """Carry out ``commands`` in order."""
        self._loop.obey(commands)

    def advance(self) -> None:
        """Make one update, if one is due."""
        self._loop.advance()

    def leave(self) -> None:
        """Close the run's file, as another host takes over."""
        self._loop.leave()

    def _interrupted(self) -> bool:
        """Wait while the window draws, though never for long. The learner calls this at every pass; returns whether to
        cancel."""
        if not self._may_go_on.is_set():
            self._may_go_on.wait(LONGEST_FRAME)
        return self._interrupts()


def local_learner(
    settings: Settings, *, resume: Step | None, earlier: Earlier, cancelled: Callable[[], bool]
) -> Learner:
    """A learner for the window's own process, which never imports torch (:func:`grpo_core.learners.learner`).

    Raises:
        GrpoError: it is a language model.
    """
    if settings.is_language:
        raise GrpoError(
            tr(
                "The language model trains in a separate process, and the system does not let the program "
                "start one; the bandit works without it."
            )
        )
    return learner(settings, resume=resume, earlier=earlier, cancelled=cancelled)
