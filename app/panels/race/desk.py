"""Where races are computed: one at a time, beside the window; what has come in is shown while the rest is coming."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.experiments.runner import Runner
from app.panels.race.digest import Digest, digested
from app.panels.race.plan import Plan
from app.panels.race.results import Results
from grpo_core.text import tr


class Desk(QObject):
    """The race that is shown and the one that is coming.

    Attributes:
        results: what is shown; None before the first algorithm of the first race has come in.
        asked: the race that was asked for last.
        problem: why it could not be, in a sentence.

    Signals:
        changed: any of these, or how far it is.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.results: Results | None = None
        self.asked: Plan | None = None
        self.problem = ""
        self._coming: Results | None = None
        self._closed = False
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def busy(self) -> bool:
        """Whether algorithms are still to come in."""
        return self._coming is not None

    @property
    def done(self) -> int:
        """How many algorithms of the race that is coming have come in."""
        return len(self._coming.digests) if self._coming is not None else 0

    @property
    def running(self) -> str:
        """The algorithm that is being computed; empty at rest."""
        coming = self._coming
        return coming.plan.names[self.done] if coming is not None and self.done < len(coming.plan.names) else ""

    def start(self, plan: Plan) -> None:
        """Compute ``plan``; a race that is still being computed is given up."""
        if self._closed:
            return
        self.asked, self.problem, self._coming = plan, "", Results(plan)
        self._runner.start(lambda poll: digested(plan.race(poll)))
        self.changed.emit()

    def cancel(self) -> None:
        """Give the race up; the algorithms that have come in stay."""
        self._runner.cancel()

    def close(self) -> None:
        """Nothing is computed any more."""
        self._closed, self._coming = True, None
        self._runner.close()

    @Slot(object)
    def _on_arrived(self, digest: Digest) -> None:
        assert self._coming is not None
        self._coming.take(digest)
        self.results = self._coming
        self.changed.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        coming, self._coming = self._coming, None
        if coming is not None and sentence:
            if coming.digests:
                coming.note = tr("As far as it got: {count} of {count2} algorithms.").format(
                    count=len(coming.digests), count2=len(coming.plan.names)
                )
            else:
                self.problem = sentence
        self.changed.emit()
