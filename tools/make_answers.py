"""Record the shipped model's answers to the fixed prompts before any training, with the digest of its weights.

    python -m tools.make_answers        writes resources/checkpoints/arithmetic.answers.json

Run this when the weights or the fixed prompts have changed intentionally.
"""

from __future__ import annotations

import json
import sys

from grpo_core.config import language_settings
from grpo_core.learners import learner
from grpo_core.lm.recorded_answers import ANSWERS, LONGEST, digest
from grpo_core.lm.rewards import origin
from grpo_core.shipped import resource
from grpo_core.texts import tokens_text


def answered() -> dict[str, str]:
    """Return the shipped weights' likeliest answer to each fixed prompt, by prompt, with its end-of-sequence token."""
    settings = language_settings().replace(
        {"task.prompts": 1, "learner.group_size": 2, "task.max_tokens": LONGEST, "task.accuracy_every": 1000}
    )
    start, first = origin(settings), next(learner(settings))
    assert first.watched_tokens is not None
    return {prompt: tokens_text(row, start) for prompt, row in zip(start.watched, first.watched_tokens, strict=True)}


def main() -> int:
    """Write the file of answers. Return the exit status."""
    answers, target = answered(), resource(ANSWERS)
    text = json.dumps({"sha256": digest(), "answers": answers}, indent=1, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf-8")
    print(f"{target.name}: {len(answers)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
