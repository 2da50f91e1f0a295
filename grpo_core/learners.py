"""Learners: generators of steps. Run, pause, step and branch live between two ``next()``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from grpo_core.bandit.learner import BanditLearner
from grpo_core.bandit.learner import origin as bandit_origin
from grpo_core.config import Settings
from grpo_core.record import Origin, Step


class Learner(Protocol):
    """A run in the making.

    Attributes:
        settings: assign between two steps; live settings act at the next update, a structural one raises
            ``SettingsError`` naming it.
    """

    settings: Settings

    def __iter__(self) -> Iterator[Step]: ...

    def __next__(self) -> Step:
        """The next update.

        Raises:
            Cancelled: ``cancelled()`` turned true.
            NonFiniteError: a number of the update is not finite.

        After either, the learner stands at its last finished update and may be continued.
        """
        ...


def never() -> bool:
    """A run that is never cancelled."""
    return False


def origin(settings: Settings) -> Origin:
    """The run before its first update."""
    return bandit_origin(settings)


def learner(settings: Settings, *, resume: Step | None = None, cancelled: Callable[[], bool] = never) -> Learner:
    """A learner at its start, or at the end of ``resume``: bit for bit the same run if the settings are the same.

    Args:
        settings: of the run; where it is resumed, only live settings may differ from those of ``resume``.
        resume: a recorded update to go on from.
        cancelled: asked before every token and every pass; True ends the update with ``Cancelled``.

    Raises:
        SettingsError: a structural setting differs from that of ``resume``; a new run is needed.
        GrpoError: ``resume`` does not hold what is needed to go on.
    """
    return BanditLearner(settings, resume=resume, cancelled=cancelled)
