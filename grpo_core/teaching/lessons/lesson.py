"""A lesson as data: questions, steps, predictions, where the live run answers them, and how they are scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grpo_core.config import Settings
from grpo_core.explain import Numbers, Quantity
from grpo_core.metrics import at_start
from grpo_core.record import Origin, Step
from grpo_core.text import tr

KINDS = ("direction", "number", "choice", "ghost")
"""Kinds of predictions: up, down or the same; a number; one of several options; the height of a bar."""

SHOWN = ("digits", "percent", "count")
"""Formats of an answer's number: up to three digits, a percentage, or an integer."""

SEEDS_APART = 10_000
"""Distance between the seeds of two blocks, more than any picture uses."""

STAGES = ("sample", "score", "normalize", "update")
"""Stages of an update that a step reveals."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """A term of a lesson's text, written in [brackets] in the text.

    Attributes:
        hover: its definition.
        click: its derivation; empty if there is none.
        latex: a formula shown below the derivation; empty if there is none.
    """

    hover: str
    click: str = ""
    latex: str = ""


@dataclass(frozen=True, kw_only=True)
class Teaching:
    """Notes for teachers of a lesson.

    Attributes:
        misconception: the usual misconception, in a student's words.
        say: what to ask, show and say about the misconception.
        disagrees: what to do if this run disagrees with the lesson's statements.
        analogy: an everyday analogy and its limits; empty if none helps.
    """

    misconception: str
    say: str
    disagrees: str
    analogy: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The number of the live run with which a prediction is compared. Exactly one of the first three fields is set.

    Attributes:
        metric: a key of ``METRICS``.
        quantity: the address of a number of an update.
        check: name of a number computed by the lesson's interactive.
        update: the update at which the number is read; None for the step's own.
        since: the update relative to which the change of the number is scored; None to score the number itself.
    """

    metric: str = ""
    quantity: Quantity | None = None
    check: str = ""
    update: int | None = None
    since: int | None = None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of several options. The correct one is the one whose range, endpoints included, contains the answer."""

    text: str
    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A question about a number that is asked before a step shows the number.

    Attributes:
        kind: one of :data:`KINDS`.
        within: tolerance for a number; for a direction, the largest change that still counts as "the same".
        low, high: the range of a number or a bar.
        shown: how the number is formatted, one of :data:`SHOWN`.
        number: name of the answer, such as "Gradient norm"; empty for a choice whose number is only a code.
        start: the update at which the run of this step is shown while the question is open; None to show the previous
            step meanwhile.
        show: what the interactive shows while the question is open; empty if ``start`` decides that alone.
        state: changes to the state of the interactive while the question is open.
        seeds: whether the question could be asked of "any" seed, or speaks of the samples of the lesson's "own".
        hides: parts of the interactive that would reveal the answer; they are hidden while the question is open.
        reveal: a sentence shown with the result if the answer is within ``holds``.
        holds: the range in which that sentence is true, endpoints included; for other answers, the sentence is not
            shown.
    """

    kind: str
    ask: str
    answer: Answer
    within: float = 0.0
    low: float = 0.0
    high: float = 1.0
    shown: str = "digits"
    choices: tuple[Choice, ...] = ()
    number: str = ""
    start: int | None = None
    show: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    seeds: str = "any"
    hides: tuple[str, ...] = ()
    reveal: str = ""
    holds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def options(self) -> dict[int, Choice]:
        """The answers to choose from, by the guess that stands for each: the index of a choice, or the sign of a
        direction. Empty for a number.

        Raises:
            ValueError: the prediction is of an unknown kind.
        """
        match self.kind:
            case "direction":
                above = math.nextafter(self.within, math.inf)
                up, down = Choice(text=tr("▲ up"), low=above), Choice(text=tr("▼ down"), high=-above)
                return {1: up, 0: Choice(text=tr("● the same"), low=-self.within, high=self.within), -1: down}
            case "choice":
                return dict(enumerate(self.choices))
            case "number" | "ghost":
                return {}
            case kind:
                raise ValueError(f"{kind!r} is not a kind of prediction")


@dataclass(frozen=True, kw_only=True)
class LessonStep:
    """One screen of a lesson. If it has a prediction, the rest is shown once the prediction is made or skipped.

    Attributes:
        text: at most 40 words.
        still: the text for pages and films, in which nothing can be dragged; empty if it is the same.
        speaker: notes that only the speaker sees.
        minutes: time it takes in class; 0 if the author gives none.
        base: the settings to which those of the step are applied; None for those at the start of the lesson.
        update: the update that is shown; the run is trained up to it.
        settings: dotted path -> value, applied on top of the previous steps.
        recorded: name of a recorded run that is shown instead of one of the lesson's own; empty for none.
        stage: how much of the update is revealed, one of :data:`STAGES`.
        passed: the inner pass, counted from 0; −1 for the last.
        row: the selected completion, counted from 0.
        token: its selected token, counted from 0.
        show: what the interactive shows, in the interactive's own terms.
        state: the state of the interactive, in the interactive's own terms.
        hides: parts of the interactive that stay hidden here because a later question asks about them.
        knobs: settings that can be changed here.
        explain: the number that is explained next to the lesson.
        opening: what is shown while that question is open; None if there is no question.
    """

    text: str
    still: str = ""
    speaker: str = ""
    minutes: float = 0.0
    base: Settings | None = None
    update: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    recorded: str = ""
    stage: str = "update"
    passed: int = -1
    row: int | None = None
    token: int = 0
    show: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    hides: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    explain: Quantity | None = None
    predict: Prediction | None = None
    opening: LessonStep | None = None

    @property
    def to_read(self) -> str:
        """The text for pages and films."""
        return self.still or self.text


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson.

    Attributes:
        id: stable name under which progress is stored.
        number: its position in the list.
        title: the question that it answers.
        gist: its subject in a few words, for the list.
        interactive: name of its small interactive; empty if it only uses panels.
        start: settings of its run.
        steps: the screens, in order, with their settings already combined.
        words: definitions of the terms in brackets.
        teaching: notes for the teacher; None if the author has written none.
        covers: rows of the list of features.
        block: number of the block of seeds of its pictures with many runs; see :meth:`with_other_seeds`.
        digest: digest of its file, independent of line endings.
    """

    id: str
    number: int
    title: str
    gist: str = ""
    interactive: str = ""
    start: Settings = field(default_factory=Settings)
    steps: tuple[LessonStep, ...] = ()
    words: Mapping[str, Word] = field(default_factory=dict)
    teaching: Teaching | None = None
    sources: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    block: int = 0
    digest: str = ""

    def settings_of(self, step: LessonStep, turned: Mapping[str, Any] | None = None) -> Settings:
        """Return the settings of the run of ``step``, with the changed knobs in ``turned`` applied.

        Raises:
            SettingsError: a knob has a value that is not allowed.
        """
        return (step.base or self.start).replace({**step.settings, **(turned or {})})

    def with_other_seeds(self, block: int) -> Lesson:
        """Return the same lesson with other seeds for all of its runs except the recorded ones.

        No seed of one ``block`` (1, 2, ...) occurs in another, even if a picture uses those that follow the run's.
        """
        seed = self.start.seed + block * SEEDS_APART

        def reseeded(step: LessonStep) -> LessonStep:
            return replace(
                step,
                base=(step.base or self.start).replace({"seed": seed}),
                settings={path: value for path, value in step.settings.items() if path != "seed"},
                opening=None if step.opening is None else reseeded(step.opening),
            )

        return replace(
            self,
            block=block,
            start=self.start.replace({"seed": seed}),
            steps=tuple(reseeded(step) for step in self.steps),
        )

    @property
    def minutes(self) -> float:
        """Total minutes in class, according to the author's notes."""
        return sum(step.minutes for step in self.steps)

    @property
    def questions(self) -> dict[int, Prediction]:
        """The predictions by the index of their step, in order."""
        return {place: step.predict for place, step in enumerate(self.steps) if step.predict is not None}

    def asked_before_text(self, place: int) -> int:
        """Return how many questions are answered before the text of the step at index ``place``, its terms and its
        picture may be seen: its own and those of earlier steps.

        The window, films, pages and handouts all keep this order.
        """
        return sum(step.predict is not None for step in self.steps[: place + 1])


SIGNS = {-1: "down", 0: "same", 1: "up"}
"""Sign of a change -> name of the direction."""


def answered(
    answer: Answer, update: int, origin: Origin, step: Callable[[int], Step | None], check: Callable[[str], float]
) -> float:
    """Read the number that ``answer`` names from the run.

    Args:
        update: the update at which it is read if the answer does not name one.
        check: function that returns a number of the interactive by name.

    Returns:
        The number, or its change. NaN if the run does not have it.
    """
    at = update if answer.update is None else answer.update
    value = _value(answer, at, origin, step, check)
    return value if answer.since is None else value - _value(answer, answer.since, origin, step, check)


def _value(
    answer: Answer, at: int, origin: Origin, step: Callable[[int], Step | None], check: Callable[[str], float]
) -> float:
    if answer.check:
        return check(answer.check)
    if at == 0:
        return at_start(origin).get(answer.metric, math.nan)
    record = step(at)
    if record is None:
        return math.nan
    return float(Numbers(record)[answer.quantity or Quantity(answer.metric)])


def in_words(prediction: Prediction, guess: float | None) -> str:
    """Return a guess as text: a number, a direction, or the chosen option."""
    if guess is None:
        return ""
    if not prediction.options:
        return repr(guess)
    return SIGNS[round(guess)] if prediction.kind == "direction" else prediction.options[round(guess)].text


def right(prediction: Prediction, guess: float, value: float) -> bool:
    """Return whether ``guess`` is correct if the run's number is ``value``.

    A guess is a number, or a key of ``prediction.options``.

    Raises:
        ValueError: the prediction is of an unknown kind.
    """
    if math.isnan(value):
        return False
    options = prediction.options
    return value in options[round(guess)] if options else abs(guess - value) <= prediction.within


CLOSE = 3.0
"""Maximum error of a number that counts as close, as a multiple of the tolerance for a correct answer."""


def close(prediction: Prediction, guess: float, value: float) -> bool:
    """Return whether the number ``guess`` just misses: not correct, but within ``CLOSE`` times the tolerance.

    Directions and choices are correct or wrong, never close.
    """
    if prediction.options or math.isnan(value):
        return False
    return prediction.within < abs(guess - value) <= CLOSE * prediction.within


def as_told(prediction: Prediction, value: float) -> bool:
    """Return whether the run agrees with the lesson's statement about the answer."""
    low, high = prediction.holds
    return low <= value <= high
