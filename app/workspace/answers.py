"""What completions are worth as answers: right or wrong as they were paid, and in words as a reader would say it."""

from __future__ import annotations

import numpy as np

from grpo_core.lm.problems import Verdict, verdict
from grpo_core.lm.rewards import REWARD_NAMES
from grpo_core.lm.vocabulary import STOP
from grpo_core.record import Origin, Step
from grpo_core.texts import completion_text, prompt_text, watched_text

RIGHT = REWARD_NAMES[0]
GLYPHS = {True: "◆", False: "◇", None: "·"}
"""Right, wrong, and what cannot be told."""


def right(step: Step, origin: Origin) -> np.ndarray | None:
    """Which completions were paid for a right answer, boolean (B,); None where answers are neither right nor wrong."""
    if origin.settings.is_recorded or step.reward_parts is None or RIGHT not in origin.reward_names:
        return None
    return np.asarray(step.reward_parts[:, origin.reward_names.index(RIGHT)] > 0.5)


def words(step: Step, row: int, origin: Origin) -> str:
    """What completion ``row`` is, such as “went left to right”; empty where that cannot be told."""
    if origin.settings.is_recorded or step.prompt_tokens is None or RIGHT not in origin.reward_names:
        return ""
    ended = bool((step.tokens[row][step.mask[row]] == STOP).any())
    text = completion_text(step, row, origin).removesuffix(origin.vocabulary[STOP])
    return verdict(prompt_text(step, int(step.group[row]), origin), text, ended=ended).words


def words_for(prompt: str, completion: str, origin: Origin) -> str:
    """What a completion is that somebody has typed, such as “went left to right”; empty where that is not known."""
    return verdict(prompt, completion).words if RIGHT in origin.reward_names else ""


def watched(step: Step, place: int, origin: Origin) -> tuple[str, Verdict]:
    """The likeliest answer to fixed prompt ``place`` before the update, without its end sign, and its verdict."""
    assert step.watched_tokens is not None
    text = watched_text(step, place, origin)
    bare = text.removesuffix(origin.vocabulary[STOP])
    return bare, verdict(origin.watched[place], bare, ended=bare != text)
