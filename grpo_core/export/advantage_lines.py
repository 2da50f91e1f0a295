"""Code of an exported script, first half: constants, and the computation of advantages from rewards.

Each function returns lines of Python for plain NumPy, with only the branches that the objective takes; ``script.py``
puts them below the data that they use. The formulas are those of ``advantages.py``.
"""

from __future__ import annotations

import numpy as np

from grpo_core import recompute
from grpo_core.advantages import EQUAL
from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES


def setting_lines(step: Step) -> list[str]:
    """Return the lines of the script that define the constants used in its other lines."""
    o, learner = step.settings.objective, step.settings.learner
    constants: dict[str, object] = {}
    if DEVIATIONS[o.std].divides and step.advantage is None:
        constants["STD_EPSILON"] = o.std_epsilon
    constants |= SURROGATES[o.surrogate].script(o).constants
    if o.log_ratio_limit is not None:
        constants["LIMIT"] = o.log_ratio_limit
    if REDUCTIONS[o.reduction].by_constant:
        constants["MAX_TOKENS"] = o.max_tokens
    if BASELINES[o.baseline].from_critic and step.advantage is None:
        constants |= {"GAMMA": learner.gamma, "LAMBDA": learner.lam}
    if o.entropy_bonus:
        constants["ENTROPY_BONUS"] = o.entropy_bonus
    constants["BETA"] = o.beta
    lines = [f"{name} = {value!r}" for name, value in constants.items()]
    return [*lines, "B, T = MASK.shape", "L = np.maximum(MASK.sum(1, keepdims=True), 1)  # (B, 1)"]


def advantage_lines(step: Step) -> list[str]:
    """Return the lines of the script that compute the advantages ``A`` (B, T) from the rewards ``REWARD``."""
    o = step.settings.objective
    if step.advantage is not None:
        return ["A = ADVANTAGE", _spread(step.advantage.ndim)]
    if o.credits_steps:
        return _by_step(step)
    compared_with, deviation = BASELINES[o.baseline], DEVIATIONS[o.std]
    if compared_with.from_critic:
        return [
            "A = np.zeros((B, T))  # generalised advantage estimation; the reward is paid at the last token",
            "for i in np.flatnonzero(~np.isnan(REWARD)):",
            "    paid, following, estimate = REWARD[i], 0.0, 0.0",
            "    for t in reversed(np.flatnonzero(MASK[i])):",
            "        delta = paid + GAMMA * following - VALUE[i, t]",
            "        estimate = delta + GAMMA * LAMBDA * estimate",
            "        A[i, t], paid, following = estimate, 0.0, VALUE[i, t]",
            _spread(2),
        ]
    reward, lines = "REWARD", []
    if recompute.summed_log_ratio(step, o) is not None:
        reward = "PAID"
        lines = ["PAID = REWARD - BETA * (OLD_LOGP - REF_LOGP).sum(1)  # the KL is paid for in the reward"]
    unscored = bool(np.isnan(step.rewards).any())
    scored = f"{reward}[~np.isnan({reward})]" if unscored else reward
    if deviation.of_batch or not compared_with.within_group:
        lines += [f"scored = {scored}"] if unscored else []
        scored = "scored" if unscored else reward
    if deviation.of_batch and not deviation.of_centred:
        lines += [f"std = {scored}.std(ddof=1) + STD_EPSILON if not {_equal(scored)} else 1.0"]
    lines += ["A = np.zeros(B)", "for group in np.unique(GROUP):"]
    lines += [f"    rows = (GROUP == group) & ~np.isnan({reward})" if unscored else "    rows = GROUP == group"]
    lines += [f"    r = {reward}[rows]"]
    relative = compared_with.within_group
    skip = "len(r) == 0 or " * unscored
    if relative:
        lines += [f"    if {skip}{_equal('r')}:", "        continue  # all are equal: no signal, the advantage is 0"]
    elif unscored:
        lines += ["    if len(r) == 0:", "        continue"]
    baseline = compared_with.script.format(scored=scored)
    scale = ""
    if deviation.divides and not deviation.of_batch:
        divided = [] if relative else [f"not {_equal('r')}"]
        spread = f"r.std(ddof={deviation.ddof}) + STD_EPSILON"
        if deviation.of_mean:
            spread, divided = "r.mean() + STD_EPSILON", [*divided, "r.mean() > 0"]
        lines += [f"    std = {spread} if {' and '.join(divided)} else 1.0" if divided else f"    std = {spread}"]
    if deviation.divides and not deviation.of_centred:
        scale = " / std"
    lines += [f"    A[rows] = (r - {baseline}){scale}"]
    return [*lines, *(_over_centred("A", reward) if deviation.of_centred else []), _spread(1)]


def _over_centred(name: str, reward: str) -> list[str]:
    """Return the lines that divide the array ``name`` of centred rewards by their standard deviation."""
    spread = f"centred.std(ddof=1) + STD_EPSILON if len(centred) > 1 and not {_equal('centred')} else 1.0"
    return [f"centred = {name}[~np.isnan({reward})]", f"{name} = {name} / ({spread})"]


def _by_step(step: Step) -> list[str]:
    """Return the lines of the script that compute ``A`` from ``STEP_REWARD``: step rewards, normalised over the group's
    steps and summed from each token onwards.
    """
    o = step.settings.objective
    compared_with, deviation = BASELINES[o.baseline], DEVIATIONS[o.std]
    of_batch = deviation.of_batch or compared_with.mean == "batch"
    lines = ["every = STEP_REWARD[~np.isnan(STEP_REWARD)]"] if of_batch else []
    if deviation.of_batch and not deviation.of_centred:
        lines += [f"std = every.std(ddof=1) + STD_EPSILON if len(every) > 1 and not {_equal('every')} else 1.0"]
    lines += ["SCORE = np.zeros((B, T))", "for group in np.unique(GROUP):"]
    lines += ["    steps = (GROUP == group)[:, None] & ~np.isnan(STEP_REWARD)", "    r = STEP_REWARD[steps]"]
    stop = f" or {_equal('r')}" if compared_with.within_group else ""
    lines += [f"    if len(r) == 0{stop}:", "        continue"]
    if deviation.divides and not deviation.of_batch:
        spread, known = f"r.std(ddof={deviation.ddof})", f"len(r) > {deviation.ddof}"
        if deviation.of_mean:
            spread, known = "r.mean()", "r.mean() > 0"
        lines += [f"    std = {spread} + STD_EPSILON if {known} and not {_equal('r')} else 1.0"]
    baseline = compared_with.script.format(scored="every")
    scale = " / std" if deviation.divides and not deviation.of_centred else ""
    lines += [f"    SCORE[steps] = (r - {baseline}){scale}"]
    lines += _over_centred("SCORE", "STEP_REWARD") if deviation.of_centred else []
    return [*lines, "A = SCORE[:, ::-1].cumsum(1)[:, ::-1]  # the steps that end here or later", _spread(2)]


def _spread(axes: int) -> str:
    """Return the line of the script that broadcasts values per completion, or per token, to ``A`` (B, T)."""
    return f"A = np.where(MASK, A{'[:, None]' if axes == 1 else ''}, 0.0)  # (B, T)"


def _equal(name: str) -> str:
    """Return the condition, as NumPy code, that all entries of the array ``name`` are equal up to rounding."""
    return f"np.ptp({name}) <= {EQUAL!r} * max(1.0, np.abs({name}).max())"
