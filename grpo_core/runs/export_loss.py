"""The code of a script that computes one update, second half: the loss of each pass and its gradient.

Lines of Python for plain NumPy, and only the branches that the objective takes. The formulas are those of
``surrogates.py``, ``kl.py`` and ``objective.py``.
"""

from __future__ import annotations

from grpo_core.config import Objective
from grpo_core.record import Step

DIRECT = ("cispo", "vespo", "log_prob")
"""Surrogates whose gradient reaches log π without passing through the ratio."""


def loss_lines(step: Step, *, has_kl: bool) -> list[str]:
    """The loop over the passes: ratio, surrogate, KL, weight, loss, gradient, and what is printed of them."""
    o = step.settings.objective
    body = [
        "logp = LOGP[k]",
        "log_ratio = np.where(MASK, logp - OLD_LOGP, 0.0)",
        *_limit(o),
        *_ratio(o),
        *_surrogate(o),
        *(["surrogate = surrogate * GATE", "slope = slope * GATE"] if step.gate is not None else []),
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
    match o.level:
        case "token":
            return ["ratio = np.exp(log_ratio)  # probability now over probability when sampled"]
        case "sequence":
            said, power = "one for the completion: the geometric mean of its tokens'", " / L"
        case _:
            said, power = "one for the completion: the product of its tokens'", ""
    whole = f"np.exp(log_ratio.sum(1, keepdims=True){power})"
    return [f"ratio = np.where(MASK, {whole}, 1.0)  # {said}"]


def _surrogate(o: Objective) -> list[str]:
    """What is maximised, where its push is stopped, and its slope by log r (by log π for ``DIRECT``)."""
    match o.surrogate:
        case "clip" if o.dual_clip is None:
            return [
                "surrogate = np.minimum(ratio * A, np.clip(ratio, 1 - CLIP_LOW, 1 + CLIP_HIGH) * A)",
                "follows = np.where(A > 0, ratio <= 1 + CLIP_HIGH, ratio >= 1 - CLIP_LOW)  # the minimum follows r",
                "clipped = ~follows & (A != 0) & MASK",
                "slope = np.where(follows, ratio * A, 0.0)  # d surrogate / d log r",
            ]
        case "clip":
            return [
                "capped, banded = np.minimum(ratio, DUAL_CLIP), np.clip(ratio, 1 - CLIP_LOW, 1 + CLIP_HIGH)",
                "surrogate = np.minimum(capped * A, banded * A)",
                "inside = (ratio >= 1 - CLIP_LOW) & (ratio <= 1 + CLIP_HIGH)",
                "follows = np.where(capped * A <= banded * A, ratio <= DUAL_CLIP, inside)  # the minimum follows r",
                "clipped = ~follows & (A != 0) & MASK",
                "slope = np.where(follows, ratio * A, 0.0)  # d surrogate / d log r",
            ]
        case "cispo":
            return [
                "slope = np.minimum(ratio, CAP) * A  # the capped ratio is a constant: d surrogate / d log π",
                "surrogate = slope * logp",
                "clipped = (ratio > CAP) & MASK",
            ]
        case "sapo":
            return [
                "tau = np.where(A > 0, TAU_POS, TAU_NEG)",
                "soft = 1 / (1 + np.exp(-tau * (ratio - 1)))  # a soft gate instead of a clip",
                "surrogate = 4 / tau * soft * A",
                "clipped = np.zeros((B, T), bool)",
                "slope = 4 * soft * (1 - soft) * ratio * A  # d surrogate / d log r",
            ]
        case "vespo":
            return [
                "log_w = np.clip(np.clip(log_ratio, -20, 20).sum(1, keepdims=True), np.log(1e-8), 20)",
                "power, decay = np.where(A >= 0, K_POS, K_NEG), np.where(A >= 0, LAMBDA_POS, LAMBDA_NEG)",
                "slope = np.exp(decay + power * log_w - decay * np.exp(log_w)) * A  # a constant weight times A",
                "surrogate = slope * logp",
                "clipped = np.zeros((B, T), bool)",
            ]
        case "gmpo":
            return [
                "risen, fallen = np.minimum(log_ratio, CLIP_HIGH), np.maximum(log_ratio, -CLIP_LOW)",
                "held = np.where(A > 0, risen, np.where(A < 0, fallen, log_ratio))",
                "clipped = ((A > 0) & (log_ratio > CLIP_HIGH)) | ((A < 0) & (log_ratio < -CLIP_LOW))",
                "surrogate = np.exp(held.sum(1, keepdims=True) / L) * A",
                "slope = surrogate  # d surrogate / d (mean of the clipped log-ratios)",
            ]
        case _:
            return ["surrogate = A * logp", "clipped = np.zeros((B, T), bool)", "slope = A  # d surrogate / d log π"]


def _kl(o: Objective) -> list[str]:
    if o.kl == "exact":
        lines = [
            "p = np.exp(POLICY[k])  # every action's probability (C, V)",
            "gap = np.where(p > 0, POLICY[k], 0.0) - np.where(p > 0, REFERENCE, 0.0)",
            "kl = np.where(MASK, (p * gap).sum(1)[CONTEXT], 0.0)  # the exact KL at each token's place",
        ]
    else:
        value = {"k1": "-d", "k2": "d**2 / 2", "k3": "np.expm1(d) - d"}[o.kl]
        lines = ["d = np.where(MASK, REF_LOGP - logp, 0.0)", f"kl = {value}  # the estimate {o.kl}"]
    return [*lines, "kl = kl * ratio"] if o.kl_importance else lines


def _weight(step: Step) -> list[str]:
    """W: what one token counts."""
    o = step.settings.objective
    parts = bool(step.part.any())
    count = {"token": "max(MASK.sum(), 1)"}.get(o.reduction, "B")
    lines = []
    if parts:
        size = "max(MASK[PART[k] == m].sum(), 1)" if o.reduction == "token" else "(PART[k] == m).sum()"
        one = "DENOMINATOR[k, m]" if step.denominator is not None else size
        lines = [f"count = np.array([[{one}] for m in PART[k]])  # of each completion's micro-batch"]
        count = "count"
    elif step.denominator is not None:
        count = "DENOMINATOR[k, 0]"
    weight = {
        "sequence": f"MASK / (L * {count})", "constant": f"MASK / ({count} * MAX_TOKENS)",
    }.get(o.reduction, f"MASK / {count}")  # fmt: skip
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
    return has_kl and o.kl_in == "loss" and o.beta != 0


def _gradient(o: Objective, has_kl: bool) -> list[str]:
    """d loss / d log π of the sampled tokens, without what flows through the full distribution."""
    lines = _flow(o, "-weight * slope", "gradient")
    if _penalised(o, has_kl):
        times = " * ratio" if o.kl_importance else ""
        slope = {"k1": "1.0", "k2": "-d", "k3": "-np.expm1(d)"}.get(o.kl)
        if slope:
            lines += [f"gradient = gradient + BETA * weight * {slope}{times}"]
        if o.kl_importance:
            lines += [*_flow(o, "BETA * weight * kl", "through", product=True), "gradient = gradient + through"]
    return [*lines, "gradient = np.where(MASK, gradient, 0.0)"]


def _flow(o: Objective, value: str, name: str, *, product: bool = False) -> list[str]:
    """Back from log r (or straight from log π) to the log-probability of each token."""
    help = "  # d loss / d log π" if name == "gradient" else "  # the ratio in front of the KL"
    if o.surrogate in DIRECT and not product:
        return [f"{name} = {value}{help}"]
    if o.surrogate == "gmpo" and not product:
        lines = [f"whole = np.where(MASK, {value}, 0.0).sum(1, keepdims=True) / L"]
        lines += [f"{name} = np.where(clipped, 0.0, whole){help}"]
    elif o.level == "token":
        lines = [f"{name} = {value}{help}"]
    else:
        mean = " / L" if o.level == "sequence" else ""
        lines = [f"{name} = np.where(MASK, {value}, 0.0).sum(1, keepdims=True){mean}{help}"]
    if o.log_ratio_limit is not None:
        lines += [f"{name} = np.where(limited, 0.0, {name})"]
    return lines


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
