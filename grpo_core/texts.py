"""Prompts and completions as texts, whichever policy wrote them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grpo_core.record import Origin, Step
from grpo_core.text import tr


def prompt_text(step: Step, group: int, origin: Origin) -> str:
    """What was asked in group ``group``."""
    known = step.prompt_texts[group] if step.prompt_texts is not None and group < len(step.prompt_texts) else None
    if known is not None:
        return known
    if step.prompt_tokens is not None and group < len(step.prompt_tokens):
        return tokens_text(step.prompt_tokens[group], origin)
    return origin.prompts[group] if group < len(origin.prompts) else tr("prompt {number}").format(number=group + 1)


def completion_text(step: Step, row: int, origin: Origin) -> str:
    """What completion ``row`` says, its end sign included where it is put together from its tokens."""
    known = None if step.completion_texts is None else step.completion_texts[row]
    if known is not None:
        return known
    return tokens_text(step.tokens[row][step.mask[row]], origin)


def watched_text(step: Step, place: int, origin: Origin) -> str:
    """The likeliest completion of fixed prompt ``place`` before the update."""
    assert step.watched_tokens is not None
    return tokens_text(step.watched_tokens[place], origin)


def tokens_text(tokens: Iterable[int] | np.ndarray, origin: Origin) -> str:
    """The text of ``tokens``; padding (−1) is left out, an unknown token is a question mark."""
    words = origin.vocabulary
    return "".join(words[t] if t < len(words) else "?" for t in map(int, tokens) if t >= 0)
