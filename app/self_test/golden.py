"""The expected first updates of the default bandit, and their comparison with updates computed here."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from app.self_test.report import CheckFailed
from grpo_core.config import settings_from_json
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.rounding import DOUBLE, tolerance
from grpo_core.shipped import resource

UPDATES = 20


def golden_file() -> Path:
    """Return the path of the golden numbers, which ``python -m tools.make_golden`` writes."""
    return resource("golden.json")


def numbers(step: Step) -> dict[str, Any]:
    """Return the numbers of an update to compare: the drawn actions, the logits after it, and all its series."""
    series = {name: value for name, value in metrics(step).items() if not math.isnan(value)}
    return {
        "actions": step.tokens.ravel().tolist(),
        "logits": step.resume["logits"].ravel().tolist(),
        "series": series,
    }


def compared(path: Path) -> str:
    """Compare the numbers in ``path`` with newly computed ones. Return a phrase with the largest difference.

    Raises:
        CheckFailed: a number differs, or the file cannot be read.
    """
    try:
        golden = json.loads(path.read_text("utf-8"))
        settings = settings_from_json(json.dumps(golden["settings"]))
        expected = golden["updates"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CheckFailed(f"the golden numbers in {path} cannot be read ({error})") from None
    if len(expected) != UPDATES:
        raise CheckFailed(f"{path} holds {len(expected)} updates instead of {UPDATES}")
    largest = 0.0
    for number, (wanted, step) in enumerate(zip(expected, learner(settings), strict=False), start=1):
        computed = numbers(step)
        if computed["actions"] != wanted["actions"]:
            raise CheckFailed(f"update {number} drew the actions {computed['actions']} instead of {wanted['actions']}")
        for name, value, right in _pairs(computed, wanted):
            difference, allowed = abs(value - right), tolerance(DOUBLE, right, 1.0)
            if not difference <= allowed:
                raise CheckFailed(f"{name} of update {number} is {value!r} instead of {right!r}")
            largest = max(largest, difference)
    return f"{UPDATES} updates of the default bandit differ by at most {largest:.1g} (allowed {DOUBLE:g})"


def _pairs(computed: dict[str, Any], wanted: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Return (name, computed number, golden number) for each number."""
    here = {f"logit {place}": value for place, value in enumerate(computed["logits"], start=1)} | computed["series"]
    right = {f"logit {place}": value for place, value in enumerate(wanted["logits"], start=1)} | wanted["series"]
    if here.keys() != right.keys():
        raise CheckFailed(f"the numbers recorded are not those of the file: {', '.join(sorted(here.keys() ^ right))}")
    return [(name, here[name], right[name]) for name in right]
