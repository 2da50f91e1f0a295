"""What the policy bars show of one context: three policies, the rewards, the samples just drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.workspace.cursor import Stage
from app.workspace.step_view import StepView


@dataclass(frozen=True, kw_only=True, eq=False)
class PolicyPicture:
    """One context, over the A entries of the vocabulary.

    Attributes:
        names: what each entry is called.
        now, old, reference: probabilities (A,).
        rewards: (A,), None where the task has none for a single action.
        samples: how often each entry was drawn in this context, (A,).
        rows: for each entry the completions (rows of the record) that drew it.
        counted: whether the update under the cursor has samples to show.
    """

    names: tuple[str, ...]
    now: np.ndarray
    old: np.ndarray
    reference: np.ndarray | None
    rewards: np.ndarray | None
    samples: np.ndarray
    rows: list[list[int]]
    counted: bool


def picture(view: StepView, context: int, rewards: np.ndarray | None) -> PolicyPicture | None:
    """The picture of ``context``; None where the policy's full distribution is not recorded."""
    if view.now is None or view.old is None or context >= len(view.now):
        return None
    count = view.now.shape[1]
    rows: list[list[int]] = [[] for _ in range(count)]
    if view.step is not None and view.step.context is not None:
        here = (view.step.context == context) & view.step.mask
        for row, token in zip(*np.nonzero(here), strict=True):
            rows[int(view.step.tokens[row, token])].append(int(row))
    return PolicyPicture(
        names=view.origin.vocabulary[:count],
        now=view.now[context],
        old=view.old[context],
        reference=None if view.reference is None else view.reference[context],
        rewards=None if rewards is None else rewards[context],
        samples=np.array([len(drawn) for drawn in rows]),
        rows=rows,
        counted=view.step is not None and view.stage >= Stage.SAMPLE,
    )
