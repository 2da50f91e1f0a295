"""A learner whose updates are made by the test, which can compute them differently or not finish them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpo_core.config import Settings
from grpo_core.learners import Earlier, Learner, learner
from grpo_core.record import Step

Poll = Callable[[], None]


@dataclass
class Scripted:
    """A learner (:class:`grpo_core.learners.Learner`) controlled by a test.

    Attributes:
        settings: the settings of the next update.
        update: function that makes it; the learner raises whatever it raises.
    """

    settings: Settings
    update: Callable[[Settings], Step]

    def __iter__(self) -> Scripted:
        return self

    def __next__(self) -> Step:
        return self.update(self.settings)


def scripted(update: Callable[[Learner, Poll], Step]) -> Callable[..., Learner]:
    """Return a substitute for :func:`grpo_core.learners.learner` whose updates ``update`` makes, from a real learner
    that listens to nobody and from the poll to which it should listen.
    """

    def make(settings: Settings, *, resume: Step | None, earlier: Earlier, poll: Poll) -> Learner:
        real = learner(settings, resume=resume, earlier=earlier)

        def wanted(settings: Settings) -> Step:
            real.settings = settings
            return update(real, poll)

        return Scripted(settings, wanted)

    return make
