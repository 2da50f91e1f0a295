"""The origin of a run of a model from a folder, computed without torch for display."""

from __future__ import annotations

from grpo_core.config import Settings
from grpo_core.lm.rewards import PromptSource
from grpo_core.record import Origin
from grpo_core.trainers.hf.folder import texts_of


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
