"""Code of an exported script: constants, advantages from rewards, and the loss of each pass with its gradient.

Each function returns lines of Python for plain NumPy, with only the branches that the objective takes; ``script.py``
puts them below the data that they use. The formulas are those of ``advantages.py`` and ``objective.py``, and lines that
depend on a setting come from the tables used in training: ``surrogates/``, ``levels.py``, ``kl.py``, ``reductions.py``.
"""

from __future__ import annotations

import numpy as np

from grpo_core import recompute
from grpo_core.advantages import EQUAL
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective
from grpo_core.deviations import DEVIATIONS
from grpo_core.kl import ESTIMATORS, EXACT
from grpo_core.levels import LEVELS
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES, Path


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
    if recompute.summed_log_ratio(step) is not None:
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


def loss_lines(step: Step, *, has_kl: bool) -> list[str]:
    """Return the lines of the script that loop over the passes, from the ratio to the gradient and the output."""
    o = step.settings.objective
    body = [
        "logp = LOGP[k]",
        "log_ratio = np.where(MASK, logp - OLD_LOGP, 0.0)",
        *_limit(o),
        *_ratio(o),
        *_surrogate(o),
        *(
            ["surrogate = surrogate * GATE[k]", "slope = slope * GATE[k]"]
            if recompute.gate_of(step, 0) is not None
            else []
        ),
        *(_kl(o) if has_kl else []),
        *_weight(step),
        *_token_loss(o, has_kl),
        *_gradient(o, has_kl),
        *_print(has_kl, bool((step.part < 0).any())),
    ]
    return ["for k in range(len(PASS)):", *(f"    {line}" for line in body)]


def _limit(o: Objective) -> list[str]:
    if o.log_ratio_limit is None:
        return []
    return ["limited = np.abs(log_ratio) > LIMIT", "log_ratio = np.clip(log_ratio, -LIMIT, LIMIT)"]


def _ratio(o: Objective) -> list[str]:
    level = LEVELS[o.level]
    if not level.of_completion:
        return [f"ratio = np.exp(log_ratio)  # {level.script_note}"]
    whole = f"np.exp(log_ratio.sum(1, keepdims=True){' / L' if level.by_length else ''})"
    return [f"ratio = np.where(MASK, {whole}, 1.0)  # {level.script_note}"]


def _surrogate(o: Objective) -> list[str]:
    algorithm = SURROGATES[o.surrogate]
    lines = list(algorithm.script(o).lines)
    return lines if algorithm.clip is not None else [*lines, "clipped = np.zeros((B, T), bool)"]


def _kl(o: Objective) -> list[str]:
    if o.kl == EXACT:
        lines = [
            "p = np.exp(POLICY[k])  # every action's probability (C, V)",
            "gap = np.where(p > 0, POLICY[k], 0.0) - np.where(p > 0, REFERENCE, 0.0)",
            "kl = np.where(MASK, (p * gap).sum(1)[CONTEXT], 0.0)  # the exact KL at each token's place",
        ]
    else:
        value = ESTIMATORS[o.kl].script
        lines = ["d = np.where(MASK, REF_LOGP - logp, 0.0)", f"kl = {value}  # the estimate {o.kl}"]
    return [*lines, "kl = kl * ratio"] if o.kl_importance else lines


def _weight(step: Step) -> list[str]:
    reduction = REDUCTIONS[step.settings.objective.reduction]
    parts = bool(step.part.any())
    count = "max(MASK.sum(), 1)" if reduction.counts_tokens else "B"
    lines = []
    if parts:
        size = "max(MASK[PART[k] == m].sum(), 1)" if reduction.counts_tokens else "(PART[k] == m).sum()"
        one = "DENOMINATOR[k, m]" if step.denominator is not None else size
        lines = [f"count = np.array([[{one}] for m in PART[k]])  # of each completion's micro-batch"]
        count = "count"
    elif step.denominator is not None:
        count = "DENOMINATOR[k, 0]"
    weight = reduction.script(count)
    if parts:
        return [*lines, f"weight = np.where(PART[k][:, None] >= 0, {weight}, 0.0)"]
    return [f"weight = {weight}"]


def _token_loss(o: Objective, has_kl: bool) -> list[str]:
    lines = []
    loss = "BETA * kl - surrogate" if _penalised(o, has_kl) else "-surrogate"
    if o.entropy_bonus:
        lines = [
            "q = np.exp(POLICY[k])",
            "entropy = -(q * np.where(q > 0, POLICY[k], 0.0)).sum(1)[CONTEXT]",
        ]
        loss += " - ENTROPY_BONUS * np.where(MASK, entropy, 0.0)"
    return [*lines, f"token_loss = {loss}", "loss = (weight * token_loss).sum()"]


def _penalised(o: Objective, has_kl: bool) -> bool:
    return has_kl and not o.kl_in_reward and o.beta != 0


def _gradient(o: Objective, has_kl: bool) -> list[str]:
    """Return the lines for d loss / d log π of the sampled tokens, without the part through the distribution."""
    match SURROGATES[o.surrogate].path:
        case Path.LOG_PROB:
            lines = ["gradient = -weight * slope  # d loss / d log π"]
        case Path.MEAN:
            lines = [
                "whole = np.where(MASK, -weight * slope, 0.0).sum(1, keepdims=True) / L",
                "gradient = np.where(clipped, 0.0, whole)  # d loss / d log π",
                *_through_limit(o, "gradient"),
            ]
        case Path.RATIO:
            lines = _through_ratio(o, "-weight * slope", "gradient", "d loss / d log π")
    if _penalised(o, has_kl):
        times = " * ratio" if o.kl_importance else ""
        if o.kl != EXACT:
            lines += [f"gradient = gradient + BETA * weight * {ESTIMATORS[o.kl].script_slope}{times}"]
        if o.kl_importance:
            lines += _through_ratio(o, "BETA * weight * kl", "through", "the ratio in front of the KL")
            lines += ["gradient = gradient + through"]
    return [*lines, "gradient = np.where(MASK, gradient, 0.0)"]


def _through_ratio(o: Objective, value: str, name: str, help: str) -> list[str]:
    """Return the lines of the script that backpropagate log r to the log-probability of each token."""
    level = LEVELS[o.level]
    if level.of_completion:
        value = f"np.where(MASK, {value}, 0.0).sum(1, keepdims=True){' / L' if level.by_length else ''}"
    return [f"{name} = {value}  # {help}", *_through_limit(o, name)]


def _through_limit(o: Objective, name: str) -> list[str]:
    return [] if o.log_ratio_limit is None else [f"{name} = np.where(limited, 0.0, {name})"]


def _print(has_kl: bool, some_unused: bool) -> list[str]:
    names = ["A", "ratio", "clipped", "surrogate", *(["kl"] if has_kl else []), "weight", "token_loss", "gradient"]
    heads = ["advantage", *names[1:]]
    unused = ["    if PART[k][i] < 0:", "        continue"] if some_unused else []
    return [
        'print(f"pass {PASS[k]}: loss {loss:.12g} (GRPO Lab computed {LAB_LOSS[k]:.12g})")',
        f"names = {heads!r}".replace("'", '"'),
        'print("  row token  sampled" + "".join(f" {name:>18}" for name in names))',
        "for (i, t), word in zip(np.argwhere(MASK), SAMPLED):",
        *unused,
        f"    numbers = [float(x[i, t]) for x in ({', '.join(names)})]",
        '    print(f"{i + 1:5} {t + 1:5} {word!a:>8}" + "".join(f" {x:18.12g}" for x in numbers))',
    ]
