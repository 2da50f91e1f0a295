"""A model from a folder in one line, before its first update: how large it is, its licence, what training it takes."""

from __future__ import annotations

from grpo_core.config import Settings
from grpo_core.hf.folder import ModelFiles, known
from grpo_core.hf.memory import need
from grpo_core.text import tr
from grpo_core.update_time import UNMEASURED, UpdateTime


def model_summary(
    settings: Settings, update_time: UpdateTime | None = None, remembered: UpdateTime | None = None
) -> str:
    """The line of a run under ``settings``. Where the folder is gone, that its answers come with the first update.

    Args:
        settings: of the run.
        update_time: how long an update takes here, where that has been measured.
        remembered: the same, measured at an earlier time, which is said until it is measured again.
    """
    files = _files(settings.model.folder, settings.model.digest)
    if files is None:
        return tr("What the model answers to these prompts comes with the first update.")
    needed = need(files, settings)
    summary = tr(
        "{parameters:,} parameters, licence {licence}; {trained:,} numbers are trained, in about {memory:.1f} GB."
    ).format(
        parameters=files.parameters, licence=files.licence or tr("not stated"), trained=needed.trained,
        memory=needed.whole / 1e9,
    )  # fmt: skip
    if update_time is not None:
        return f"{update_time.sentence} {summary}"
    return f"{summary} {UNMEASURED if remembered is None else remembered.remembered}"


def in_fewer_words(settings: Settings, update_time: UpdateTime | None = None) -> str:
    """The most important part of :func:`model_summary` before Run: how long an update takes, or else what it needs."""
    if update_time is not None:
        return update_time.brief
    files = _files(settings.model.folder, settings.model.digest)
    if files is None:
        return ""
    needed = need(files, settings)
    return tr("{trained:,} of {parameters:,} numbers are trained, in about {memory:.1f} GB.").format(
        trained=needed.trained, parameters=files.parameters, memory=needed.whole / 1e9
    )


def _files(folder: str, digest: str) -> ModelFiles | None:
    """The headers of the files, where they were read: nothing here reads a model's folder."""
    return known(folder, digest).files
