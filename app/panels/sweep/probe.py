"""One place of a sweep, computed while it is dragged."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from app.experiments.runner import Poll, Runner
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles

KEPT = 16


class Ask(NamedTuple):
    """The runs that are wanted: seeds 0 to ``seeds`` - 1 under ``settings``."""

    settings: Settings
    seeds: int
    updates: int


def trained(points: Sequence[Settings], seeds: int, updates: int, poll: Poll) -> Iterator[object]:
    """The runs of every point. A rate so high that runs diverge is no error: their numbers show it."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield from ensembles(points, range(seeds), updates, poll=poll)


class Probe(QObject):
    """Computes the place that was asked for last.

    What is being computed is finished rather than given up: dragged faster than it can be computed, it would never
    come to an end. So the picture is at most two computations behind the hand.

    Attributes:
        shown: the newest runs that have come, if any.
        problem: why the last ones have not, in a sentence.

    Signals:
        changed: ``shown``, ``problem`` or ``behind`` is another one now.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.shown: Ensemble | None = None
        self.problem = ""
        self._wanted: Ask | None = None
        self._computing: Ask | None = None
        self._kept: OrderedDict[Ask, Ensemble] = OrderedDict()
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def behind(self) -> bool:
        """Whether ``shown`` is not yet what was asked for last."""
        return self._wanted is not None

    def ask(self, ask: Ask) -> None:
        """Show these runs as soon as they are there."""
        self.problem = ""
        if ask in self._kept:
            self._kept.move_to_end(ask)
            self.show(self._kept[ask])
            return
        self._wanted = ask
        if self._computing is None:
            self._compute(ask)

    def show(self, runs: Ensemble) -> None:
        """Show runs that are known already."""
        self._wanted, self.shown, self.problem = None, runs, ""
        self.changed.emit()

    def refuse(self, sentence: str) -> None:
        """There are no such runs."""
        self._wanted, self.shown, self.problem = None, None, sentence
        self.changed.emit()

    def close(self) -> None:
        """Nothing more is computed."""
        self._wanted = self._computing = None
        self._runner.close()

    def _compute(self, ask: Ask) -> None:
        self._computing = ask
        self._runner.start(lambda poll: trained([ask.settings], ask.seeds, ask.updates, poll))

    @Slot(object)
    def _on_arrived(self, runs: Ensemble) -> None:
        assert self._computing is not None
        self._kept[self._computing] = self.shown = runs
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if self._computing == self._wanted:
            self._wanted = None
        self.changed.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        failed, self._computing = self._computing, None
        if sentence and failed == self._wanted:
            self.refuse(sentence)
        elif self._wanted is not None:
            self._compute(self._wanted)
