"""What is maximised on one token: how ratio and advantage combine, and which branch of the minimum was taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from grpo_core.explain.kl import exp, ratio_name
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.ratio import log_ratios
from grpo_core.explain.records import Rule
from grpo_core.explain.typeset import number, plain, signed, total
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A factor of a formula: its general LaTeX, its LaTeX with values, its value, what it read, and a word on it."""

    general: str
    values: str
    value: float
    inputs: tuple[Quantity, ...]
    note: str = ""
    source: str = ""
    scale: float = 0.0


def advantage_name(n: Numbers) -> str:
    """A completion's advantage, or a token's where a critic valued the tokens."""
    return f"A_{n.it}" if n.advantage.ndim > 1 else "A_{i}"


def read(n: Numbers, q: Quantity) -> tuple[Quantity, float, Quantity, float]:
    """Ratio and advantage of a token, each with its address."""
    ratio, advantage = n.token("ratio", q), n.canonical(Quantity("advantage", row=q.row, token=q.token))
    return ratio, n[ratio], advantage, n[advantage]


def follows(n: Numbers, r: float, a: float) -> bool:
    """Whether the branch of the minimum that was taken still changes with the ratio."""
    o = n.objective
    low, high = 1 - o.clip_low, 1 + o.clip_high
    if o.dual_clip is None:
        return r <= high if a > 0 else r >= low
    if min(r, o.dual_clip) * a <= min(max(r, low), high) * a:
        return r <= o.dual_clip
    return low <= r <= high


def branch(n: Numbers, r: float, a: float) -> str:
    """In words, which branch of the minimum was taken."""
    o = n.objective
    low, high, cap = 1 - o.clip_low, 1 + o.clip_high, o.dual_clip
    band = f"{plain(low)} to {plain(high)}"
    if a == 0:
        return tr("The advantage is 0, so both branches are 0.")
    if cap is not None and r > cap and min(r, cap) * a <= min(max(r, low), high) * a:
        return tr(
            "The ratio is above the dual clip {cap}, which was taken instead: the push on this token stops."
        ).format(cap=plain(cap))
    if cap is not None and cap < r <= high:  # A < 0, and a cap inside the band: the branches are c A and r A
        return tr("The ratio lies inside the band {band}: the branch r A was taken, and the push acts in full.").format(
            band=band
        )
    if low <= r <= high:
        return tr("The ratio lies inside the band {band}: both branches are equal, and the push acts in full.").format(
            band=band
        )
    if not follows(n, r, a):
        return tr(
            "The ratio left the band {band} and the clipped branch was taken: the push on this token stops."
        ).format(band=band)
    return tr(
        "The ratio left the band {band} on the side where the push leads back: the unclipped branch was taken."
    ).format(band=band)


def _clip(n: Numbers, q: Quantity) -> Piece:
    ratio, r, advantage, a = read(n, q)
    o, name = n.objective, advantage_name(n)
    low, high, cap = 1 - o.clip_low, 1 + o.clip_high, o.dual_clip
    free = f"{ratio_name(n)}" if cap is None else rf"\min({ratio_name(n)}, c)"
    free_values = number(r) if cap is None else rf"\min({number(r)}, {number(cap)})"
    capped, banded = (r if cap is None else min(r, cap)), min(max(r, low), high)
    return Piece(
        general=rf"\min\left({free} {name}, "
        rf"\mathrm{{clip}}({ratio_name(n)}, 1 - \varepsilon, 1 + \varepsilon^{{+}}) {name}\right)",
        values=rf"\min\left({free_values} \cdot {signed(a)}, "
        rf"\mathrm{{clip}}({number(r)}, {number(low)}, {number(high)}) \cdot {signed(a)}\right)",
        value=min(capped * a, banded * a),
        inputs=(ratio, advantage),
        note=branch(n, r, a),
        source="PPO, arXiv:1707.06347, equation 7" + ("; dual clip, arXiv:1912.09729" if cap is not None else ""),
    )


def cispo_weight(n: Numbers, q: Quantity) -> Piece:
    """min(r, cap), held constant."""
    ratio, r, _, _ = read(n, q)
    cap = n.objective.clip_high
    cut = tr("The ratio is above the cap ε⁺ = {cap}: the weight is cut to it, the push stays.").format(cap=plain(cap))
    return Piece(
        general=rf"\min({ratio_name(n)}, \varepsilon^{{+}})",
        values=rf"\min({number(r)}, {number(cap)})",
        value=min(r, cap),
        inputs=(ratio,),
        note=cut
        if r > cap
        else tr("The ratio is not above the cap ε⁺ = {cap}: the weight is the ratio itself.").format(cap=plain(cap)),
        source="MiniMax-M1 (CISPO), arXiv:2506.13585, equation 4",
    )


def vespo_weight(n: Numbers, q: Quantity) -> Piece:
    """exp(λ + k log w − λ w) of the completion's summed log-ratio, with TRL's clamps, held constant."""
    _, _, _, a = read(n, q)
    o = n.objective
    k, decay = (o.vespo_k_pos, o.vespo_lambda_pos) if a >= 0 else (o.vespo_k_neg, o.vespo_lambda_neg)
    inputs, logs = log_ratios(n, q)
    log_w = min(max(math.fsum(min(max(x, -20.0), 20.0) for x in logs), math.log(1e-8)), 20.0)
    w = math.exp(log_w)
    power = decay + k * log_w - decay * w
    return Piece(
        general=r"\exp\left(\lambda + k \log w - \lambda w\right)",
        values=rf"\exp\left({number(decay)} + {number(k)} \cdot {signed(log_w)} "
        rf"- {number(decay)} \cdot {number(w)}\right)",
        value=exp(power),
        inputs=tuple(inputs),
        note=tr("log w is the sum of the completion's log-ratios, {log_w}; k and λ are those for {value}.").format(
            log_w=plain(log_w), value="A ≥ 0" if a >= 0 else "A < 0"
        ),
        source="VESPO, arXiv:2602.10693",
        scale=exp(power) * max(1.0, decay * w, abs(k * log_w)),
    )


def sapo_gate(n: Numbers, q: Quantity) -> tuple[float, float]:
    """τ by the sign of the advantage, and σ(τ (r − 1))."""
    _, r, _, a = read(n, q)
    tau = n.objective.sapo_temperature_pos if a > 0 else n.objective.sapo_temperature_neg
    return tau, 0.5 + 0.5 * math.tanh(tau * (r - 1) / 2)


def gmpo_ratio(n: Numbers, q: Quantity) -> Piece:
    """The geometric mean of the completion's ratios, each clipped on the side its push points to."""
    inputs, logs = log_ratios(n, q)
    signs = [n.canonical(Quantity("advantage", row=q.row, token=i.token)) for i in inputs]
    held = [_gmpo_clip(n, x, n[a]) for x, a in zip(logs, signs, strict=True)]
    return Piece(
        general=rf"\exp\left(\frac{{1}}{{L_{{i}}}} \sum_{{t}} \mathrm{{clip}}(\log r_{n.it})\right)",
        values=rf"\exp\left(\frac{{1}}{{{len(held)}}} \left({total(held)}\right)\right)",
        value=exp(math.fsum(held) / len(held)),
        inputs=(*inputs, *dict.fromkeys(signs)),
        note=tr(
            "Each log-ratio is clipped before the mean: from above where A is positive, from below where it "
            "is negative."
        ),
        source="GMPO, arXiv:2507.20673, equation 4",
    )


def _gmpo_clip(n: Numbers, x: float, a: float) -> float:
    if a == 0:
        return x
    return min(x, n.objective.clip_high) if a > 0 else max(x, -n.objective.clip_low)


def gmpo_stopped(n: Numbers, x: float, a: float) -> bool:
    """Whether a token's own log-ratio was clipped."""
    return a != 0 and _gmpo_clip(n, x, a) != x


def _weighted(n: Numbers, q: Quantity, weight: Piece) -> Piece:
    """A weight that is held constant, times A log π."""
    _, _, advantage, a = read(n, q)
    now = n.token("logp", q)
    return Piece(
        general=rf"{weight.general} {advantage_name(n)} \log \pi_{n.it}",
        values=rf"{weight.values} \cdot {signed(a)} \cdot {signed(n[now])}",
        value=weight.value * a * n[now],
        inputs=(*weight.inputs, advantage, now),
        note=tr("{note} The weight is held constant in the gradient.").format(note=weight.note),
        source=weight.source,
        scale=max(weight.scale, weight.value) * abs(a * n[now]),
    )


def _sapo(n: Numbers, q: Quantity) -> Piece:
    ratio, _, advantage, a = read(n, q)
    tau, gate = sapo_gate(n, q)
    return Piece(
        general=rf"\frac{{4}}{{\tau}} \mathrm{{sigmoid}}(\tau ({ratio_name(n)} - 1)) {advantage_name(n)}",
        values=rf"\frac{{4}}{{{number(tau)}}} \cdot {number(gate)} \cdot {signed(a)}",
        value=4 / tau * gate * a,
        inputs=(ratio, advantage),
        note=tr(
            "A soft gate instead of a clip: the further the ratio is from 1, the smaller a share of the unclipped push "
            "r A is left. The push itself still grows while the ratio rises a little above 1, and then fades."
        ),
        source="SAPO, arXiv:2511.20347",
        scale=4 / tau * abs(a),
    )


def _gmpo(n: Numbers, q: Quantity) -> Piece:
    _, _, advantage, a = read(n, q)
    whole = gmpo_ratio(n, q)
    return Piece(
        general=rf"{whole.general} {advantage_name(n)}", values=rf"{whole.values} \cdot {signed(a)}",
        value=whole.value * a, inputs=(*whole.inputs, advantage), note=whole.note, source=whole.source,
    )  # fmt: skip


def _log_prob(n: Numbers, q: Quantity) -> Piece:
    _, _, advantage, a = read(n, q)
    now = n.token("logp", q)
    return Piece(
        general=rf"{advantage_name(n)} \log \pi_{n.it}", values=rf"{number(a)} \cdot {signed(n[now])}",
        value=a * n[now], inputs=(advantage, now), source="REINFORCE, Williams 1992",
        note=tr("No ratio and no clip; the value is no score, its gradient is the push."),
    )  # fmt: skip


SURROGATES: dict[str, Callable[[Numbers, Quantity], Piece]] = {
    "clip": _clip,
    "cispo": lambda n, q: _weighted(n, q, cispo_weight(n, q)),
    "sapo": _sapo,
    "vespo": lambda n, q: _weighted(n, q, vespo_weight(n, q)),
    "gmpo": _gmpo,
    "log_prob": _log_prob,
}


def surrogate(n: Numbers, q: Quantity) -> Formula:
    piece = SURROGATES[n.objective.surrogate](n, q)
    general, values, value, inputs = piece.general, piece.values, piece.value, piece.inputs
    scale = max(piece.scale, abs(piece.value))
    if n.step.gate is not None:
        gate = n.token("gate", q)
        general, values = rf"m_{n.it} {general}", rf"{number(n[gate])} \cdot {values}"
        value, inputs, scale = value * n[gate], (*inputs, gate), scale * abs(n[gate])
    return Formula(
        symbol=f"S_{n.at(q)}", general=f"S_{n.it} = {general}", values=values, value=value,
        inputs=tuple(dict.fromkeys(inputs)), scale=scale, note=piece.note, source=piece.source,
    )  # fmt: skip


RULES: dict[str, Rule] = {"surrogate": surrogate}
