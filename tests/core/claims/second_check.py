"""A second check of sentences about an update, from their English words and the recorded arrays alone.

Nothing here imports what makes these sentences, what checks their claims, or the facts that they ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from grpo_core.lm.vocabulary import VOCABULARY
from grpo_core.record import Step

NUMBER = r"(−?(?:\d[\d,]*\.?\d*)(?:e[+-]?\d+)?)"


def number(text: str) -> float:
    """Return the number that a text shows."""
    return float(text.replace("−", "-").replace("∞", "inf").replace(",", ""))


def near(shown: str, value: float) -> bool:
    """Return whether ``shown`` is ``value`` with at least three digits."""
    return abs(number(shown) - value) <= 5.1e-4 * max(abs(value), 1.0)


def there(step: Step) -> np.ndarray:
    """Return the tokens of the completions, boolean (B, T), whatever the loss counts."""
    return step.mask if step.present is None else step.present


def by_step(step: Step) -> bool:
    return step.settings.objective.credit == "process"


def scored(step: Step) -> np.ndarray:
    return np.asarray(step.rewards[~np.isnan(step.rewards)])


def alike(values: np.ndarray) -> bool:
    return len(values) == 0 or bool(np.ptp(values) <= 1e-11 * max(1.0, float(np.abs(values).max())))


def grouped(step: Step) -> list[np.ndarray]:
    """Return the known rewards of the completions of each group."""
    every = [step.rewards[step.group == g] for g in np.unique(step.group)]
    return [own[~np.isnan(own)] for own in every]


def ratios(step: Step, passed: int) -> np.ndarray | None:
    """Return the ratios of the tokens that the pass uses, (n,). None if they are those of completions or limited."""
    if step.settings.objective.level != "token" or step.settings.objective.log_ratio_limit is not None:
        return None
    used = step.mask & (step.part[passed] >= 0)[:, None]
    with np.errstate(over="ignore"):
        return np.asarray(np.exp((step.logp[passed] - step.old_logp)[used].astype(float)))


def cut_off(step: Step) -> int:
    """Return the number of completions that the limit ended: no end sign, and not one call too many."""
    task, real = step.settings.language, there(step)
    ended = ((step.tokens == 0) & real).any(axis=-1)
    if task.problem == "calculator":
        ended |= ((step.tokens == VOCABULARY.index(")")) & real).sum(axis=-1) > task.calls
    return int(((real.sum(axis=-1) >= task.max_tokens) & ~ended).sum())


def moves(step: Step) -> bool:
    return step.settings.is_recorded or step.settings.optimizer.learning_rate > 0


def rate_scales(step: Step) -> bool:
    return moves(step) and step.settings.optimizer.step_length is None


def beta_holds(step: Step) -> bool:
    """Return whether a larger β pulls towards the reference: not with k1 as a loss, nor past a critic's advantage."""
    o = step.settings.objective
    if o.kl_in == "reward":
        return o.baseline != "given"
    return o.kl != "k1" or o.kl_importance


def earlier(step: Step) -> bool:
    """Return whether the policy before the update did not draw the samples."""
    own = step.settings.is_recorded or step.settings.is_language
    return step.sampling_logp is not None and not own


def _runs(found: re.Match[str], step: Step, passed: int) -> bool:
    for each in (passed, step.passes - 1):  # a card is about the last pass, whichever is shown
        own = ratios(step, each)
        if own is None or (near(found[1], float(own.min())) and near(found[2], float(own.max()))):
            return True
    return False


def _first_is_one(found: re.Match[str], step: Step, passed: int) -> bool:
    own = ratios(step, 0)
    return own is None or bool((np.abs(own - 1) <= 2e-3).all())


def _equal_groups(found: re.Match[str], step: Step, passed: int) -> bool:
    own = grouped(step)
    return (int(found[1]), int(found[2])) == (sum(map(alike, own)), len(own))


def _spike(found: re.Match[str], step: Step, passed: int) -> bool:
    value = found.re.groups and number(found[1])
    return abs(value) > 100 and 0 <= float(found[2]) <= 100


SAID: tuple[tuple[str, Callable[[re.Match[str], Step, int], bool]], ...] = (
    (
        r"^(\d+) of (\d+) completions? (?:was|were) cut off at (\d+) tokens",
        lambda m, s, p: (
            (int(m[1]), int(m[2]), int(m[3])) == (cut_off(s), len(s.tokens), s.settings.language.max_tokens)
        ),
    ),
    (r"smaller learning rate", lambda m, s, p: rate_scales(s)),
    (r"(smaller|shorter) step length", lambda m, s, p: s.settings.optimizer.step_length is not None),
    (r"pulls nowhere|on average that is 0", lambda m, s, p: not earlier(s)),
    (r"A larger β (or .*)?may|[Ss]o may a larger β|A β above 0 would", lambda m, s, p: beta_holds(s)),
    (r"larger δ makes the step", lambda m, s, p: s.settings.optimizer.max_grad_norm is None),
    (r"two or more inner passes μ", lambda m, s, p: s.passes == 1 and moves(s)),
    (r"two or more inner passes μ it can\b|keeps it nearer|changes that\.", lambda m, s, p: False),
    (r"rescaled to the step length " + NUMBER, lambda m, s, p: near(m[1], s.settings.optimizer.step_length or -1)),
    (r"learning rate is 0", lambda m, s, p: not moves(s)),
    (r"All (\d+) rewards of this group|ll rewards are equal|group the rewards are equal|holds? equal rewards",
     lambda m, s, p: any(map(alike, grouped(s)))),
    (r"^(\d+) of (\d+) groups? holds? equal rewards[.]", _equal_groups),
    (r"No completion was paid anything", lambda m, s, p: not scored(s).any()),
    (r"Every completion was paid " + NUMBER, lambda m, s, p: all(near(m[1], one) for one in s.rewards)),
    (r"ratios run from " + NUMBER + " to " + NUMBER + r"[,. ]", _runs),
    (r"every ratio is 1\b", _first_is_one),
    (r"policy is still the one that sampled|when (it was )?sampled|draws? from the bars",
     lambda m, s, p: not earlier(s)),
    (r"from an earlier policy", lambda m, s, p: earlier(s)),
    (r"[Ee]stimate is " + NUMBER + r" nats, (\d+) % of the sum", _spike),
    (r"first update: training starts at the reference", lambda m, s, p: s.step == 1),
    (r"β is 0", lambda m, s, p: s.settings.objective.beta == 0),
    (r"a single scored completion|[Gg]roups? of one", lambda m, s, p: any(len(own) < 2 for own in grouped(s))),
    (r"KL is not in the loss",
     lambda m, s, p: not s.settings.objective.beta or s.settings.objective.kl_in == "reward"),
    (r"no reference policy", lambda m, s, p: s.ref_logp is None and s.ref_dist_logp is None),
    (r"push acts in full", lambda m, s, p: False),
)  # fmt: skip # table
"""Patterns of words, and what must be true of the arrays where they are said in pass ``p``, counted from 0."""


def false_words(text: str, step: Step, passed: int) -> list[str]:
    """Return the parts of a text about an update that its arrays contradict."""
    found = ((match, holds) for pattern, holds in SAID for match in re.finditer(pattern, text))
    return [match[0] for match, holds in found if not holds(match, step, passed)]
