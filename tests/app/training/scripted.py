"""A learner whose updates are made by the test, which can compute them differently or not finish them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpo_core.config import Settings
from grpo_core.record import Step


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
