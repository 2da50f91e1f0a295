"""A check of a lesson against its runs: its answers, the truth of each reveal, other seeds, and the time per step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from app.display import draw_offscreen
from app.teaching.export.lesson_stage import WalkedStep, walked
from app.teaching.lessons.catalogue import lesson_called
from app.teaching.lessons.readable import number_text, reads_as
from grpo_core.teaching.lessons import Lesson, Prediction, as_told, spoken
from grpo_core.text import plural, tr

SEEDS = 5
"""Number of other seeds with which a lesson is checked."""
SLOW = 20.0
"""Duration of a step in seconds above which a class has to wait too long."""


@dataclass(kw_only=True)
class StepReport:
    """Findings about one step from all runs.

    Attributes:
        place: index of the step.
        seconds: duration with the lesson's own seed.
        said: messages of interest to a teacher.
    """

    place: int
    seconds: float
    said: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def check_lesson(lesson: Lesson, seeds: int = SEEDS, poll: Callable[[], None] = lambda: None) -> Iterator[StepReport]:
    """Run every step of ``lesson`` with its own seed and with others, and yield a report per step.

    Args:
        seeds: number of other seeds, 0 or more.
        poll: called after each step with each seed; an exception from it ends the check.

    Raises:
        GrpoError: a step is still being computed after ten minutes.
    """
    others = [tuple(_polled(walked(lesson.with_other_seeds(number + 1)), poll)) for number in range(seeds)]
    for step in _polled(walked(lesson), poll):
        yield _report(lesson, step, [other[step.place] for other in others])


def _polled(steps: Iterator[WalkedStep], poll: Callable[[], None]) -> Iterator[WalkedStep]:
    for step in steps:
        poll()
        yield step


def _report(lesson: Lesson, step: WalkedStep, others: Sequence[WalkedStep]) -> StepReport:
    report = StepReport(place=step.place, seconds=step.seconds)
    predict = lesson.steps[step.place].predict
    if step.problem:
        report.faults.append(step.problem)
    elif predict is not None:
        value = math.nan if step.value is None else step.value
        _place_answer(report, predict, value)
        if not math.isnan(value):
            _check_reveal(report, predict, value)
            if lesson.steps[step.place].recorded:
                report.said.append(tr("It is read from a recorded run, which has no other seeds."))
            elif predict.seeds == "own":
                report.said.append(tr("It asks about these very samples, so other seeds are not compared."))
            else:
                compare_seeds(report, predict, value, others)
    minutes = lesson.steps[step.place].minutes
    if minutes and step.seconds > 60 * minutes:
        report.faults.append(tr("It takes longer than the {minutes:g} min given in its notes.").format(minutes=minutes))
    elif step.seconds > SLOW:
        report.said.append(tr("This step takes long; have something to say while it is computed."))
    return report


def _place_answer(report: StepReport, predict: Prediction, value: float) -> None:
    """Report where the answer is in the range of possible predictions."""
    said, fault = report.said.append, report.faults.append
    if math.isnan(value):
        fault(tr("The run has no such number."))
        return
    number = number_text(predict, value)
    if predict.number:
        number = tr("{name}: {value}").format(name=predict.number, value=number)
    right = [option.text for option in predict.options.values() if value in option]
    match predict.kind:
        case "choice":
            if right:
                said(tr("Answer: “{choice}” ({number}).").format(choice=tr("” and “").join(right), number=number))
            else:
                fault(tr("No choice contains the answer ({number}).").format(number=number))
            if other := reads_as(predict, value):
                pattern = tr("Its number, {number}, reads like one of “{choice}”: leave out “number”.")
                fault(pattern.format(number=number, choice=other))
        case "direction":
            said(tr("Answer: {way} ({number}).").format(way=right[0], number=number))
        case "number" | "ghost":
            ends = tr("{low:g} to {high:g}").format(low=predict.low, high=predict.high)
            if predict.low <= value <= predict.high:
                share = (value - predict.low) / (predict.high - predict.low)
                pattern = tr("Answer: {number}, at {share:.0%} of the scale from {ends}.")
                said(pattern.format(number=number, share=share, ends=ends))
            else:
                fault(tr("The answer ({number}) is outside its range from {ends}.").format(number=number, ends=ends))
        case kind:
            raise ValueError(f"{kind!r} is not a kind of prediction")


def _check_reveal(report: StepReport, predict: Prediction, value: float) -> None:
    if not predict.reveal:
        return
    low, high = predict.holds
    if (low, high) == (-math.inf, math.inf):
        report.said.append(tr("The reveal has no “holds”: it is shown whatever the run says."))
    elif not as_told(predict, value):
        pattern = tr("The reveal does not hold: {value:.6g} is outside “holds” from {low:g} to {high:g}.")
        report.faults.append(pattern.format(value=value, low=low, high=high))


def compare_seeds(report: StepReport, predict: Prediction, value: float, others: Sequence[WalkedStep]) -> None:
    """Report how many of the other seeds agree with the answer, judged as predictions are scored."""
    if not others:
        return
    values = [math.nan if other.value is None else other.value for other in others]
    agreed, count = sum(agrees(predict, value, other) for other in values), len(values)
    if all(other == value for other in values):
        same = plural("The same with {count} other seed.", "The same with each of {count} other seeds.", count)
        report.said.append(same.format(count=count))
        return
    found = [other for other in values if not math.isnan(other)]
    span = tr(", none has this number")
    if found:
        span = tr(", {low:.4g} to {high:.4g}").format(low=min(found), high=max(found))
    agree = plural(
        "{agreed} of {count} other seed agrees{span}.", "{agreed} of {count} other seeds agree{span}.", count
    )
    report.said.append(agree.format(agreed=agreed, count=count, span=span))
    untrue = count - sum(is_true_of(predict, value, other) for other in values)
    if 2 * untrue > count:
        pattern = tr("With {untrue} of {count} other seeds, what is said about the answer would be untrue.")
        report.faults.append(pattern.format(untrue=untrue, count=count))


def agrees(predict: Prediction, value: float, other: float) -> bool:
    """Return whether what is said about ``value`` :func:`is_true_of` the answer ``other`` of another seed, and a number
    is as near as a right guess.
    """
    near = bool(predict.options) or abs(value - other) <= predict.within
    return near and is_true_of(predict, value, other)


def is_true_of(predict: Prediction, value: float, other: float) -> bool:
    """Return whether what is said about the answer ``value`` is also true of ``other``, that of another seed."""
    if math.isnan(other) or (predict.reveal and not as_told(predict, other)):
        return False
    options = predict.options.values()
    return not options or any(value in option and other in option for option in options)


def lines_of(lesson: Lesson, report: StepReport) -> Iterator[str]:
    step = lesson.steps[report.place]
    head = spoken(step.predict.ask if step.predict is not None else step.text)
    yield tr("Step {place} of {count}, {seconds:.1f} s: {head}").format(
        place=report.place + 1, count=len(lesson.steps), seconds=report.seconds, head=head
    )
    yield from (f"  {sentence}" for sentence in report.said)
    yield from (tr("  Fault: {sentence}").format(sentence=sentence) for sentence in report.faults)


def answer_rehearsal(name: str, *, poll: Callable[[], None]) -> Iterator[object]:
    """Yield the report of each step as JSON: its lines, and its number of faults. This runs in a child process.

    Args:
        name: the lesson's id, or its file.
        poll: called after each step with each seed.
    """
    draw_offscreen()
    lesson = lesson_called(name)
    for report in check_lesson(lesson, poll=poll):
        yield {"lines": [*lines_of(lesson, report)], "faults": len(report.faults)}
