"""A large update, read and evaluated in a thread before any panel needs it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from app.workspace.cursor import Cursor
from grpo_core.errors import GrpoError
from grpo_core.explain import Numbers
from grpo_core.foreign.recording import Completions
from grpo_core.metrics import METRICS
from grpo_core.reasons import Reason, reason_for
from grpo_core.record import Step

LARGE_TOKENS = 200_000
"""Number of tokens above which evaluating an update would block the window for several frames."""
LARGE_TEXT = 4_000_000
"""Number of characters above which reading the text of an update would block the window for several frames."""

Reasons = Mapping[str, Reason | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """The precomputed parts of an update that panels need.

    Attributes:
        stamp: identifies the state of its files when it was read.
        step: its record; None if the source contains only text.
        table: its completions; None if none are recorded.
        evaluated: its arrays, computed for the passes in ``reasons``.
        reasons: pass -> metric -> the reason for its value.
    """

    number: int
    stamp: tuple[int, ...]
    step: Step | None
    why_no_step: str
    table: Completions | None
    numbers: dict[str, float]
    evaluated: Numbers | None
    reasons: dict[int, Reasons]

    def is_ready(self, cursor: Cursor) -> bool:
        """Return whether everything shown at ``cursor`` has been computed."""
        return self.step is None or cursor.pass_of(self.step.passes) in self.reasons

    @property
    def tokens(self) -> int:
        """Number of token slots, padding included, or 0 if only text is recorded."""
        return 0 if self.step is None else self.step.tokens.size

    @property
    def large(self) -> bool:
        """Whether an update of this size would block the window."""
        if self.tokens >= LARGE_TOKENS or self.table is None:
            return self.tokens >= LARGE_TOKENS
        texts = (*self.table.prompts, *self.table.completions)
        return sum(len(text) for text in texts if text is not None) >= LARGE_TEXT


def with_pass(found: Prepared, evaluated: Numbers, passed: int) -> Prepared:
    """Return ``found`` with the pass ``passed`` evaluated as well."""
    reasons: dict[str, Reason | None] = {}
    with suppress(GrpoError), np.errstate(all="ignore"):  # panels report what a source lacks
        # it alone needs the first pass's gradient, so it comes first
        for key in sorted(METRICS, key="grad_norm".__ne__):
            reasons[key] = reason_for(evaluated, passed, key)
            if evaluated.cards and found.large:
                evaluated.release(but=passed)
        evaluated.gradient(passed)
    return replace(found, evaluated=evaluated, reasons={**found.reasons, passed: reasons})
