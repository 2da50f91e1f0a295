"""CISPO: the importance weight is capped and held constant, so that every token keeps a gradient.

S = sg(min(r, ε⁺)) A log π. MiniMax-M1, arXiv:2506.13585, equation 4; the cap is one number here, as in TRL.
"""

from __future__ import annotations

from grpo_core.arrays import clamp
from grpo_core.config import Objective
from grpo_core.expression import ADVANTAGE, LOG_PROB, Expression, Reading, Term
from grpo_core.surrogates.surrogate import Clip, Ratio, Script, with_held_weight
from grpo_core.text import tr
from grpo_core.typeset import number, plain


def explained_weight(t: Reading) -> Expression:
    """Explain the weight min(r, ε⁺) of one token."""
    r, cap = t.ratio, t.objective.clip_high
    return Expression(
        general=rf"\min({t.ratio_name}, \varepsilon^{{+}})",
        values=rf"\min({number(r)}, {number(cap)})",
        value=capped_ratio(t.objective, r),
        note=_note(r, cap),
        source="MiniMax-M1 (CISPO), arXiv:2506.13585, equation 4",
    )


def explained_clip(t: Reading) -> Expression:
    """Explain whether one token's weight was capped."""
    r, cap = t.ratio, t.objective.clip_high
    return Expression(
        general=rf"{t.ratio_name} > \varepsilon^{{+}}", values="", value=float(r > cap), note=_note(r, cap)
    )


def _note(r: float, cap: float) -> str:
    if r > cap:
        return tr("The ratio is above the cap ε⁺ = {cap}: the weight is cut to it, but the push stays.").format(
            cap=plain(cap)
        )
    return tr("The ratio is not above the cap ε⁺ = {cap}: the weight is the ratio itself.").format(cap=plain(cap))


def capped_ratio(o: Objective, ratio: float) -> float:
    """Return the weight for ``ratio``, min(r, ε⁺)."""
    return min(ratio, o.clip_high)


def terms(o: Objective) -> tuple[Term, ...]:
    """Return the terms of sg(min(r, cap)) A log π."""
    cap = Term(
        key="clipped",
        latex=rf"\mathrm{{sg}}(\min(r,\,{o.clip_high:.6g}))",
        name=tr("capped ratio"),
        help=tr("The ratio, capped and held constant: it weights the push and is never pushed itself."),
    )
    return (cap, ADVANTAGE, LOG_PROB)


SURROGATE = with_held_weight(
    lambda b: clamp(b.ratio, high=b.objective.clip_high),
    explained_weight,
    ratio=Ratio.LEVEL,
    clip=Clip(
        stopped=lambda b: b.ratio > b.objective.clip_high,
        explained=explained_clip,
        band=lambda o: (0.0, o.clip_high),
        after=capped_ratio,
        counted=tr("Tokens of the last pass whose weight was cut to the cap, out of all tokens. Their push stays."),
        cuts_weight=True,
    ),
    knobs=("clip_high",),
    script=lambda o: Script(
        constants={"CAP": o.clip_high},
        lines=(
            "slope = np.minimum(ratio, CAP) * A  # the capped ratio is a constant: d surrogate / d log π",
            "surrogate = slope * logp",
            "clipped = (ratio > CAP) & MASK",
        ),
    ),
    terms=terms,
)
