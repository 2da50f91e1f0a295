"""Verdicts on answers in words: right, another number, not a number, cut off."""

from __future__ import annotations

import re

from grpo_core.config import LanguageTask
from grpo_core.lm.problems import Prompt, Verdict
from grpo_core.lm.rewards import CHECKERS
from grpo_core.text import tr

_DIGIT = re.compile(r"\d")


def verdict_in_words(task: LanguageTask, prompt: Prompt, text: str, *, ended: bool = True) -> Verdict:
    """Return the verdict on an answer to ``prompt``, by the rule that rewards it.

    Regular expressions are not matched here: that can take a long time, and the reward shows the result.

    Args:
        task: a task in words.
        prompt: the prompt, with its answer.
        text: the completion, without its end-of-sequence token.
        ended: whether it has an end-of-sequence token.
    """
    rule = task.checker if task.from_file else "number"
    if rule == "regex":
        return Verdict(None, "" if ended else tr("cut off"))
    if CHECKERS[rule](text, prompt.answer):
        return Verdict(True, tr("right", "correct") if ended else tr("right, cut off"))
    if not ended:
        return Verdict(False, tr("cut off"))
    if rule == "number" and _DIGIT.search(text) is None:
        return Verdict(False, tr("no number"))
    return Verdict(False, tr("another number") if rule == "number" else tr("another answer"))
