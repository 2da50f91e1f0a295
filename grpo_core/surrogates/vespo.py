"""VESPO: each completion is weighted by a smooth function of its own product of ratios, held constant.

S = sg(φ) A log π with φ = exp(λ + k log w − λ w) and w the product of the completion's ratios; (k, λ) chosen by the
sign of A. VESPO, arXiv:2602.10693; the clamps are TRL's: log-ratios to ±20, their sum to [log 1e-8, 20]. φ = 1 at w
= 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from grpo_core.arrays import Array, as_array, clamp
from grpo_core.expression import ADVANTAGE, LOG_PROB, Expression, Reading, exponential, ratio_factor
from grpo_core.surrogates.surrogate import Batch, Ratio, Script, with_held_weight
from grpo_core.text import tr
from grpo_core.typeset import number, plain, signed

LIMIT, LOWEST = 20.0, math.log(1e-8)


def weight(b: Batch) -> Array:
    """Return φ of the completion."""
    xp, o = b.xp, b.objective
    positive = b.advantage >= 0
    k = xp.where(positive, as_array(o.vespo_k_pos, b.logp), as_array(o.vespo_k_neg, b.logp))
    decay = xp.where(positive, as_array(o.vespo_lambda_pos, b.logp), as_array(o.vespo_lambda_neg, b.logp))
    log_w = clamp(xp.sum(clamp(b.log_ratio, -LIMIT, LIMIT), axis=-1, keepdims=True), LOWEST, LIMIT)
    return xp.exp(decay + k * log_w - decay * xp.exp(log_w))


def explained_weight(t: Reading) -> Expression:
    o, a, product = t.objective, t.advantage, t.of_completion(_log_w)
    log_w = product.value
    k, decay = (o.vespo_k_pos, o.vespo_lambda_pos) if a >= 0 else (o.vespo_k_neg, o.vespo_lambda_neg)
    w = math.exp(log_w)
    phi = exponential(decay + k * log_w - decay * w)
    note = (
        tr("log w is the sum of the completion's log-ratios, {log_w}; k and λ are those for A ≥ 0.")
        if a >= 0
        else tr("log w is the sum of the completion's log-ratios, {log_w}; k and λ are those for A < 0.")
    )
    return Expression(
        general=r"\exp\left(\lambda + k \log w - \lambda w\right)",
        values=rf"\exp\left({number(decay)} + {number(k)} \cdot {signed(log_w)} "
        rf"- {number(decay)} \cdot {number(w)}\right)",
        value=phi,
        note=note.format(log_w=plain(log_w)),
        source="VESPO, arXiv:2602.10693",
        scale=phi * max(1.0, (k + decay * w) * max(1.0, product.size)),
    )


def _log_w(tokens: Sequence[Reading]) -> Expression:
    logs = [min(max(t.log_ratio, -LIMIT), LIMIT) for t in tokens]
    value = min(max(math.fsum(logs), LOWEST), LIMIT)
    return Expression(general=r"\log w", values="", value=value, scale=math.fsum(map(abs, logs)))


SURROGATE = with_held_weight(
    weight,
    explained_weight,
    ratio=Ratio.OWN,
    unclipped=tr(
        "This loss has no clip: VESPO weights completions by the product of their ratios instead of stopping them. "
        "The clip range has no effect."
    ),
    knobs=("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"),
    script=lambda o: Script(
        constants={
            "K_POS": o.vespo_k_pos,
            "LAMBDA_POS": o.vespo_lambda_pos,
            "K_NEG": o.vespo_k_neg,
            "LAMBDA_NEG": o.vespo_lambda_neg,
        },
        lines=(
            "log_w = np.clip(np.clip(log_ratio, -20, 20).sum(1, keepdims=True), np.log(1e-8), 20)",
            "power, decay = np.where(A >= 0, K_POS, K_NEG), np.where(A >= 0, LAMBDA_POS, LAMBDA_NEG)",
            "slope = np.exp(decay + power * log_w - decay * np.exp(log_w)) * A  # a constant weight times A",
            "surrogate = slope * logp",
        ),
    ),
    terms=lambda o: (ratio_factor(r"\mathrm{sg}(\varphi(r))", tr("weight φ")), ADVANTAGE, LOG_PROB),
)
