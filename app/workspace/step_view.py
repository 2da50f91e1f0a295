"""One update as shared by all panels, evaluated once and on demand."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from app.workspace.cursor import Stage
from app.workspace.prepared import Prepared
from grpo_core.config import Objective, Settings
from grpo_core.explain import Numbers
from grpo_core.metrics import at_start
from grpo_core.objective import Terms
from grpo_core.reasons import Reason, reason_for
from grpo_core.record import Origin, Step
from grpo_core.texts import assumption

T = TypeVar("T")
MOST_TOKENS = 4_000_000
"""Maximum total number of tokens in the cached views, at about 150 bytes per evaluated token.

The latest view is kept even if it is larger.
"""


class StepView:
    """Everything that follows from (run, step, pass, objective), computed when first needed.

    Attributes:
        origin: the run before its first update.
        step: the record; None at update 0.
        stage: how much of the update is revealed.
        passed: the current pass, counted from 0.
        key: a unique token that identifies the view without keeping its arrays in memory.

    ``prepared`` contains the parts that a thread has computed in advance.
    """

    def __init__(
        self, origin: Origin, step: Step | None, stage: Stage, passed: int, prepared: Prepared | None = None
    ) -> None:
        self.origin = origin
        self.step = step
        self.stage = stage
        self.passed = passed
        self.key = object()
        self._reasons: dict[str, Reason | None] = {}
        self._derived: dict[Callable[[StepView], Any], Any] = {}
        self._evaluated = None if prepared is None else prepared.evaluated
        if prepared is not None:
            self._reasons |= prepared.reasons.get(passed, {})

    @property
    def record(self) -> ref[Step] | None:
        """Weak reference to the record, which does not keep it in memory.

        Views of the same record have equal references.
        """
        return None if self.step is None else ref(self.step)

    @property
    def number(self) -> int:
        return self.step.step if self.step else 0

    @property
    def passes(self) -> int:
        return self.step.passes if self.step else 0

    @property
    def settings(self) -> Settings:
        return self.step.settings if self.step else self.origin.settings

    @property
    def objective(self) -> Objective:
        return self.settings.objective

    @property
    def updated(self) -> int:
        """Number of passes whose effect is revealed: none before the last stage."""
        return self.passed + 1 if self.stage is Stage.UPDATE and self.step else 0

    @property
    def logp_after(self) -> np.ndarray | None:
        """Log-probabilities (B, T) at the point up to which the update is revealed, or None if there are none."""
        known = self.step is not None and self.updated < len(self.step.logp)
        return np.asarray(self.step.logp[self.updated]) if known and self.step is not None else None

    @cached_property
    def numbers(self) -> Numbers | None:
        """Every number of the update by its address, for explanations and reasons."""
        if self._evaluated is not None and self._evaluated.step is self.step:
            return self._evaluated
        return None if self.step is None else Numbers(self.step)

    @cached_property
    def assumption(self) -> str:
        """Message about the assumptions made because the source does not record something, or an empty string."""
        return "" if self.step is None else assumption(self.step)

    @property
    def terms(self) -> Terms | None:
        """The loss of the current pass with all intermediate numbers, (B, T)."""
        return None if self.numbers is None else self.numbers.terms(self.passed)

    @property
    def advantage(self) -> np.ndarray | None:
        """The advantages: (B,), or (B, T) with a critic."""
        return None if self.numbers is None else self.numbers.advantage

    @cached_property
    def gradient(self) -> np.ndarray | None:
        """d loss / d log π of the current pass, (B, T)."""
        return None if self.numbers is None else self.numbers.gradient(self.passed)

    @property
    def metrics(self) -> dict[str, float]:
        """The scalars shown on the cards."""
        return at_start(self.origin) if self.numbers is None else self.numbers.cards

    def rounding(self, name: str) -> float:
        """Magnitude up to which the value of a metric is only a rounding error. 0 before the first update."""
        return 0.0 if self.numbers is None else self.numbers.rounding(name)

    def reason(self, key: str) -> Reason | None:
        """Return the reason for the value of ``key`` (a metric, or "group:<p>"), or None if it needs none."""
        if key not in self._reasons:
            self._reasons[key] = None if self.numbers is None else reason_for(self.numbers, self.passed, key)
        return self._reasons[key]

    def at(self, stage: Stage, passed: int) -> StepView:
        """Return the view of this update at another stage or pass. Computed results are shared."""
        if stage is self.stage and passed == self.passed:
            return self
        other = StepView(self.origin, self.step, stage, passed)
        other._evaluated = self.numbers
        return other

    def derived(self, function: Callable[[StepView], T]) -> T:
        """Return the value of ``function`` for this view, computed once. Panels use it for derived arrays."""
        if function not in self._derived:
            self._derived[function] = function(self)
        value: T = self._derived[function]
        return value

    @property
    def dead(self) -> np.ndarray | None:
        """Groups without signal, whose advantages are all 0, boolean (P,)."""
        return None if self.numbers is None else self.numbers.silent

    def policy(self, passed: int) -> np.ndarray | None:
        """Return the probabilities (C, V) after ``passed`` passes.

        At update 0, they are those of the starting policy.
        """
        logp = self.origin.dist_logp if self.step is None else self.step.distribution(passed)
        return None if logp is None else np.exp(logp)

    @cached_property
    def now(self) -> np.ndarray | None:
        """Probabilities (C, V) at the point up to which the update is revealed."""
        return self.policy(self.updated)

    @cached_property
    def old(self) -> np.ndarray | None:
        """Probabilities (C, V) before the update."""
        return self.policy(0)

    @cached_property
    def reference(self) -> np.ndarray | None:
        """Probabilities (C, V) of the reference policy."""
        source = self.step or self.origin
        return None if source.ref_dist_logp is None else np.exp(source.ref_dist_logp)


class StepViews:
    """A small cache of step views, so that all panels and the explanations share one evaluation."""

    def __init__(self, size: int = 32) -> None:
        self._size = size
        self._views: OrderedDict[tuple[str, int, Stage, int], StepView] = OrderedDict()

    @property
    def _tokens(self) -> int:
        return sum(view.step.tokens.size for view in self._views.values() if view.step is not None)

    def get(
        self, run: str, origin: Origin, step: Step | None, stage: Stage, passed: int, prepared: Prepared | None = None
    ) -> StepView:
        """Return the view of a step, evaluated at most once while it is among the most recent ones.

        Two runs without an update can share a name if one follows the other within a second. Their origins
        distinguish them.
        """
        key = (run, step.step if step else 0, stage, passed)
        view = self._views.pop(key, None)
        if view is not None and view.step is step and view.origin is origin:
            self._views[key] = view
            return view
        self._views[key] = view = StepView(origin, step, stage, passed, prepared)
        while len(self._views) > self._size or (len(self._views) > 1 and self._tokens > MOST_TOKENS):
            self._views.popitem(last=False)
        return view


def advantage_of(view: StepView, row: int, token: int = 0) -> float | None:
    """Return the advantage shown for a completion or, with a critic, for its token."""
    if view.advantage is None:
        return None
    return float(view.advantage[row] if view.advantage.ndim == 1 else view.advantage[row, token])
