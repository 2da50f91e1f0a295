"""Code of an exported script, second half: the loss of each pass and its gradient.

Lines of Python for plain NumPy, with only the branches that the objective takes. Lines that depend on a setting come
from the tables used in training: ``surrogates/``, ``levels.py``, ``kl.py`` and ``reductions.py``.
"""

from __future__ import annotations

from grpo_core.config import Objective
from grpo_core.kl import ESTIMATORS, EXACT
from grpo_core.levels import LEVELS
from grpo_core.recompute import gate_of
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES, Path


def loss_lines(step: Step, *, has_kl: bool) -> list[str]:
    """Return the lines of the script that loop over the passes, from the ratio to the gradient and the output."""
    o = step.settings.objective
    body = [
        "logp = LOGP[k]",
        "log_ratio = np.where(MASK, logp - OLD_LOGP, 0.0)",
        *_limit(o),
        *_ratio(o),
        *_surrogate(o),
        *(["surrogate = surrogate * GATE[k]", "slope = slope * GATE[k]"] if gate_of(step, 0) is not None else []),
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
