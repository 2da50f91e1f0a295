"""The display of a run of a model from a folder before its first update, computed without torch."""

from __future__ import annotations

from grpo_core.config import Settings
from grpo_core.lm.rewards import PromptSource
from grpo_core.record import Origin
from grpo_core.text import plural, tr
from grpo_core.trainers.hf.folder import known, texts_of
from grpo_core.trainers.hf.memory import need
from grpo_core.update_time import UNMEASURED, UpdateTime


def model_summary(
    settings: Settings, update_time: UpdateTime | None = None, remembered: UpdateTime | None = None
) -> str:
    """Return a line about the model of a run: its size, its licence, and the cost of training it.

    If the folder is gone, it says that answers come with the first update.

    Args:
        update_time: measured duration of an update on this machine; None if not measured.
        remembered: the duration measured in an earlier session, used until it is measured again.
    """
    files = known(settings.model.folder, settings.model.digest).files  # if they have been read already
    if files is None:
        return tr("The model's answers to these prompts appear with the first update.")
    needed = need(files, settings)
    summary = plural(
        "{parameters:,} parameter, licence {licence}; {trained:,} numbers are trained, in about {memory:.1f} GB.",
        "{parameters:,} parameters, licence {licence}; {trained:,} numbers are trained, in about {memory:.1f} GB.",
        files.parameters,
    ).format(
        parameters=files.parameters,
        licence=files.licence or tr("not stated"),
        trained=needed.trained,
        memory=needed.whole / 1e9,
    )
    if update_time is not None:
        return f"{update_time.sentence} {summary}"
    return f"{summary} {UNMEASURED if remembered is None else remembered.remembered}"


def in_fewer_words(settings: Settings, update_time: UpdateTime | None = None) -> str:
    """Return the main part of :func:`model_summary`: the duration of an update or, if unknown, the memory needed."""
    if update_time is not None:
        return update_time.brief
    files = known(settings.model.folder, settings.model.digest).files  # if they have been read already
    if files is None:
        return ""
    needed = need(files, settings)
    return tr("{trained:,} of {parameters:,} numbers are trained, in about {memory:.1f} GB.").format(
        trained=needed.trained, parameters=files.parameters, memory=needed.whole / 1e9
    )


def origin(settings: Settings) -> Origin:
    """Return the origin of a run. It has no distributions, since only the model knows its policy.

    Raises:
        SettingsError: the folder cannot be used.
        GrpoError: the user's prompts cannot be used.
    """
    source = PromptSource(settings.language, None)
    return Origin(
        settings=settings,
        vocabulary=texts_of(settings.model.folder, settings.model.digest),
        prompts=(),
        reward_names=settings.language.part_titles,
        watched=tuple(prompt.text for prompt in source.watched),
    )
