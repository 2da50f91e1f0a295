"""A toy agent task: a model that can call a calculator before it answers.

A completion is a conversation in a single string. The model calls the tool with an expression in parentheses; the tool
replies with the value and a space, in tokens that the model did not write; then the model continues:
``47*8+56=(47*8)376 (376+56)432 432``. The calculator performs one operation at a time and replies ``? `` to anything
else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from grpo_core.config import LanguageTask
from grpo_core.lm.problems import OPERATIONS, Prompt, Verdict, answer, is_held_out
from grpo_core.lm.vocabulary import VOCABULARY, decode, encode
from grpo_core.text import tr

NAME = "calculator"
UNKNOWN = "?"
"""The tool's reply to an invalid call."""
OPEN, CLOSE = "(", ")"
_OPERATION = re.compile(r"(\d{1,4})([+*-])(\d{1,4})")
_NUMBER = re.compile(r"-?\d+")


def calculated(call: str) -> str:
    """Return the tool's reply to ``call``, the text between the parentheses."""
    found = _OPERATION.fullmatch(call)
    return str(OPERATIONS[found[2]](int(found[1]), int(found[3]))) if found else UNKNOWN


def expression(numbers: np.random.Generator) -> str:
    """Return a random product of two-digit numbers, or a product plus or minus a number, not negative."""
    if numbers.random() < 0.5:
        return f"{numbers.integers(12, 100)}*{numbers.integers(12, 100)}"
    while True:
        a, b, c = numbers.integers(12, 100), numbers.integers(2, 10), numbers.integers(12, 100)
        sign = "+" if numbers.random() < 0.5 else "-"
        if sign == "+" or a * b >= c:
            return f"{a}*{b}{sign}{c}"


def drawn(numbers: np.random.Generator, *, held_out: bool = False) -> Prompt:
    """Return a random prompt. One in eight is held out, and never trained on."""
    while True:
        text = expression(numbers)
        if is_held_out(text) == held_out:
            return prompt(text)


def prompt(text: str) -> Prompt:
    """Return the prompt that asks for the value of the expression ``text``."""
    return Prompt(text + "=", str(answer(text)))


class Calculator:
    """The tool's side of a completion, an implementation of :class:`grpo_core.lm.interface.Environment`.

    Args:
        calls: maximum number of calls that are answered; one more ends the completion.
    """

    def __init__(self, calls: int) -> None:
        self._calls = calls

    def reply(self, tokens: np.ndarray) -> list[int] | None:
        """Return the tool's tokens after a completion (L,) whose last token the model wrote. None if it ends there."""
        if VOCABULARY[tokens[-1]] != CLOSE:
            return []
        text = decode(tokens)
        if text.count(CLOSE) > self._calls:
            return None
        *_, (said, _) = exchanges(text)
        return encode(calculated(call_in(said)) + " ")


def environment(task: LanguageTask) -> Calculator | None:
    return Calculator(task.calls) if task.has_tool else None


def written(tokens: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return which tokens the model itself wrote, boolean (B, T).

    Args:
        tokens: (B, T), of completions.
        there: (B, T) boolean, True for real tokens.
    """
    own = np.array(there)
    for row in np.flatnonzero((tokens == encode(CLOSE)[0]).any(axis=-1)):
        text, place = decode(tokens[row][there[row]]), 0
        for said, answered in exchanges(text):
            place += len(said)
            own[row, place : place + len(answered)] = False
            place += len(answered)
    return own


def own(task: LanguageTask, tokens: np.ndarray) -> np.ndarray:
    """Return which tokens of a completion (T,) the model wrote, boolean (T,), whether or not the loss counts others."""
    there = np.ones((1, len(tokens)), dtype=bool)
    return np.asarray(written(tokens[None], there)[0] if task.has_tool else there[0])


def counted(task: LanguageTask, tokens: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return which tokens the loss counts, boolean (B, T): those the model wrote, or all, depending on ``task``."""
    return written(tokens, there) if task.has_tool and task.mask_tool else there


def final_answer(text: str) -> str:
    """Return the model's text after the tool's last reply."""
    *_, (last, answered) = exchanges(text)
    return "" if answered else last


def verdict(prompt: Prompt, text: str, *, ended: bool = True) -> Verdict:
    """Return the verdict on a completion: right or wrong, with or without the tool's help."""
    answers = [answered.strip() for _, answered in exchanges(text) if answered]
    last = final_answer(text)
    right = _NUMBER.fullmatch(last) is not None and int(last) == int(prompt.answer)
    if right:
        return Verdict(True, tr("right, calculated") if prompt.answer in answers else tr("right, without the tool"))
    if not ended:
        return Verdict(False, tr("cut off"))
    if not answers:
        return Verdict(False, tr("guessed"))
    if last and last in answers:
        return Verdict(False, tr("stopped half way"))
    return Verdict(False, tr("guessed after an error") if answers[-1] == UNKNOWN else tr("wrong after a call"))


def calls(text: str) -> int:
    return sum(bool(answered) for _, answered in exchanges(text))


def exchanges(text: str) -> Iterator[tuple[str, str]]:
    """Split a completion into pairs of the model's text and the tool's reply, which is empty in the last pair."""
    place = 0
    while (end := text.find(CLOSE, place) + 1) > 0 and end < len(text):
        answered = calculated(call_in(text[place:end])) + " "
        answered = answered[: len(text) - end]  # cut off at the end of the completion
        yield text[place:end], answered
        place = end + len(answered)
    yield text[place:], ""


def call_in(said: str) -> str:
    """Return the call at the end of the model's turn, or an empty string if no parenthesis is opened."""
    return said.removesuffix(CLOSE).rpartition(OPEN)[2] if OPEN in said else ""
