"""Learners: generators of steps. Run, pause, step and branch live between two ``next()``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from grpo_core.bandit.learner import BanditLearner
from grpo_core.bandit.learner import origin as bandit_origin
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.progress import Progress, unreported
from grpo_core.record import Origin, Step
from grpo_core.snapshot_file import holds_weights
from grpo_core.text import tr

if TYPE_CHECKING:
    from grpo_core.hf.learner import FolderLearner
    from grpo_core.lm.learner import LanguageLearner

NO_TORCH = (
    tr(
        "This needs torch, which is not in this slim download. Get the full one, whose name ends in “-full”, from "
        "where this one came from: it opens the same runs. The bandit and the program's own language model work "
        "without it."
    )
    if getattr(sys, "frozen", False)
    else tr(
        "This needs torch, which is not installed. Install it with “make run-lm” in the source folder, or with “pip "
        "install torch safetensors”. The bandit and the program's own language model work without it."
    )
)
"""What is said where something is asked for that only torch can do: a model from a folder, or making a checkpoint.
Nobody installs anything into a packaged program."""


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

        After either, the learner is at its last finished update and may be continued.
        """
        ...


Earlier = Callable[[int], Step]
"""The recorded update of a number."""


def never() -> bool:
    """A run that is never cancelled."""
    return False


def nothing_earlier(number: int) -> Step:
    """For a run of which only the last update is at hand."""
    raise GrpoError(
        tr("Update {number} is not at hand, and the update after it cannot be gone on from without it.").format(
            number=number
        )
    )


def origin(settings: Settings) -> Origin:
    """The origin of a run under ``settings``: vocabulary, starting policy, and what else is known before update 1.

    Raises:
        GrpoError: the prompts of a language model's task cannot be used.
    """
    if settings.is_language and settings.model.folder:
        from grpo_core.hf.origin import origin as folder_origin

        return folder_origin(settings)
    if settings.is_language:
        from grpo_core.lm.origin import origin as language_origin

        return language_origin(settings)
    return bandit_origin(settings)


def learner(
    settings: Settings,
    *,
    resume: Step | None = None,
    earlier: Earlier = nothing_earlier,
    cancelled: Callable[[], bool] = never,
) -> Learner:
    """A learner at its start, or at the end of ``resume``: bit for bit the same run if the settings are the same.

    Args:
        settings: of the run; where it is resumed, only live settings may differ from those of ``resume``.
        resume: a recorded update to go on from.
        earlier: the updates before it; a language model keeps its weights every few updates and replays those between.
        cancelled: asked before every token and every pass; True ends the update with ``Cancelled``.

    Raises:
        SettingsError: a structural setting differs from that of ``resume``; a new run is needed.
        GrpoError: ``resume`` does not hold what is needed to go on, or a model from a folder needs torch.
    """
    if not settings.is_language:
        return BanditLearner(settings, resume=resume, cancelled=cancelled)
    return language_learner(settings, leading_to(resume, earlier), cancelled)


def language_learner(
    settings: Settings, history: Sequence[Step], cancelled: Callable[[], bool],
    progress: Callable[[Progress], None] = unreported, group: Callable[[], int] = lambda: 0,
) -> LanguageLearner | FolderLearner:  # fmt: skip
    """A language model after the updates of ``history``: the program's own, or one from a folder.

    ``progress`` takes how far a long update is (:class:`grpo_core.progress.UpdateProgress`), with the completions of
    ``group`` as they are sampled.

    Raises:
        GrpoError: a model from a folder is asked for, and torch is missing; or the model or ``history`` cannot be used.
    """
    if settings.model.folder:
        try:
            from grpo_core.hf.learner import FolderLearner
        except ImportError:
            raise GrpoError(NO_TORCH) from None

        return FolderLearner(settings, history=history, cancelled=cancelled, progress=progress, group=group)
    from grpo_core.lm.learner import LanguageLearner

    return LanguageLearner(settings, history=history, cancelled=cancelled, progress=progress, group=group)


def leading_to(last: Step | None, earlier: Earlier) -> list[Step]:
    """The consecutive updates that lead to ``last``, from the newest that holds weights, or from the first.

    Raises:
        GrpoError: one of them is not recorded any more.
    """
    steps = [] if last is None else [last]
    while steps and not holds_weights(steps[0]) and steps[0].step > 1:
        steps.insert(0, earlier(steps[0].step - 1))
    return steps
