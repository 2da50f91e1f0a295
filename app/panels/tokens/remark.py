"""The sentence below the tokens of a group: why it has no signal, or which token has most of the KL."""

from __future__ import annotations

import numpy as np

from app.token_grid.terms import kl_share
from app.workspace.step_view import StepView
from grpo_core.text import tr


def remark(view: StepView, group: int) -> str:
    """Return a remark on ``group``, a number in ``view.step.group``, or an empty string if there is none."""
    reason = view.reason(f"group:{group}")
    if reason is not None:
        return reason.sentence
    largest = view.derived(_largest_kl_share)
    if largest is None:
        return ""
    row, token, share = largest
    return tr("Token {token} of completion {row} carries {max:.0f}% of the batch's KL estimate.").format(
        token=token + 1, row=row + 1, max=100 * share
    )


def _largest_kl_share(view: StepView) -> tuple[int, int, float] | None:
    """Return the (completion, token, share) of the token with at least half of the batch's KL estimate, or None if
    there is none.
    """
    share = kl_share(view)
    if share is None or view.step is None or view.step.mask.sum() < 2 or float(share.max()) < 0.5:
        return None
    row, token = np.unravel_index(int(share.argmax()), share.shape)
    return int(row), int(token), float(share.max())
