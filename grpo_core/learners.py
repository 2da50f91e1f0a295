"""Learners, which are generators of steps. Runs are paused, stepped and branched between two calls of ``next()``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from grpo_core import parts
from grpo_core.bandit.learner import BanditLearner
from grpo_core.bandit.learner import origin as bandit_origin
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.progress import Progress, unpolled, unreported
from grpo_core.record import Origin, Step
from grpo_core.snapshot_file import holds_weights
from grpo_core.text import tr

if TYPE_CHECKING:
    from grpo_core.lm.learner import PolicyLearner
    from grpo_core.update_time import UpdateTime

NO_TORCH = (
    tr(
        "This needs torch, which this slim download does not contain. Choose a Python that has it (Run, Python with "
        "torch…, or --python PATH), or get the full download, whose name ends in “-full”, from the same place: it "
        "opens the same runs. The bandit and the program's own language model work without it."
    )
    if getattr(sys, "frozen", False)
    else tr(
        "This needs torch, which is not installed. Install it with “make run-lm” in the source folder, or with “pip "
        "install torch safetensors”. The bandit and the program's own language model work without it."
    )
)
"""Message for features that need torch: a model from a folder, or training a checkpoint. It does not suggest installing
torch, because nothing can be installed into a packaged program.
"""


class Learner(Protocol):
    """Protocol of a learner, which is an iterator over the updates of a run.

    Attributes:
        settings: can be assigned between two steps. Live settings take effect at the next update; a structural one
            raises a ``SettingsError`` that names it.
    """

    settings: Settings

    def __iter__(self) -> Iterator[Step]: ...

    def __next__(self) -> Step:
        """Return the next update.

        Raises:
            Cancelled: ``poll`` raised it.
            NonFiniteError: a number of the update is not finite.

        After either, the learner is at its last finished update and can be continued.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class FolderModels:
    """Models from a folder of the user, which a part contributes.

    Attributes:
        origin: returns the origin of a run (:func:`origin`).
        learner: imports and returns the class of the learner, which also has ``update_time()``, the time that an update
            takes on this machine, and ``answered()``, given a run's origin, a question about an update, the update, and
            the updates before it. Raises ImportError without torch.
        summary: returns a line about the model under some settings, given the time of an update measured in this
            session and an earlier one, each None if it was not measured. It reads nothing from the folder.
        brief: returns the main part of that line, given the settings and the time of an update.
    """

    origin: Callable[[Settings], Origin]
    learner: Callable[[], Callable[..., PolicyLearner[Any]]]
    summary: Callable[[Settings, UpdateTime | None, UpdateTime | None], str]
    brief: Callable[[Settings, UpdateTime | None], str]


def folder_models() -> FolderModels:
    """Return the functions for models from a folder.

    Raises:
        GrpoError: no part that is switched on has them.
    """
    known: list[FolderModels] = parts.rows("models")
    if not known:
        raise GrpoError(tr("The model of this run comes from a folder; models from folders are switched off."))
    return known[0]


Earlier = Callable[[int], Step]
"""Function that returns the recorded update with a given number."""


def nothing_earlier(number: int) -> Step:
    """Raise an error: the callback ``earlier`` of a run of which only the last update is available."""
    raise GrpoError(
        tr("Update {number} is missing, and the run cannot continue from the update after it without it.").format(
            number=number
        )
    )


def origin(settings: Settings) -> Origin:
    """Return the origin of a run under ``settings``: vocabulary, starting policy, and everything else known before
    update 1.

    Raises:
        GrpoError: the prompts of a language model's task cannot be used.
    """
    if settings.is_language and settings.model.folder:
        return folder_models().origin(settings)
    if settings.is_language:
        from grpo_core.lm.rewards import origin as language_origin

        return language_origin(settings)
    return bandit_origin(settings)


def learner(
    settings: Settings,
    *,
    resume: Step | None = None,
    earlier: Earlier = nothing_earlier,
    poll: Callable[[], None] = unpolled,
) -> Learner:
    """Create a learner at its start, or at the end of ``resume``. With equal settings it continues the same run bit for
    bit.

    Args:
        settings: settings of the run; when resuming, only live settings may differ from those of ``resume``.
        resume: a recorded update to continue from.
        earlier: the updates before it; a language model stores its weights every few updates and replays the updates in
            between.
        poll: called before every token and every pass; ends the update by raising ``Cancelled``.

    Raises:
        SettingsError: a structural setting differs from that of ``resume``; a new run is needed.
        GrpoError: ``resume`` lacks data needed to continue, or a model from a folder needs torch.
    """
    if not settings.is_language:
        return BanditLearner(settings, resume=resume, poll=poll)
    return language_learner(settings, leading_to(resume, earlier), poll)


def language_learner(
    settings: Settings,
    history: Sequence[Step],
    poll: Callable[[], None],
    progress: Callable[[Progress], None] = unreported,
    group: Callable[[], int] = lambda: 0,
) -> PolicyLearner[Any]:
    """Create a language model's learner after the updates of ``history``, for the built-in model or one from a folder.

    ``progress`` receives reports of a long update (:class:`grpo_core.progress.UpdateProgress`), with the completions of
    ``group`` as they are sampled.

    Raises:
        GrpoError: a model from a folder is requested, and torch is missing; or the model or ``history`` cannot be used.
    """
    if settings.model.folder:
        models = folder_models()
        try:
            make = models.learner()
        except ImportError:
            raise GrpoError(NO_TORCH) from None

        return make(settings, history=history, poll=poll, progress=progress, group=group)
    from grpo_core.lm.learner import LanguageLearner

    return LanguageLearner(settings, history=history, poll=poll, progress=progress, group=group)


def leading_to(last: Step | None, earlier: Earlier) -> list[Step]:
    """Return the consecutive updates that lead up to ``last``, starting at the newest one that has weights, or at the
    first.

    Raises:
        GrpoError: one of them is no longer recorded.
    """
    steps = [] if last is None else [last]
    while steps and not holds_weights(steps[0]) and steps[0].step > 1:
        steps.insert(0, earlier(steps[0].step - 1))
    return steps
