"""Prompts of a run, and rewards of completions: rule-based parts, weighted by the settings."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from grpo_core.config import LanguageTask, Settings
from grpo_core.config.language import Completion
from grpo_core.errors import GrpoError
from grpo_core.lm import calculator, problems
from grpo_core.lm import word_tasks as words
from grpo_core.lm.final_answer import marked, number, numbers_in, same
from grpo_core.lm.kept_prompts import prompts_of
from grpo_core.lm.patterns import matcher
from grpo_core.lm.problems import Prompt, Verdict
from grpo_core.lm.prompt_file import Prompts, located
from grpo_core.lm.vocabulary import VOCABULARY
from grpo_core.record import Origin
from grpo_core.text import tr

WATCHED = 8
"""Number of held-out prompts whose likeliest completion every update records."""
HELD_OUT_SEED = 20_260_101
"""Seed of the held-out prompts, the same in every run of a task."""


class PromptSource:
    """Source of prompts, drawn by rule or taken from the user's file.

    Args:
        context: maximum number of tokens of prompt and completion together in the character model; None for a model
            whose tokenizer reads any text.

    Raises:
        GrpoError: the user's file cannot be used.
    """

    def __init__(self, task: LanguageTask, context: int | None) -> None:
        self.task = task
        self._own = prompts_of(task, context) if task.from_file else Prompts({})

    def drawn(self, numbers: np.random.Generator) -> list[Prompt]:
        """Return the P prompts of an update. The user's are not repeated as long as there are enough."""
        count = self.task.prompts
        if not self._own:
            return [_drawn(self.task, numbers) for _ in range(count)]
        places = self._trained_on
        order = numbers.permutation(len(places))
        return [self._own[int(places[order[i % len(places)]])] for i in range(count)]

    def own_to_train_on(self) -> list[Prompt]:
        """Return the user's prompts that are not held out, or an empty list if prompts are drawn by rule."""
        return [self._own[int(place)] for place in self._trained_on]

    @cached_property
    def held_out(self) -> list[Prompt]:
        """The fixed prompts on which accuracy is measured: of sixteen or more of the user's, every eighth."""
        count = self.task.held_out
        if self._own:
            return self._own[: 8 * count : 8] if len(self._own) >= 16 else self._own[:count]
        return _fixed(self.task, count)

    @cached_property
    def watched(self) -> tuple[Prompt, ...]:
        """The held-out prompts that a run watches. They do not change when its difficulty changes during the run."""
        if self._own or self.task.in_words or self.task.has_tool:
            return tuple(self.held_out[:WATCHED])
        return tuple(_fixed(dataclasses.replace(self.task, difficulty="mixed"), min(WATCHED, self.task.held_out)))

    def prompt(self, text: str) -> Prompt:
        """Return the prompt with the text ``text``, and its answer.

        Raises:
            GrpoError: the user's prompts do not include it.
        """
        if not self._own and self.task.in_words:
            return words.read(self.task.problem, text)
        if self.task.has_tool:
            return calculator.prompt(text.rstrip("="))
        if not self._own:
            return Prompt(text, str(problems.answer(text.rstrip("="))))
        prompt = self._own.find(text)
        if prompt is None:
            raise GrpoError(
                tr("“{text}” is no longer among the prompts of {name}.").format(
                    text=text, name=located(self.task.file).name
                )
            )
        return prompt

    @cached_property
    def _trained_on(self) -> np.ndarray:
        places = np.arange(len(self._own))
        return places if len(places) < 16 else places[places % 8 != 0]


def _fixed(task: LanguageTask, count: int) -> list[Prompt]:
    numbers = np.random.default_rng(HELD_OUT_SEED)
    if task.in_words:
        return words.held_out(task.problem, numbers, count)
    return [_drawn(task, numbers, held_out=True) for _ in range(count)]


def _drawn(task: LanguageTask, numbers: np.random.Generator, *, held_out: bool = False) -> Prompt:
    if task.in_words:
        return words.drawn(task.problem, numbers, held_out=held_out)
    if task.has_tool:
        return calculator.drawn(numbers, held_out=held_out)
    return problems.drawn(task.difficulty, numbers, held_out=held_out)


def parts(task: LanguageTask, prompt: Prompt, text: str, tokens: int = 0) -> tuple[float, ...]:
    """Return the parts of the reward of one completion, before weighting.

    Args:
        text: the completion, without its end-of-sequence token.

    Raises:
        GrpoError: the rule failed; the message contains the completion and the reason.
    """
    completion = Completion(
        task=task,
        question=prompt.text,
        answer=prompt.answer,
        text=text,
        tokens=tokens,
        right=lambda: _is_right(task, prompt.answer, text),
        well_formed=lambda: problems.well_formed(prompt.text, text),
        calls=lambda: calculator.calls(text),
        found=lambda pattern: matcher().found(pattern, text),
        marks=lambda: bool(marked(text)),
    )
    try:
        return tuple(float(reward.score(completion)) for reward in task.rewards.values())
    except (ValueError, OverflowError, GrpoError) as error:
        raise GrpoError(
            tr("The completion “{text}” to “{text2}” could not be scored: {error}.").format(
                text=text[:60], text2=prompt.text, error=error
            )
        ) from None


def rewards(task: LanguageTask, table: np.ndarray) -> np.ndarray:
    """Return the reward of each completion, the weighted sum of its parts: (B, K) -> (B,)."""
    return np.asarray(table @ np.array(task.part_weights))


def reward_range(task: LanguageTask) -> tuple[float, float] | None:
    """Return the lowest and the highest reward that a completion can earn.

    None if it is unknown: the task pays for a part without bounds, or for more than right answers to prompts from a
    file.
    """
    weights, (_, *others) = task.part_weights, task.rewards.values()
    if any(w and (task.from_file or not part.bounded) for w, part in zip(weights[1:], others, strict=True)):
        return None
    return sum(min(weight, 0.0) for weight in weights), sum(max(weight, 0.0) for weight in weights)


def _is_right(task: LanguageTask, answer: str, text: str) -> bool:
    if task.has_tool:
        return _number(calculator.final_answer(text), answer)
    return CHECKERS[task.checker if task.from_file else "number"](text, answer)


def _number(text: str, answer: str) -> bool:
    """Return whether the last number of ``text``, after its last “=” if any, is the answer."""
    numbers = numbers_in(text.rpartition("=")[2])
    return bool(numbers) and math.isclose(float(numbers[-1]), float(answer), rel_tol=1e-9, abs_tol=1e-12)


def _final(text: str, answer: str) -> bool:
    """Return whether ``text`` marks the answer as final. If it marks none, its last number or the whole text counts."""
    final = marked(text)
    if final is None:
        final = (numbers_in(text) or [""])[-1] if number(answer) is not None else text
    return same(final, answer)


CHECKERS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda text, answer: text.strip() == answer,
    "number": _number,
    "regex": lambda text, answer: matcher().found(answer, text),
    "final": _final,
}


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


def origin(settings: Settings) -> Origin:
    """Return the origin of a run. It has no distributions, since only the model knows its policy.

    Raises:
        GrpoError: the user's prompts cannot be used.
    """
    source = PromptSource(settings.language, settings.model.context)
    return Origin(
        settings=settings,
        vocabulary=VOCABULARY,
        prompts=(),
        reward_names=settings.language.part_titles,
        watched=tuple(prompt.text for prompt in source.watched),
    )
