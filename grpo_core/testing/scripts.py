"""Exported scripts, executed, and their printed numbers compared with those that trained."""

from __future__ import annotations

import contextlib
import io

import numpy as np

from grpo_core import recompute
from grpo_core.record import Step

FIELDS = ("advantage", "ratio", "clipped", "surrogate", "kl", "weight", "token_loss", "gradient")


def read(output: str) -> list[tuple[float, dict[tuple[int, int], dict[str, float]]]]:
    """Parse the passes that a script has printed: (loss, (row, token) -> name -> number)."""
    passes: list[tuple[float, dict[tuple[int, int], dict[str, float]]]] = []
    names: list[str] = []
    for line in output.splitlines():
        words = line.split()
        if words[0] == "pass":
            passes.append((float(words[3]), {}))
        elif words[0] == "row":
            names = words[3:]
        else:
            numbers = map(float, words[-len(names) :])
            passes[-1][1][int(words[0]) - 1, int(words[1]) - 1] = dict(zip(names, numbers, strict=True))
    return passes


def compare(step: Step, output: str, tolerance: float) -> None:
    """Assert that every printed number is the one that ``recompute`` returns."""
    passes = read(output)
    assert len(passes) == step.passes
    advantage = recompute.advantage(step)
    for n, (loss, rows) in enumerate(passes):
        terms = recompute.terms(step, n)
        push, pull = recompute.token_gradient(step, n)
        used = step.mask & (step.part[n] >= 0)[:, None]
        assert set(rows) == set(map(tuple, np.argwhere(used).tolist()))
        np.testing.assert_allclose(loss, float(terms.loss), rtol=tolerance, atol=tolerance)
        expected = {
            "advantage": advantage if advantage.ndim == 2 else np.broadcast_to(advantage[:, None], step.mask.shape),
            **{name: getattr(terms, name) for name in FIELDS[1:-1]},
            "gradient": push if pull is None else push + pull,
        }
        for place, numbers in rows.items():
            assert [name for name in FIELDS if expected[name] is not None] == list(numbers)
            for name, number in numbers.items():
                true = float(expected[name][place])
                np.testing.assert_allclose(number, true, rtol=tolerance, atol=tolerance, err_msg=f"{n} {place} {name}")


def executed(text: str) -> str:
    """Return what a script prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(text, "step.py", "exec"), {"__name__": "__main__"})
    return output.getvalue()
