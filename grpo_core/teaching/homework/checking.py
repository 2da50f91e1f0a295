"""Recomputation of what a homework file claims: its numbers from settings and seed, the rest from the lesson."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from grpo_core.config import Settings, settings_from_json
from grpo_core.config.bandit_task import BanditTask
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.learners import learner, origin
from grpo_core.record import Step
from grpo_core.rounding import DOUBLE, SINGLE, tolerance
from grpo_core.teaching.homework.file import LONGEST_NAME, Homework, HomeworkAnswer, HomeworkError
from grpo_core.teaching.lessons import Lesson, answered, in_words, right
from grpo_core.text import plural, tr

AGREES, DIFFERS, UNCHECKED, REFUSED = "agrees", "differs", "not checked", "refused"
MOST_UPDATES, MOST_SAMPLES = 5000, 2_000_000
"""Limits on a run that is recomputed: number of updates, and total number of completions times inner passes."""
Edition = Callable[[Homework], Lesson | None]
"""Function that returns the lesson of a homework. None if this program has no such edition of it."""
Walk = Callable[[Lesson], Mapping[int, float]]
"""Function that plays a lesson and returns its answers by step, counted from 0."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of recomputing a claimed number.

    Attributes:
        state: whether the number agrees, differs, was not checked, or was refused.
        why: explanation in a sentence; empty if the number agrees.
        value: the computed number; NaN if none was computed.
    """

    state: str
    why: str = ""
    value: float = math.nan


def answer_to(lesson: Lesson, number: int, guess: float | None, value: float | None) -> HomeworkAnswer:
    """Return the answer to the question of a step, judged by the functions that judge in the lesson.

    Args:
        number: the step, counted from 1.
        guess: the prediction, as in :class:`HomeworkAnswer`.
        value: the number of the run; NaN or None if the run has none.

    Raises:
        HomeworkError: the step asks no question, or ``guess`` is not one of its answers.
    """
    step = lesson.steps[number - 1] if 0 < number <= len(lesson.steps) else None
    if step is None or step.predict is None:
        raise HomeworkError(tr("This step of the lesson has no question."))
    predict, value = step.predict, math.nan if value is None else value
    if guess is not None and predict.options and guess not in predict.options:
        raise HomeworkError(tr("{guess!r} is not one of the answers.").format(guess=guess))
    return HomeworkAnswer(
        step=number,
        kind=predict.kind,
        guess=guess,
        said=in_words(predict, guess)[:LONGEST_NAME],
        right=guess is not None and right(predict, guess, value),
        value=value if math.isfinite(value) else None,
        answer=predict.answer,
        update=step.update,
        settings="" if step.recorded else lesson.settings_of(step).stored(),
    )


class Checker:
    """Recomputes claims. Each run is computed once for all students with claims about it.

    Args:
        edition: function that returns the lesson of a homework.
        walk: function that returns the answers that only the lesson's own picture can compute.
        poll: called before each update; an exception raised by it ends the work.
    """

    def __init__(
        self,
        edition: Edition = lambda homework: None,
        walk: Walk = lambda lesson: {},
        poll: Callable[[], None] = lambda: None,
    ) -> None:
        self._edition, self._walk, self._poll = edition, walk, poll
        self._walked: dict[str, Mapping[int, float]] = {}
        self._known: dict[tuple[str, object, int], float] = {}

    def judge(self, homework: Homework, answer: HomeworkAnswer) -> tuple[HomeworkAnswer, Verdict]:
        """Return an answer as the lesson judges it, with its guess and its claimed number, and the number's verdict.

        ``right`` is judged by the claimed number unless the run gives another one. It is None if the lesson is not
        available or no number is known.
        """
        lesson = self._edition(homework)
        if lesson is None:
            return replace(answer, right=None), self.check(homework, answer)
        try:
            asked = answer_to(lesson, answer.step, answer.guess, answer.value)
        except HomeworkError as error:
            return replace(answer, right=None), Verdict(state=REFUSED, why=str(error))
        verdict = self.check(homework, asked)
        value = verdict.value if verdict.state == DIFFERS or asked.value is None else asked.value
        if verdict.state == REFUSED or (verdict.state == UNCHECKED and math.isnan(value)):
            return replace(asked, right=None), verdict
        return replace(asked, right=answer_to(lesson, asked.step, asked.guess, value).right), verdict

    def check(self, homework: Homework, answer: HomeworkAnswer) -> Verdict:
        """Compare the number claimed in ``answer`` with a recomputed run, or say why that is not possible."""
        if answer.answer.check:
            lesson, place = self._edition(homework), answer.step - 1
            walked = {} if lesson is None else self._answers_of(lesson)
            predict = lesson.steps[place].predict if lesson is not None and place in walked else None
            if predict is None:
                return Verdict(
                    state=UNCHECKED,
                    why=tr("It came from the lesson's picture, and this edition is not available here."),
                )
            return _compared_with_picture(answer.value, walked[place], predict.holds)
        if not answer.settings:
            return Verdict(state=UNCHECKED, why=tr("It belongs to a recorded run."))
        try:
            settings = settings_from_json(answer.settings, homework.version)
        except GrpoError as error:
            return Verdict(state=REFUSED, why=str(error))
        if settings.is_language:
            return Verdict(state=UNCHECKED, why=tr("It belongs to a language model."))
        if settings.is_recorded:
            return Verdict(state=UNCHECKED, why=tr("It belongs to a recorded run."))
        if why := too_large(settings, answer):
            return Verdict(state=REFUSED, why=why)
        try:
            return _compared(answer.value, self._computed(settings, answer), DOUBLE)
        except Cancelled:
            raise
        except (GrpoError, IndexError, KeyError, ValueError) as error:
            return Verdict(state=REFUSED, why=tr("It cannot be computed: {error}").format(error=error))

    def _answers_of(self, lesson: Lesson) -> Mapping[int, float]:
        if lesson.digest not in self._walked:
            self._walked[lesson.digest] = self._walk(lesson)
        return self._walked[lesson.digest]

    def _computed(self, settings: Settings, answer: HomeworkAnswer) -> float:
        key = settings.to_json(), answer.answer, answer.update
        if key not in self._known:
            at = answer.update if answer.answer.update is None else answer.answer.update
            wanted = {at, answer.answer.since or 0}
            steps: dict[int, Step] = {}
            run = iter(learner(settings))
            for number in range(1, max(wanted) + 1):
                self._poll()
                step = next(run)
                if number in wanted:
                    steps[number] = step
            self._known[key] = answered(
                answer.answer, answer.update, origin(settings), steps.get, lambda check: math.nan
            )
        return self._known[key]


def too_large(settings: Settings, answer: HomeworkAnswer) -> str:
    """Return why a run would take too long to recompute. Empty if it would not."""
    assert isinstance(settings.task, BanditTask)
    updates = max(answer.update, answer.answer.update or 0, answer.answer.since or 0)
    samples = updates * settings.learner.group_size * settings.task.prompts * settings.learner.mu
    if updates > MOST_UPDATES or samples > MOST_SAMPLES:
        return plural(
            "Its run is too large to be recomputed: {updates:,} update, {samples:,} completions.",
            "Its run is too large to be recomputed: {updates:,} updates, {samples:,} completions.",
            updates,
        ).format(updates=updates, samples=samples)
    return ""


def _compared_with_picture(claimed: float | None, computed: float, holds: tuple[float, float]) -> Verdict:
    """Compare a number with that of a lesson's picture, whose records can be in float32 and whose training can amplify
    the rounding of another kind of processor. ``holds``: where the lesson says that the number is for every seed.
    """
    verdict, (low, high) = _compared(claimed, computed, SINGLE), holds
    if verdict.state != DIFFERS or claimed is None or not -math.inf < low <= claimed <= high < math.inf:
        return verdict
    sentence = tr(
        "The homework claims {claimed!r}, but the run gives {computed!r} here. The lesson allows both: another kind of "
        "processor rounds differently, and training can amplify that."
    ).format(claimed=claimed, computed=computed)
    return Verdict(state=UNCHECKED, why=sentence, value=computed)


def _compared(claimed: float | None, computed: float, precision: float) -> Verdict:
    if math.isnan(computed):
        return (
            Verdict(state=AGREES) if claimed is None else Verdict(state=DIFFERS, why=tr("The run has no such number."))
        )
    if claimed is None:
        return Verdict(state=UNCHECKED, why=tr("No number is claimed."), value=computed)
    if abs(claimed - computed) <= tolerance(precision, 1.0, claimed, computed):
        return Verdict(state=AGREES, value=computed)
    sentence = tr("The homework claims {claimed!r}, but the run gives {computed!r}.").format(
        claimed=claimed, computed=computed
    )
    return Verdict(state=DIFFERS, why=sentence, value=computed)
