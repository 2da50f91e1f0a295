"""Stored answers of the shipped model before any training, for a window that never loads its weights.

The file contains the digest of the weights that produced the answers, and is ignored if the weights differ.
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
"""Maximum number of tokens in a stored answer, including its end-of-sequence token."""


def recorded_answers(settings: Settings, prompts: Sequence[str]) -> tuple[str | None, ...]:
    """Return the likeliest answers to ``prompts`` under the weights that ``settings`` start from, with their
    end-of-sequence token.

    An entry is None if no complete answer is stored, as for other weights or prompts. An answer longer than the maximum
    length of completions is cut off, as in sampling; the shipped model's tokens are single characters.
    """
    if not settings.is_language or settings.model.checkpoint != "shipped":
        return (None,) * len(prompts)
    known, longest = known_answers(), settings.language.max_tokens
    return tuple(_cut(known.get(prompt), longest) for prompt in prompts)


def digest() -> str:
    """Return the SHA-256 of the shipped weights' file, in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    return hashlib.sha256(resource(CHECKPOINT).read_bytes()).hexdigest()


def _cut(answer: str | None, longest: int) -> str | None:
    if answer is None or (len(answer) == LONGEST < longest):  # the rest of the answer was not stored
        return None
    return answer[:longest]


@lru_cache(maxsize=1)
def known_answers() -> dict[str, str]:
    """Return the answers by prompt. Empty if the file is absent, or was written for other weights."""
    try:
        recorded = json.loads(resource(ANSWERS).read_text(encoding="utf-8"))
        return dict(recorded["answers"]) if recorded["sha256"] == digest() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
