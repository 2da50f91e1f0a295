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
from grpo_core.texts import answer_tokens, completion_text, prompt_text, question_text, tokens_text

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
    tokens = step.tokens[row][step.there[row]]
    if origin.settings.model.folder:
        return _in_words(question_text(step, int(step.group[row]), origin), tokens, origin)[1].words
    text = completion_text(step, row, origin).removesuffix(origin.vocabulary[STOP])
    asked, ended = prompt_text(step, int(step.group[row]), origin), bool((tokens == STOP).any())
    return verdict(asked, text, origin, ended=ended).words


def words_for(prompt: str, completion: str, origin: Origin) -> str:
    """Return a description of a typed completion, for example “went left to right”, or an empty string."""
    if not _pays_for_right(origin):
        return ""
    if origin.settings.model.folder:
        return _verdict(prompt, completion, origin, ended=True).words
    return verdict(prompt, completion, origin).words


def watched(step: Step, place: int, origin: Origin) -> tuple[str, Verdict]:
    """Return the likeliest answer to fixed prompt ``place`` before the update, and its verdict.

    The answer omits its end-of-sequence token. If the model is from a folder, the answer is put on one line.
    """
    assert step.watched_tokens is not None
    return judged(origin.watched[place], step.watched_tokens[place], origin)


def judged(prompt: str, tokens: np.ndarray, origin: Origin) -> tuple[str, Verdict]:
    """Return the answer spelled by ``tokens`` (L,), without its end-of-sequence token, and its verdict. Padding is −1.

    If the model is from a folder, the answer is put on one line.
    """
    if origin.settings.model.folder:
        return _in_words(prompt, tokens, origin)
    text = tokens_text(tokens, origin)
    bare = text.removesuffix(origin.vocabulary[STOP])
    return bare, verdict(prompt, bare, origin, ended=bare != text)


def verdict(prompt: str, text: str, origin: Origin, *, ended: bool = True) -> Verdict:
    """Return the verdict on an answer of the character model, given the task of its run."""
    if origin.settings.language.has_tool:
        return calculator.verdict(calculator.prompt(prompt.rstrip("=")), text, ended=ended)
    return problems.verdict(prompt, text, ended=ended)


def on_one_line(tokens: np.ndarray, origin: Origin) -> str:
    """Return the text of a completion (L,), or of its beginning, on one line and without its end-of-sequence token."""
    if origin.settings.model.folder:
        return " ".join(tokens_text(answer_tokens(tokens, origin), origin).split())
    return tokens_text(tokens, origin).removesuffix(origin.vocabulary[STOP])


def _in_words(question: str, tokens: np.ndarray, origin: Origin) -> tuple[str, Verdict]:
    there = tokens[tokens >= 0]
    bare = answer_tokens(there, origin)
    text = tokens_text(bare, origin)
    return " ".join(text.split()), _verdict(question, text, origin, ended=len(bare) < len(there))


def _verdict(question: str, text: str, origin: Origin, *, ended: bool) -> Verdict:
    task = origin.settings.language
    try:
        return verdict_in_words(task, _source(task).prompt(question), text, ended=ended)
    except GrpoError:  # the user has replaced the file
        return Verdict(None, "")


@lru_cache(maxsize=4)
def _source(task: LanguageTask) -> PromptSource:
    return PromptSource(task, None)
