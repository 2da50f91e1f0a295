"""Verdicts on answers in words: right, another number, no number, cut off."""

from __future__ import annotations

import re

from grpo_core.config import LanguageTask
from grpo_core.lm.problems import Prompt, Verdict
from grpo_core.lm.rewards import CHECKERS
from grpo_core.text import tr

_DIGIT = re.compile(r"\d")


def verdict_in_words(task: LanguageTask, prompt: Prompt, text: str, *, ended: bool = True) -> Verdict:
    """Make the verdict on an answer to ``prompt``, by the rule that rewards it.

    Args:
        task: a task in words.
        prompt: the prompt, with its answer.
        text: the completion, without its end sign.
        ended: whether it had an end sign.

    A regular expression is not searched for here: that may take long, and the reward shows the result.
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
