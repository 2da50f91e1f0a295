"""The origin of a language model's run, computed without torch for display."""

from __future__ import annotations

from grpo_core.config import Settings
from grpo_core.lm.rewards import PromptSource
from grpo_core.lm.vocabulary import VOCABULARY
from grpo_core.record import Origin


def origin(settings: Settings) -> Origin:
    """Return the origin of a run. It has no distributions, since only the model knows its policy.

    Raises:
        GrpoError: the user's prompts cannot be used.
    """
    source = PromptSource(settings.language, settings.model.context)
    return Origin(
        settings=settings,
        vocabulary=VOCABULARY,
        prompts=(),
        reward_names=settings.language.part_titles,
        watched=tuple(prompt.text for prompt in source.watched),
    )
