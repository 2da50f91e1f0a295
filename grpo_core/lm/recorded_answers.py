"""Answers of the shipped model before any training: kept beside its weights, for a window that never loads them.

The file names the digest of the weights that answered. With other weights in their place it says nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache

from grpo_core.config import Settings
from grpo_core.shipped import CHECKPOINT, resource

ANSWERS = "checkpoints/arithmetic.answers.json"
LONGEST = 24
"""Tokens of an answer up to which it was recorded, its end sign included."""


def recorded_answers(settings: Settings, prompts: Sequence[str]) -> tuple[str | None, ...]:
    """The likeliest answers to ``prompts`` under the weights that ``settings`` start from, with their end sign.

    None where none was recorded: for other weights and other prompts. An answer that is longer than completions may be
    is cut off, as the model's is; the shipped model's tokens are single characters.
    """
    if not settings.is_language or settings.model.checkpoint != "shipped":
        return (None,) * len(prompts)
    known, longest = known_answers(), settings.language.max_tokens
    return tuple(_cut(known.get(prompt), longest) for prompt in prompts)


def digest() -> str:
    """SHA-256 of the shipped weights' file, in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    return hashlib.sha256(resource(CHECKPOINT).read_bytes()).hexdigest()


def _cut(answer: str | None, longest: int) -> str | None:
    if answer is None or (len(answer) == LONGEST < longest):  # what would have followed was not recorded
        return None
    return answer[:longest]


@lru_cache(maxsize=1)
def known_answers() -> dict[str, str]:
    """Answers by prompt. None where the file is absent, or was written for other weights."""
    try:
        recorded = json.loads(resource(ANSWERS).read_text(encoding="utf-8"))
        return dict(recorded["answers"]) if recorded["sha256"] == digest() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
