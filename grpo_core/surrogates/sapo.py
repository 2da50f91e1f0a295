"""SAPO: a soft gate in place of the clip.

S = (4 / τ) σ(τ (r − 1)) A with τ chosen by the sign of A. SAPO, arXiv:2511.20347; τ⁺ = 1 and τ⁻ = 1.05 as in TRL.
"""

from __future__ import annotations

import math

from grpo_core.arrays import Array, as_array
from grpo_core.expression import ADVANTAGE, Expression, Reading, ratio_factor
from grpo_core.surrogates.surrogate import Batch, Path, Ratio, Script, Surrogate
from grpo_core.text import tr
from grpo_core.typeset import number, signed

PAPER = "SAPO, arXiv:2511.20347"


def value(b: Batch) -> Array:
    """Return (4 / τ) σ(τ (r − 1)) A."""
    tau, gate = _gate(b)
    return 4 / tau * gate * b.advantage


def pull(b: Batch, upstream: Array) -> Array:
    """Backpropagate with d/d log r = 4 σ (1 − σ) r A."""
    _, gate = _gate(b)
    return upstream * 4 * gate * (1 - gate) * b.ratio * b.advantage


def _gate(b: Batch) -> tuple[Array, Array]:
    o = b.objective
    positive, negative = as_array(o.sapo_temperature_pos, b.ratio), as_array(o.sapo_temperature_neg, b.ratio)
    tau = b.xp.where(b.advantage > 0, positive, negative)
    return tau, 0.5 + 0.5 * b.xp.tanh(tau * (b.ratio - 1) / 2)


def explained(t: Reading) -> Expression:
    """Explain the gate times the advantage for one token."""
    (tau, gate), a = _gate_of(t), t.advantage
    return Expression(
        general=rf"\frac{{4}}{{\tau}} \mathrm{{sigmoid}}(\tau ({t.ratio_name} - 1)) {t.advantage_name}",
        values=rf"\frac{{4}}{{{number(tau)}}} \cdot {number(gate)} \cdot {signed(a)}",
        value=4 / tau * gate * a,
        note=tr(
            "A soft gate instead of a clip: the further the ratio is from 1, the smaller the share of the unclipped "
            "push r A that is left. The push itself still grows while the ratio rises a little above 1, and then "
            "fades."
        ),
        source=PAPER,
        scale=4 / tau * abs(a),
    )


def slope(t: Reading) -> Expression:
    """Explain the slope 4 σ (1 − σ) r A."""
    (_, gate), r, a = _gate_of(t), t.ratio, t.advantage
    return Expression(
        general=rf"4 \sigma (1 - \sigma) {t.ratio_name} {t.advantage_name}",
        values=rf"4 \cdot {number(gate)} \cdot (1 - {number(gate)}) \cdot {number(r)} \cdot {signed(a)}",
        value=4 * gate * (1 - gate) * r * a,
        note=tr("σ is the soft gate, the sigmoid of τ (r − 1)."),
        source=PAPER,
        scale=4 * r * abs(a),
    )


def _gate_of(t: Reading) -> tuple[float, float]:
    """Return τ, chosen by the sign of the advantage, and σ(τ (r − 1))."""
    r, a = t.ratio, t.advantage
    tau = t.objective.sapo_temperature_pos if a > 0 else t.objective.sapo_temperature_neg
    return tau, 0.5 + 0.5 * math.tanh(tau * (r - 1) / 2)


SURROGATE = Surrogate(
    value=value,
    pull=pull,
    path=Path.RATIO,
    ratio=Ratio.LEVEL,
    unclipped=tr(
        "This loss has no clip: SAPO's gate takes more and more off the unclipped push and never stops it. The clip "
        "range has no effect."
    ),
    knobs=("sapo_temperature_pos", "sapo_temperature_neg"),
    explained=explained,
    slope=slope,
    script=lambda o: Script(
        constants={"TAU_POS": o.sapo_temperature_pos, "TAU_NEG": o.sapo_temperature_neg},
        lines=(
            "tau = np.where(A > 0, TAU_POS, TAU_NEG)",
            "soft = 1 / (1 + np.exp(-tau * (ratio - 1)))  # a soft gate instead of a clip",
            "surrogate = 4 / tau * soft * A",
            "slope = 4 * soft * (1 - soft) * ratio * A  # d surrogate / d log r",
        ),
    ),
    terms=lambda o: (ratio_factor(r"\tfrac{4}{\tau}\,\sigma(\tau(r-1))", tr("soft gate")), ADVANTAGE),
)
