"""A lesson as data: questions, steps, predictions and where the live run holds their answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grpo_core.config import Settings
from grpo_core.explain import Quantity

KINDS = ("direction", "number", "choice", "ghost")
"""Kinds of predictions: up, down or the same. A number. One of several texts. The height of a bar."""

SHOWN = ("digits", "percent", "count")
"""Formats of an answer's number: up to three digits, a percentage, or a whole number."""

STAGES = ("sample", "score", "normalize", "update")
"""Stages of an update that a step reveals."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """A term of a lesson's text, written there in [brackets].

    Attributes:
        hover: its definition.
        click: its derivation, or empty.
        latex: a formula that is below it, or empty.
    """

    hover: str
    click: str = ""
    latex: str = ""


@dataclass(frozen=True, kw_only=True)
class Teaching:
    """Notes for whoever gives a lesson.

    Attributes:
        misconception: the usual one, as a student says it.
        say: what to ask, show and say about it.
        disagrees: what to do where this run disagrees with the lesson's sentences.
        analogy: something from everyday life that works alike, and where the likeness ends; empty where none helps.
    """

    misconception: str
    say: str
    disagrees: str
    analogy: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The number of the live run that a prediction is scored against. Exactly one of the first three fields is set.

    Attributes:
        metric: a key of ``METRICS``.
        quantity: the address of a number of an update.
        check: a number that the lesson's interactive computes.
        update: the update it is read at; None for the step's own.
        since: the number's change since that update is what counts; None for the number itself.
    """

    metric: str = ""
    quantity: Quantity | None = None
    check: str = ""
    update: int | None = None
    since: int | None = None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of several texts. The right one is that whose range, ends included, contains the answer."""

    text: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The number to be predicted before a step shows it.

    Attributes:
        kind: one of :data:`KINDS`.
        ask: the question.
        answer: where the answer comes from.
        within: how far off a number may be; for a direction, how large a change still is "the same".
        low, high: the range of a number or a bar.
        choices: of a choice.
        shown: how its number is read, of :data:`SHOWN`.
        number: what the answer is called, such as "Gradient norm"; empty for a choice whose number is only a code.
        start: the update at which the run of this step is shown while the question is open; None where the step
            before is shown meanwhile.
        hides: parts of the interactive that would reveal the answer; they are hidden while the question is open.
        reveal: a sentence shown with the result, as long as the answer lies in ``holds``.
        holds: the range in which that sentence is true, ends included. Outside, the run is believed instead.
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
    hides: tuple[str, ...] = ()
    reveal: str = ""
    holds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def counts(self) -> bool:
        """Whether the answer is a whole number."""
        return self.shown == "count"


@dataclass(frozen=True, kw_only=True)
class LessonStep:
    """One screen. With a prediction, everything else of it comes once that is placed or skipped.

    Attributes:
        text: at most 40 words.
        speaker: notes that only the speaker sees.
        minutes: that it takes before a class; 0 where the author does not say.
        base: what its settings are on top of; None for the start of the lesson.
        update: the update that is shown; the run is trained that far.
        settings: dotted path -> value, on top of the steps before.
        recorded: name of a recorded run that is shown in place of one of the lesson's own; empty for those.
        stage: how much of the update is revealed, of :data:`STAGES`.
        passed: the inner pass, counted from 0; −1 for the last.
        row: the completion that is selected, counted from 0.
        show: what the interactive shows, in its own words.
        state: what the interactive is set to, in its own words.
        hides: parts of the interactive that stay hidden here, because a later question asks about them.
        knobs: settings that can be turned here.
        panels: panels beside the lesson.
        explain: the number that is explained beside it.
        predict: what is asked before.
        opening: what is shown while that question is open; None without a question.
    """

    text: str
    speaker: str = ""
    minutes: float = 0.0
    base: Settings | None = None
    update: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    recorded: str = ""
    stage: str = "update"
    passed: int = -1
    row: int | None = None
    show: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    hides: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    explain: Quantity | None = None
    predict: Prediction | None = None
    opening: LessonStep | None = None


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson.

    Attributes:
        id: stable name, under which progress is kept.
        number: its place in the list.
        title: a question.
        gist: what it is about, in a few words for the list.
        interactive: name of the small interactive in it; empty for panels alone.
        start: settings of its run.
        steps: the screens, in order; their settings are on top of one another already.
        words: what is behind the terms in brackets.
        teaching: notes for whoever gives it; None where the author has none.
        sources: papers and programs.
        covers: rows of the list of features.
        digest: of its file, whatever its line endings are.
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
    digest: str = ""

    def settings_at(self, place: int, turned: Mapping[str, Any] | None = None) -> Settings:
        """Settings of the run of step ``place``, knobs that were ``turned`` included.

        Raises:
            SettingsError: a knob is where it may not.
        """
        return self.settings_of(self.steps[place], turned)

    def settings_of(self, step: LessonStep, turned: Mapping[str, Any] | None = None) -> Settings:
        """Settings of the run of ``step``, knobs that were ``turned`` included.

        Raises:
            SettingsError: a knob is where it may not.
        """
        return (step.base or self.start).replace({**step.settings, **(turned or {})})

    def with_seed(self, seed: int) -> Lesson:
        """The same lesson with each of its runs but the recorded ones under another seed."""

        def reseeded(step: LessonStep) -> LessonStep:
            return replace(
                step,
                base=(step.base or self.start).replace({"seed": seed}),
                settings={path: value for path, value in step.settings.items() if path != "seed"},
                opening=None if step.opening is None else reseeded(step.opening),
            )

        return replace(
            self, start=self.start.replace({"seed": seed}), steps=tuple(reseeded(step) for step in self.steps)
        )

    @property
    def minutes(self) -> float:
        """Total minutes in class, by the author's notes."""
        return sum(step.minutes for step in self.steps)

    @property
    def asked(self) -> int:
        """Number of predictions."""
        return sum(step.predict is not None for step in self.steps)
