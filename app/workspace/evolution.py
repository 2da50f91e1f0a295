"""What a run's model answers to its fixed prompts, update by update: read from the steps, a little every frame."""

from __future__ import annotations

import time
from dataclasses import dataclass

from app.workspace.run_handle import RunHandle
from grpo_core.errors import RunFileError
from grpo_core.lm.problems import Verdict, verdict
from grpo_core.lm.vocabulary import STOP
from grpo_core.texts import watched_text

BUDGET = 0.005
"""Seconds of a frame that reading may take."""


@dataclass(frozen=True)
class Change:
    """An answer that was another one before.

    Attributes:
        step: the first update at which it is given.
        text: the answer.
        verdict: what became of it.
    """

    step: int
    text: str
    verdict: Verdict


class Evolution:
    """The answers of one run. A run's file is read once, from the first update on.

    Attributes:
        run: the run.
        read: updates taken in so far.
        changes: for each prompt, its answers in the order in which they came.
    """

    def __init__(self, run: RunHandle) -> None:
        self.run = run
        self.read = 0
        self.prompts = run.origin.watched
        self.changes: list[list[Change]] = [[] for _ in self.prompts]
        self._lost = False

    @property
    def complete(self) -> bool:
        """Whether every recorded update has been taken in."""
        return self._lost or not self.prompts or self.read >= self.run.head

    def take(self, budget: float = BUDGET) -> None:
        """Take in further updates for at most about ``budget`` seconds."""
        end = time.perf_counter() + budget
        while not self.complete and time.perf_counter() < end:
            try:
                step = self.run.step(self.read + 1)
            except RunFileError:
                step = None
            if step is None:
                self._lost = True  # a branch whose parent is gone: what can be read is shown
                return
            self.read += 1
            if step.watched_tokens is None:
                continue
            ended = (step.watched_tokens == STOP).any(axis=-1)
            for place, known in enumerate(self.changes):
                text = watched_text(step, place, self.run.origin)
                if not known or known[-1].text != text:
                    bare = text.removesuffix(self.run.origin.vocabulary[STOP])
                    said = verdict(self.prompts[place], bare, ended=bool(ended[place]))
                    known.append(Change(self.read, text, said))

    def at(self, place: int, step: int) -> Change | None:
        """The answer to prompt ``place`` at update ``step``; None where it has not been read."""
        found = None
        for change in self.changes[place]:
            if change.step > step:
                break
            found = change
        return found if 1 <= step <= self.read else None
