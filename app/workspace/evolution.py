"""Answers of a run's model to its fixed prompts, update by update, and its shares of right answers.

A few steps are read in every frame.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import IntFlag
from itertools import pairwise

import numpy as np

from app.workspace.answers import judged, verdict, watched
from app.workspace.run_handle import RunHandle
from grpo_core.errors import RunFileError
from grpo_core.lm.problems import Verdict
from grpo_core.lm.recorded_answers import recorded_answers
from grpo_core.lm.vocabulary import STOP
from grpo_core.record import Origin, Step
from grpo_core.texts import question_text

BUDGET = 0.005
"""Maximum time in seconds that reading takes per frame."""


class Mark(IntFlag):
    """The verdict on the answer to a prompt at one update, or the union over several.

    The value is zero if the answer could not be read.
    """

    RIGHT = 1
    WRONG = 2
    UNTOLD = 4
    CHANGED = 8


@dataclass(frozen=True)
class Change:
    """An update at which the answer to a prompt changed.

    Attributes:
        step: the first update with this answer.
        verdict: whether it is right, with a short description.
    """

    step: int
    text: str
    verdict: Verdict

    @property
    def mark(self) -> Mark:
        return {True: Mark.RIGHT, False: Mark.WRONG, None: Mark.UNTOLD}[self.verdict.right]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The last change of the answer to one prompt from wrong to right or back.

    Attributes:
        since: the update since which the answer has been right, or wrong, without interruption; 1 if from the start.
        former: the last answer before that, with the opposite verdict; None if there was none.
        exact: whether every update from the one before ``since`` on was read, so that no other change is missing.
    """

    since: int
    former: Change | None
    exact: bool


def answers_before_training(run: RunHandle) -> list[Change | None]:
    """Return the answers of a run's starting weights to its fixed prompts, as update 0.

    They come from the run's model once it has computed them, and before that from the copy stored with the weights.
    An entry is None if there is no copy.
    """
    origin = run.origin
    if run.first_answers is not None:
        rows = zip(origin.watched, run.first_answers, strict=True)
        return [Change(0, *judged(prompt, np.array(tokens), origin)) for prompt, tokens in rows]
    kept = recorded_answers(origin.settings, origin.watched)
    return [
        None if text is None else _change(prompt, text, origin)
        for prompt, text in zip(origin.watched, kept, strict=True)
    ]


def _change(prompt: str, text: str, origin: Origin) -> Change:
    bare = text.removesuffix(origin.vocabulary[STOP])
    return Change(0, bare, verdict(prompt, bare, origin, ended=bare != text))


class Evolution:
    """The answers of one run. Its file is read once, starting at the first update, and one byte per answer is kept.

    Attributes:
        prompts: the fixed prompts without duplicates; a run with few prompts watches some of them several times.
        places: for each prompt, its index among the watched prompts of the run.
        read: number of updates read so far.
        changes: for each prompt, its answers in order of appearance.
        marks: for each prompt, one byte per update; see :class:`Mark`.
    """

    def __init__(self, run: RunHandle) -> None:
        self.run = run
        self.read = 0
        self.prompts = tuple(dict.fromkeys(run.origin.watched))
        self.places = tuple(run.origin.watched.index(prompt) for prompt in self.prompts)
        self.changes: list[list[Change]] = [[] for _ in self.prompts]
        self.marks = [bytearray() for _ in self.prompts]
        self._lost = False

    @property
    def complete(self) -> bool:
        """Whether every recorded update that can be read has been read."""
        return self._lost or not self.prompts or self.read >= self.run.head

    def take(self, shown: Step | None = None, budget: float = BUDGET) -> None:
        """Read further updates for about ``budget`` seconds at most, but at least one.

        ``shown`` is the update on screen. Reading must not evict it from the few updates that the run keeps in memory.
        """
        end = time.perf_counter() + budget
        while not self.complete:
            try:
                step = self.run.step(self.read + 1)
            except RunFileError:
                step = None
            dropped = 0 if step is not None else self.run.kept(self.read + 1, forwards=True) - self.read - 1
            if step is not None:
                self._take(step)
            elif dropped:
                self._skip(dropped)
            elif self.read < (self.run.branched_at or 0):
                self._skip((self.run.branched_at or 0) - self.read)  # the file of the branch's parent is gone
            else:
                self._lost = True
            if time.perf_counter() >= end:
                break
        if shown is not None:
            self.run.keep(shown)

    def _take(self, step: Step) -> None:
        if step.watched_tokens is None:
            self._skip(1)
            return
        self.read += 1
        for marks, place, known in zip(self.marks, self.places, self.changes, strict=True):
            text, verdict = watched(step, place, self.run.origin)
            changed = not known or known[-1].text != text
            if changed:
                known.append(Change(self.read, text, verdict))
            marks.append(known[-1].mark | (Mark.CHANGED if changed and len(known) > 1 else 0))

    def _skip(self, count: int) -> None:
        self.read += count
        for marks in self.marks:
            marks.extend(bytes(count))

    def at(self, place: int, step: int) -> Change | None:
        """Return the answer to prompt ``place`` at update ``step``, or None if it has not been read."""
        if not 1 <= step <= self.read or not self.marks[place][step - 1]:
            return None
        return next((change for change in reversed(self.changes[place]) if change.step <= step), None)

    def turn(self, place: int, step: int) -> Turn | None:
        """Return the answer's last change from wrong to right or back for prompt ``place`` up to ``step``.

        None if the answer was not read.
        """
        if self.at(place, step) is None:
            return None
        past = [change for change in self.changes[place] if change.step <= step]
        last = len(past) - 1
        while last and past[last - 1].verdict.right is past[-1].verdict.right:
            last -= 1
        since = past[last].step
        exact = self.marks[place].find(0, max(since - 2, 0), step) < 0
        return Turn(since=since, former=past[last - 1] if last else None, exact=exact)

    def turns(self, place: int) -> list[int]:
        """Return the updates at which the answer changed from wrong to right or back."""
        return [
            after.step
            for before, after in pairwise(self.changes[place])
            if before.verdict.right is not after.verdict.right
        ]

    def columns(self, place: int, count: int) -> np.ndarray:
        """Return the marks of all updates up to the head in at most ``count`` columns, each a union of marks."""
        head = self.run.head
        marks = np.zeros(head, dtype=np.uint8)
        marks[: self.read] = np.frombuffer(self.marks[place], dtype=np.uint8)
        if head <= count:
            return marks
        return np.bitwise_or.reduceat(marks, np.arange(count) * head // count)

    def distinct(self, place: int) -> dict[str, Change]:
        """Return every answer ever given to prompt ``place``, by its text, with its first appearance."""
        first: dict[str, Change] = {}
        for change in self.changes[place]:
            first.setdefault(change.text, change)
        return first


GREEDY, SAMPLED = "accuracy_greedy", "accuracy"
"""Names of two series: answers to held-out prompts (NaN at updates without a measurement), and sampled completions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RightShare:
    """Measurements of the share of right answers in one run.

    Attributes:
        steps: (n,) updates with a measurement, ascending.
        shares: (n,) the measured share, from 0 to 1.
        asked: number of answers judged per measurement; 0 if unknown.
    """

    steps: np.ndarray
    shares: np.ndarray
    asked: int

    @classmethod
    def held_out(cls, run: RunHandle, cursor: int) -> RightShare | None:
        """Return the share of correct likeliest answers to held-out prompts before the updates up to ``cursor``.

        None if the prompts are the user's own and the run is trained on the watched ones, because then none is
        held out.
        """
        task = run.origin.settings.language
        own = task.problem == "own"
        return None if own and _trained_on(run) else cls._of(run, cursor, GREEDY, 0 if own else task.held_out)

    @classmethod
    def sampled(cls, run: RunHandle, cursor: int, completions: int) -> RightShare:
        """Return the share of correct sampled completions in each update up to ``cursor``.

        ``completions`` is the number of completions in that update (0 if unknown).
        """
        return cls._of(run, cursor, SAMPLED, completions)

    @classmethod
    def _of(cls, run: RunHandle, cursor: int, series: str, asked: int) -> RightShare:
        values = run.series[series].values[:cursor]
        measured = np.flatnonzero(np.isfinite(values))
        return cls(steps=measured + 1, shares=np.asarray(values[measured]), asked=asked)

    @property
    def measured_at(self) -> int:
        return int(self.steps[-1]) if len(self.steps) else 0

    @property
    def first(self) -> float | None:
        return float(self.shares[0]) if len(self.shares) else None

    @property
    def last(self) -> float | None:
        return float(self.shares[-1]) if len(self.shares) else None

    @property
    def right(self) -> int:
        """Number of right answers in the newest measurement, or 0 if there is none."""
        return round((self.last or 0.0) * self.asked)


def _trained_on(run: RunHandle) -> bool:
    """Return whether the first update was trained on a watched prompt."""
    step = run.step(1) if run.head else None
    if step is None or step.prompt_tokens is None:
        return False
    asked = (question_text(step, group, run.origin) for group in range(len(step.prompt_tokens)))
    return any(question in run.origin.watched for question in asked)
