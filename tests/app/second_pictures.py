"""A second check of what screen readers say about panels and pictures, from the English words and the raw arrays alone.

Nothing here imports what makes these sentences, or the functions that trained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from grpo_core.record import Step

NUMBER = r"(−?\d[\d,]*(?:\.\d+)?(?:e[+−-]?\d+)?)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What is on screen.

    Attributes:
        steps: all updates of the run, in order.
        at: the update shown, counted from 1; 0 before the first.
        passed: the pass shown, counted from 0.
        context: the context whose policy is shown.
    """

    steps: list[Step]
    at: int
    passed: int
    context: int

    @property
    def step(self) -> Step:
        return self.steps[self.at - 1]


def number(text: str) -> float:
    """Return the number that a text shows."""
    return float(text.replace("−", "-").replace(",", ""))


def reads(text: str, value: float) -> bool:
    """Return whether a text shows ``value``, to the digits that it has."""
    base, _, power = text.replace("−", "-").partition("e")
    unit = 10.0 ** (int(power or 0) - len(base.partition(".")[2]))
    return abs(number(text) - value) <= 0.5001 * unit + 1e-9 * abs(value)


def policy(step: Step, context: int, when: int) -> np.ndarray:
    assert step.dist_logp is not None
    return np.asarray(np.exp(step.dist_logp[when][context]))


def visited(step: Step) -> list[int]:
    """Return the contexts in which completions begin."""
    assert step.context is not None
    return sorted(set(step.context[:, 0].tolist()))


def clipped(step: Step, passed: int) -> tuple[int, int] | None:
    """Return the numbers of clipped and of used tokens in a pass. None if the clip is not the usual one.

    The advantage is the reward minus the mean of its group, or the reward itself.
    """
    o = step.settings.objective
    usual = o.surrogate == "clip" and o.level == "token" and o.dual_clip is None and o.log_ratio_limit is None
    other = step.advantage is not None or (o.kl_in == "reward" and bool(o.beta)) or o.credit == "process"
    if not usual or other or o.baseline not in ("group_mean", "none"):
        return None
    push = step.rewards.copy()
    for g in np.unique(step.group) if o.baseline == "group_mean" else ():
        push[step.group == g] -= push[step.group == g].mean()
    push = np.where(np.abs(push) < 1e-12, 0.0, push)[:, None]
    used = step.mask & (step.part[passed] >= 0)[:, None]
    ratio = np.exp(step.logp[passed] - step.old_logp)
    out = ((push > 0) & (ratio > 1 + o.clip_high)) | ((push < 0) & (ratio < 1 - o.clip_low))
    return int((out & used).sum()), int(used.sum())


def _clips(s: Shown, told: str, of: str | None = None) -> bool:
    found = clipped(s.step, s.passed)
    return found is None or (int(told) == found[0] and (of is None or int(of) == found[1]))


def _ratios(s: Shown, low: str, high: str) -> bool:
    step = s.step
    if step.settings.objective.level != "token" or step.settings.objective.log_ratio_limit is not None:
        return True
    used = step.mask & (step.part[s.passed] >= 0)[:, None]
    ratio = np.exp(step.logp[s.passed] - step.old_logp)[used]
    return reads(low, ratio.min()) and reads(high, ratio.max())


def _likeliest(m: re.Match[str], s: Shown) -> bool:
    now = policy(s.step, s.context, -1)
    best = int(now.argmax())
    named = m[2] in (str(best + 1), str(best)) or not m[2].isdigit()
    return named and reads(m[3], now[best]) and reads(m[4], policy(s.step, s.context, 0)[best])


def _mean(values: np.ndarray) -> float:
    return float(values[~np.isnan(values)].mean())


def _kl(s: Shown) -> float:
    """Return the KL of the policy after the update, averaged over the prompts."""
    step = s.step
    assert step.ref_dist_logp is not None and step.dist_logp is not None
    each = [(policy(step, c, -1) * (step.dist_logp[-1][c] - step.ref_dist_logp[c])).sum() for c in visited(step)]
    return float(np.mean(each))


def _entropy(s: Shown) -> float:
    assert s.step.dist_logp is not None
    return float(np.mean([-(policy(s.step, c, -1) * s.step.dist_logp[-1][c]).sum() for c in visited(s.step)]))


def _signals(m: re.Match[str], s: Shown) -> bool:
    o = s.step.settings.objective
    if o.baseline != "group_mean" or (o.kl_in == "reward" and o.beta) or o.credits_steps:
        return True
    paid = [s.step.rewards[s.step.group == g] for g in np.unique(s.step.group)]
    live = sum(float(np.ptp(own)) > 1e-12 for own in paid)
    return int(m[m.re.groups]) == len(paid) and live == (int(m[1]) if m.re.groups > 1 else len(paid))


def _share(m: re.Match[str], s: Shown) -> bool:
    """Check the share of the completions with the highest reward, where a task pays 0 or 1."""
    paid = s.step.rewards
    return not set(paid.tolist()) <= {0.0, 1.0} or (int(m[2]), int(m[3])) == (int(paid.sum()), len(paid))


def _one_token(s: Shown) -> bool:
    return s.step.mask.shape[1] == 1


SAID: tuple[tuple[str, Callable[[re.Match[str], Shown], bool]], ...] = (
    (rf"Update {NUMBER} of {NUMBER}; settings changed (\d+) times?\.",
     lambda m, s: (number(m[1]), number(m[2])) == (s.at, len(s.steps)) and m[3] == "0"),
    (rf"^Update {NUMBER}[,:]|^Step {NUMBER}:", lambda m, s: number(m[1] or m[2]) == s.at),
    (rf"^Update {NUMBER}: the likeliest action is (\S+) with {NUMBER}, {NUMBER} before", _likeliest),
    (r"pass (\d+): (\d+) tokens?, (\d+) clipped",
     lambda m, s: int(m[1]) == s.passed + 1 and _clips(s, m[3], m[2])),
    (r"(\d+) completions?, (\d+) clipped tokens", lambda m, s: int(m[1]) == len(s.step.group) and _clips(s, m[2])),
    (rf"Pass (\d+) of (\d+): (\d+) of (\d+) tokens? (?:is|are) clipped; ratios from {NUMBER} to {NUMBER}",
     lambda m, s: (int(m[1]), int(m[2])) == (s.passed + 1, s.step.passes) and _clips(s, m[3], m[4])
     and _ratios(s, m[5], m[6])),
    (rf"Mean reward {NUMBER}", lambda m, s: reads(m[1], _mean(s.step.rewards))),
    (rf"Exact KL {NUMBER}(?= ?,)", lambda m, s: not _one_token(s) or reads(m[1], _kl(s))),
    (rf"Entropy {NUMBER}(?=,)", lambda m, s: not _one_token(s) or reads(m[1], _entropy(s))),
    (rf"max π\(a\) {NUMBER}", lambda m, s: not _one_token(s)
     or reads(m[1], float(np.mean([policy(s.step, c, -1).max() for c in visited(s.step)])))),
    (rf"Pushes clipped {NUMBER}%",
     lambda m, s: (found := clipped(s.step, s.step.passes - 1)) is None or reads(m[1], 100 * found[0] / found[1])),
    (rf"^(\d+) updates?: mean reward from {NUMBER} to {NUMBER}", lambda m, s: int(m[1]) == len(s.steps)
     and reads(m[2], _mean(s.steps[0].rewards)) and reads(m[3], _mean(s.steps[-1].rewards))),
    (r"Update (\d+): Update, pass (\d+) of (\d+)\.",
     lambda m, s: (int(m[2]), int(m[3])) == (s.passed + 1, s.step.passes)),
    (rf"this run had β {NUMBER}: the policy was then {NUMBER} nats", lambda m, s: not _one_token(s)
     or (reads(m[1], s.step.settings.objective.beta) and reads(m[2], _kl(s)))),
    (r"(\d+) of (\d+) completions? listed", lambda m, s: int(m[1]) == int(m[2]) == len(s.step.group)),
    (r"^(\d+) tokens of (\d+) completions", lambda m, s: (int(m[1]), int(m[2])) == (int(s.step.mask.sum()),
                                                                                  len(s.step.group))),
    (r"Each of (\d+) groups gives a signal", _signals),
    (r"(\d+) of (\d+) groups? gives? a signal", _signals),
    (r"push lies in (\d+) of (\d+) tokens", lambda m, s: int(m[1]) <= int(m[2]) == int(s.step.mask.sum())),
    (rf"Update (\d+): bar (\d+) has probability {NUMBER}; before training it had {NUMBER}",
     lambda m, s: reads(m[3], policy(s.step, s.context, -1)[int(m[2]) - 1])
     and reads(m[4], policy(s.steps[0], s.context, 0)[int(m[2]) - 1])),
    (rf"(?:gradient norm|gradient norm of this batch is) {NUMBER}\.$",
     lambda m, s: reads(m[1], s.step.measurements["grad_norm"])),
    (r"Update (\d+): (\d+) of (\d+) answers right", _share),
)  # fmt: skip # table
"""Patterns of words, and what must be true of the arrays."""


def read(text: str, shown: Shown) -> Iterator[tuple[str, bool]]:
    """Yield each part of a text that a pattern reads, and whether the arrays bear it out."""
    for pattern, holds in SAID:
        for m in re.finditer(pattern, text):
            yield m[0], holds(m, shown)
