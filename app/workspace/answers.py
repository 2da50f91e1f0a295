"""Verdicts on completions as answers: right or wrong, judged by their reward, and a description in words."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from grpo_core.config import LanguageTask
from grpo_core.errors import GrpoError
from grpo_core.lm import calculator, problems
from grpo_core.lm.problems import Verdict
from grpo_core.lm.rewards import PromptSource, verdict_in_words
from grpo_core.lm.vocabulary import STOP
from grpo_core.record import Origin, Step
from grpo_core.texts import answer_tokens, question_text, tokens_text

RIGHT = 0
"""Index of the part for right answers among the parts of a language model's reward.

It cannot be found by name, because the names are in the language in which the run was created.
"""
GLYPHS = {True: "◆", False: "◇", None: "·"}
"""Symbols for right, wrong, and undecidable."""


def right(step: Step, origin: Origin) -> np.ndarray | None:
    """Return which completions were rewarded for a right answer, boolean (B,).

    None if the run's answers cannot be right or wrong.
    """
    if step.reward_parts is None or not _pays_for_right(origin):
        return None
    return np.asarray(step.reward_parts[:, RIGHT] > 0.5)


def _pays_for_right(origin: Origin) -> bool:
    """Return whether the run's reward has a part for right answers, as for all language models trained here."""
    return origin.settings.is_language and not origin.settings.is_recorded and bool(origin.reward_names)


def words(step: Step, row: int, origin: Origin) -> str:
    """Return a description of completion ``row``, for example “went left to right”, or an empty string."""
    if step.prompt_tokens is None or not _pays_for_right(origin):
        return ""
    question = question_text(step, int(step.group[row]), origin)
    return judged(question, step.tokens[row][step.there[row]], origin)[1].words


def words_for(prompt: str, completion: str, origin: Origin) -> str:
    """Return a description of a typed completion, for example “went left to right”, or an empty string."""
    return verdict(prompt, completion, origin).words if _pays_for_right(origin) else ""


def watched(step: Step, place: int, origin: Origin) -> tuple[str, Verdict]:
    """Return the likeliest answer to fixed prompt ``place`` before the update, and its verdict. See :func:`judged`."""
    assert step.watched_tokens is not None
    return judged(origin.watched[place], step.watched_tokens[place], origin)


def judged(prompt: str, tokens: np.ndarray, origin: Origin) -> tuple[str, Verdict]:
    """Return the answer spelled by ``tokens`` (L,), without its end-of-sequence token, and its verdict. Padding is −1.

    If the model is from a folder, the answer is put on one line.
    """
    if origin.settings.model.folder:
        there = tokens[tokens >= 0]
        kept = answer_tokens(there, origin)
        text = tokens_text(kept, origin)
        return " ".join(text.split()), verdict(prompt, text, origin, ended=len(kept) < len(there))
    text = tokens_text(tokens, origin)
    bare = text.removesuffix(origin.vocabulary[STOP])
    return bare, verdict(prompt, bare, origin, ended=bare != text)


def verdict(prompt: str, text: str, origin: Origin, *, ended: bool = True) -> Verdict:
    """Return the verdict on an answer to ``prompt``, or to a question in words, given the task of its run."""
    task = origin.settings.language
    if origin.settings.model.folder:
        try:
            return verdict_in_words(task, _source(task).prompt(prompt), text, ended=ended)
        except GrpoError:  # the user has replaced the file
            return Verdict(None, "")
    if task.has_tool:
        return calculator.verdict(calculator.prompt(prompt.rstrip("=")), text, ended=ended)
    return problems.verdict(prompt, text, ended=ended)


def on_one_line(tokens: np.ndarray, origin: Origin) -> str:
    """Return the text of a completion (L,), or of its beginning, on one line and without its end-of-sequence token."""
    if origin.settings.model.folder:
        return " ".join(tokens_text(answer_tokens(tokens, origin), origin).split())
    return tokens_text(tokens, origin).removesuffix(origin.vocabulary[STOP])


@lru_cache(maxsize=4)
def _source(task: LanguageTask) -> PromptSource:
    return PromptSource(task, None)
