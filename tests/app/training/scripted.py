"""A learner whose updates a test makes, by computing them otherwise or by not finishing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpo_core.config import Settings
from grpo_core.record import Step


@dataclass
class Scripted:
    """A learner (:class:`grpo_core.learners.Learner`).

    Attributes:
        settings: of the next update.
        update: makes it; whatever it raises, the learner raises.
    """

    settings: Settings
    update: Callable[[Settings], Step]

    def __iter__(self) -> Scripted:
        return self

    def __next__(self) -> Step:
        return self.update(self.settings)
