"""DPPO: a push stops once it has moved the probability of its token too far, whatever the ratio.

S = sg(r) A log π, or 0 where A > 0 and π − π_old > ε⁺, or A < 0 and π − π_old < −ε. Divergence PPO, arXiv:2602.04879,
in its Binary-TV form: |π − π_old| is the total variation between the policies if tokens are only told apart as sampled
or not. After verl 0.9's loss “dppo_tv”, whose cap on r (clip_ratio_c) is left out.
"""

from __future__ import annotations

import math

from grpo_core.arrays import Array
from grpo_core.config import Objective
from grpo_core.expression import ADVANTAGE, LOG_PROB, Expression, Reading, Term, exponential, ratio_factor
from grpo_core.surrogates.surrogate import Batch, Clip, Ratio, Script, with_held_weight
from grpo_core.text import tr
from grpo_core.typeset import number, plain, signed

PAPER = "DPPO, arXiv:2602.04879"


def weight(b: Batch) -> Array:
    """Return the token's own ratio, or 0 where the push is stopped."""
    return b.xp.where(stopped(b), 0.0, b.xp.exp(b.log_ratio))


def stopped(b: Batch) -> Array:
    """Return the tokens whose probability has moved further than ε⁺ or ε the way of the push, boolean (..., B, T)."""
    moved, a, o = b.xp.exp(b.logp) - b.xp.exp(b.old_logp), b.advantage, b.objective
    return ((a > 0) & (moved > o.clip_high)) | ((a < 0) & (moved < -o.clip_low))


def explained_weight(t: Reading) -> Expression:
    """Explain the weight of one token: its ratio, or 0."""
    condition = explained_clip(t)
    r, log_ratio = exponential(t.log_ratio), t.log_ratio
    kept = 1 - condition.value
    return Expression(
        general=rf"e^{{\log r_{t.index}}} \cdot [\mathrm{{not\ clipped}}]",
        values=rf"e^{{{number(log_ratio)}}} \cdot {kept:g}",
        value=r * kept,
        note=condition.note,
        source=PAPER,
        scale=r * max(1.0, abs(log_ratio)),
    )


def explained_clip(t: Reading) -> Expression:
    """Explain whether one token's push was stopped, from its probabilities and the sign of the advantage."""
    o, a, new, old = t.objective, t.advantage, math.exp(t.logp), math.exp(t.old_logp)
    moved = new - old
    beyond = moved > o.clip_high if a > 0 else a < 0 and moved < -o.clip_low
    change = rf"\pi_{t.index} - \pi^{{\mathrm{{old}}}}_{t.index}"
    note = tr("The probability went from {old} to {new}: the push stops.")
    if not beyond:
        note = tr("The probability went from {old} to {new}: the push goes on.") if a else tr("There is no push.")
    return Expression(
        general=rf"(A > 0 \; \mathrm{{and}} \; {change} > \varepsilon^{{+}}) \; \mathrm{{or}} \; "
        rf"(A < 0 \; \mathrm{{and}} \; {change} < -\varepsilon)",
        values=f"{number(new)} - {signed(old)}",
        value=float(beyond),
        note=note.format(old=plain(old), new=plain(new)),
        source=PAPER,
    )


def terms(o: Objective) -> tuple[Term, ...]:
    """Return the terms of sg(r) A log π and the condition under which the push goes on."""
    bound = f"{o.clip_high:.6g}" if o.clip_low == o.clip_high else rf"{o.clip_high:.6g} \,|\, {o.clip_low:.6g}"
    weighed = ratio_factor(r"\mathrm{sg}(r)", tr("ratio, held constant"))
    condition = Term(
        key="clipped",
        latex=rf"\left[\pm\Delta\pi \le {bound}\right]",
        name=tr("condition on the change of the probability"),
        help=tr("1 until the push has moved the probability by the bound, upwards for A > 0; then 0."),
    )
    return (weighed, ADVANTAGE, LOG_PROB, condition)


SURROGATE = with_held_weight(
    weight,
    explained_weight,
    ratio=Ratio.OWN,
    clip=Clip(
        stopped=stopped,
        explained=explained_clip,
        band=lambda o: (1.0, 1.0),
        rule=tr(
            "DPPO stops a push up once the token's probability is more than ε⁺ above its probability under the old "
            "policy, and a push down once it is more than ε below; the ratio does not matter."
        ),
        counted=tr(
            "Tokens of the last pass whose push was stopped, out of all tokens: it had moved their probability by more "
            "than ε⁺ or ε."
        ),
    ),
    knobs=("clip_low", "clip_high"),
    script=lambda o: Script(
        constants={"CLIP_LOW": o.clip_low, "CLIP_HIGH": o.clip_high},
        lines=(
            "moved = np.exp(logp) - np.exp(OLD_LOGP)  # in probability, not in ratio",
            "clipped = (((A > 0) & (moved > CLIP_HIGH)) | ((A < 0) & (moved < -CLIP_LOW))) & MASK",
            "slope = np.where(clipped, 0.0, np.exp(log_ratio)) * A  # a constant weight times A",
            "surrogate = slope * logp",
        ),
    ),
    terms=terms,
)
