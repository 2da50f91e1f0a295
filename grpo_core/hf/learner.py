"""A run of a model from a folder: the loop of every language model (``lm/learner.py``) over another policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grpo_core.config import Settings
from grpo_core.hf.policy import FolderPolicy
from grpo_core.lm.learner import PolicyLearner
from grpo_core.progress import Progress, unreported
from grpo_core.record import Step


class FolderLearner(PolicyLearner[FolderPolicy]):
    """One run of a model from a folder; the arguments are those of its base."""

    def __init__(
        self, settings: Settings, *, history: Sequence[Step] = (), cancelled: Callable[[], bool],
        progress: Callable[[Progress], None] = unreported,
    ) -> None:  # fmt: skip
        super().__init__(FolderPolicy, settings, history=history, cancelled=cancelled, progress=progress)
