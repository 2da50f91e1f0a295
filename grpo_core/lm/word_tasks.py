"""Tasks in words, for a model that reads any text: prompts, and advice on what to watch and how the reward can
be gamed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grpo_core.errors import GrpoError
from grpo_core.lm.problems import Prompt, is_held_out
from grpo_core.text import tr

LARGEST = 9
"""Largest summand. The smallest is 1."""


@dataclass(frozen=True, kw_only=True)
class About:
    """Advice before training on a task: what to watch, and how its reward can be earned without what is intended."""

    watch: str
    gamed: str


ABOUT: dict[str, About] = {
    "sums": About(
        watch=tr(
            "The last number of the answer is compared. Watch the model stop talking about the question and start to "
            "calculate; the answers become shorter before they become right."
        ),
        gamed=tr(
            "Any text can come before the last number, so the bare number that was asked for is not what is paid. A "
            "model that never draws it cannot learn it."
        ),
    ),
    "form": About(
        watch=tr("The right answer and the form are paid separately: watch which of the two is learned first."),
        gamed=tr("If the form pays more than the answer, a wrong number in the right form is worth writing."),
    ),
    "questions": About(
        watch=tr(
            "Watch groups whose answers are all right or all wrong: if only right answers pay, nothing is learned from "
            "these."
        ),
        gamed=tr(
            "An exact comparison pays only one spelling, the last number pays whatever comes before it, and a "
            "regular expression pays everything it is found in: read the answers, not only the curve."
        ),
    ),
}
"""Advice on each problem in words, by its name in the settings."""

_QUESTIONS = {
    "sums": "What is {a} plus {b}? Reply with the number only.",
    "form": "What is {a} plus {b}? Reply in exactly this form: Answer: <number>",
}


def drawn(problem: str, numbers: np.random.Generator, *, held_out: bool = False) -> Prompt:
    """Return a random sum in words. One in eight is held out, and no prompt is both held out and trained on.

    Raises:
        KeyError: the problem's prompts are not drawn by rule.
    """
    while True:
        a, b = (int(number) for number in numbers.integers(1, LARGEST + 1, 2))
        if is_held_out(f"{a}+{b}") == held_out:
            return Prompt(_QUESTIONS[problem].format(a=a, b=b), str(a + b))


def held_out(problem: str, numbers: np.random.Generator, count: int) -> list[Prompt]:
    """Return ``count`` sums that are never trained on. They are distinct if there are enough; otherwise each is drawn
    independently and some repeat.

    Raises:
        KeyError: the problem's prompts are not drawn by rule.
    """
    repeated = count > HELD_OUT
    prompts = list[Prompt]()
    while len(prompts) < count:
        prompt = drawn(problem, numbers, held_out=True)
        if repeated or prompt not in prompts:
            prompts.append(prompt)
    return prompts


def read(problem: str, text: str) -> Prompt:
    """Return the prompt with the text ``text``, and its answer.

    Raises:
        GrpoError: the problem has no such prompt.
    """
    numbers = range(1, LARGEST + 1)
    sums = {_QUESTIONS[problem].format(a=a, b=b): a + b for a in numbers for b in numbers}
    if text not in sums:
        raise GrpoError(tr("“{text}” is not among the prompts of this task.").format(text=text[:60]))
    return Prompt(text, str(sums[text]))


HELD_OUT = sum(is_held_out(f"{a}+{b}") for a in range(1, LARGEST + 1) for b in range(1, LARGEST + 1))
"""Number of sums that are never trained on."""
