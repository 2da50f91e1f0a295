"""Reasons why a number is zero or unhealthy, each verified against the numbers of the update."""

from __future__ import annotations

from grpo_core.explain.numbers import Numbers
from grpo_core.reasons import groups, loss
from grpo_core.reasons import policy_reasons as policy
from grpo_core.reasons.reason import LONGEST_CHIP, Check, Reason
from grpo_core.record import Step

__all__ = ["LONGEST_CHIP", "Reason", "reason_for", "reasons"]

GROUP = "group:"
"""Prefix of the keys of groups, followed by the group's number."""
CHECKS: dict[str, Check] = groups.CHECKS | loss.CHECKS | policy.CHECKS
"""Checks by the key of the reason that they return. Those of groups are not among them."""


def reasons(step: Step, passed: int) -> dict[str, Reason]:
    """Return the reasons for the numbers of an update, by key. ``passed`` is the pass shown, counted from 0.

    Returns:
        At most one reason per key: names of metrics (whose cards show the complete update), "group:<p>" for groups, and
        "ratio", "clipped", "gradient" and "kl_term" for the pass shown. A number without an entry needs no explanation.

    Raises:
        SettingsError: the update lacks something that its objective needs.
    """
    n = Numbers(step)
    keys = [*(f"{GROUP}{group}" for group in range(len(n.compared_rewards))), *CHECKS]
    results = ((key, reason_for(n, passed, key)) for key in keys)
    return {key: result for key, result in results if result is not None}


def reason_for(n: Numbers, passed: int, key: str) -> Reason | None:
    """Return the reason that :func:`reasons` would return under ``key``. None if the number needs no reason."""
    if key.startswith(GROUP):
        return groups.group_reason(n, passed, int(key.removeprefix(GROUP)))
    return CHECKS[key](n, passed) if key in CHECKS else None
