"""Checks for content of a well-formed lesson file that no run can support."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from grpo_core.config import Settings
from grpo_core.config.bandit_task import LANDSCAPES, BanditTask
from grpo_core.explain import Quantity
from grpo_core.teaching.lessons.lesson import Choice, LessonStep, Prediction
from grpo_core.teaching.lessons.table import Table
from grpo_core.text import tr

WIDEST_GAP = 1e-3
"""Maximum gap between two choices. A gap this small, such as from 0 to 1e-9, only separates zero from non-zero."""


def check_choices(t: Table, choices: Sequence[Choice]) -> None:
    """Reject choices whose ranges overlap or leave a gap into which an answer could fall.

    Two ranges can share an endpoint. Consecutive integers leave no gap, because the answer is then a count or a code.

    Raises:
        LessonError: two choices overlap or leave a gap.
    """
    ordered = sorted(choices, key=lambda choice: (choice.low, choice.high))
    for one, other in pairwise(ordered):
        if other.low < one.high or (other.low, other.high) == (one.low, one.high):
            raise t.error(
                "choices",
                tr("“{one}” and “{other}” overlap; two choices can share an end, but nothing more").format(
                    one=one.text, other=other.text
                ),
            )
        counted = one.high.is_integer() and other.low.is_integer() and other.low - one.high == 1
        if other.low - one.high > WIDEST_GAP and not counted:
            raise t.error(
                "choices",
                tr("no choice covers an answer between {low:g} (“{one}”) and {high:g} (“{other}”)").format(
                    low=one.high, one=one.text, high=other.low, other=other.text
                ),
            )


def check_step(t: Table, step: LessonStep, settings: Settings) -> None:
    """Reject a step that refers to an update, a completion or an action that its run does not have.

    Raises:
        LessonError: an item is out of range; the message names it and the range.
    """
    if not step.recorded and not settings.is_language:
        _check_places(t, "row", Quantity("reward", row=step.row), settings)
        if step.explain is not None:
            _check_places(t, "explain", step.explain, settings)
        if step.predict is not None and step.predict.answer.quantity is not None:
            _check_places(t.table("predict"), "answer", step.predict.answer.quantity, settings)
    if step.predict is not None:
        _check_updates(t.table("predict"), step.predict, step)


def _check_updates(t: Table, predict: Prediction, step: LessonStep) -> None:
    if predict.start is not None and predict.start > step.update:
        raise t.error(
            "start",
            tr("the question begins at update {start}, after the step's own update {update}").format(
                start=predict.start, update=step.update
            ),
        )
    for key, update in (("update", predict.answer.update), ("since", predict.answer.since)):
        if update is not None and update > step.update and not step.recorded:
            raise t.table("answer").error(
                key,
                tr("update {wanted} is after the end of the step's run, at update {update}").format(
                    wanted=update, update=step.update
                ),
            )
    at = step.update if predict.answer.update is None else predict.answer.update
    if predict.answer.since is not None and predict.answer.since >= at:
        raise t.table("answer").error(
            "since", tr("a change since update {since} must end at a later update").format(since=predict.answer.since)
        )


def _check_places(t: Table, key: str, quantity: Quantity, settings: Settings) -> None:
    """Check that a bandit's run has the row, context, action and so on of the address ``quantity``."""
    task = settings.task
    assert isinstance(task, BanditTask)
    actions = task.actions if task.landscape in LANDSCAPES else None  # a chain has those of its automaton
    for name, place, count in (
        (tr("completion"), quantity.row, settings.learner.group_size * task.prompts),
        (tr("action"), quantity.action, actions),
        (tr("prompt"), quantity.group, task.prompts),
    ):
        if place is not None and count is not None and place >= count:
            raise t.error(
                key,
                tr("there is no {what} {place}; the run has {count}").format(what=name, place=place + 1, count=count),
            )
