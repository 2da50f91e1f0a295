"""PPO's clipped surrogate, adopted by GRPO, with the dual clip of arXiv:1912.09729 as an option.

S = min(min(r, c) A, clip(r, 1 − ε, 1 + ε⁺) A). PPO, arXiv:1707.06347, equation 7, where ε⁺ = ε and there is no c.
"""

from __future__ import annotations

from grpo_core.arrays import Array, clamp
from grpo_core.config import Objective
from grpo_core.expression import ADVANTAGE, RATIO, Expression, Reading, Term, joint
from grpo_core.surrogates.surrogate import Batch, Clip, Path, Ratio, Script, Surrogate
from grpo_core.text import tr
from grpo_core.typeset import number, plain, signed

PPO = "PPO, arXiv:1707.06347, equation 7"
DUAL_CLIP = "dual clip, arXiv:1912.09729"


def value(b: Batch) -> Array:
    """Return min(min(r, c) A, clip(r, 1 − ε, 1 + ε⁺) A)."""
    return b.xp.minimum(_capped(b) * b.advantage, _banded(b) * b.advantage)


def pull(b: Batch, upstream: Array) -> Array:
    """Backpropagate with d/d log r = r A where the active branch depends on r, otherwise 0. At a bound, the branch
    still depends on r.
    """
    slope = b.ratio * b.advantage
    return upstream * b.xp.where(_follows(b), slope, 0.0)


def stopped(b: Batch) -> Array:
    """Return whether the advantage is not 0 and the surrogate no longer depends on r, boolean, in the shape of r."""
    return ~_follows(b) & (b.advantage != 0)


def _follows(b: Batch) -> Array:
    """Return whether the active branch of the minimum depends on r."""
    xp, r, a, o = b.xp, b.ratio, b.advantage, b.objective
    below_high, above_low = r <= 1 + o.clip_high, r >= 1 - o.clip_low
    if o.dual_clip is None:
        rising = a > 0
        return (rising & below_high) | (~rising & above_low)
    return xp.where(_capped(b) * a <= _banded(b) * a, r <= o.dual_clip, below_high & above_low)


def _capped(b: Batch) -> Array:
    return clamp(b.ratio, high=b.objective.dual_clip)


def _banded(b: Batch) -> Array:
    return clamp(b.ratio, 1 - b.objective.clip_low, 1 + b.objective.clip_high)


# -- explained ---------------------------------------------------------------------------------------------------------


def explained(t: Reading) -> Expression:
    """Explain the minimum of the two branches for one token."""
    o, name, r, a = t.objective, t.advantage_name, t.ratio, t.advantage
    (low, high), cap = band(o), o.dual_clip
    free = t.ratio_name if cap is None else rf"\min({t.ratio_name}, c)"
    free_values = number(r) if cap is None else rf"\min({number(r)}, {number(cap)})"
    capped, banded = (r if cap is None else min(r, cap)), min(max(r, low), high)
    return Expression(
        general=rf"\min\left({free} {name}, "
        rf"\mathrm{{clip}}({t.ratio_name}, 1 - \varepsilon, 1 + \varepsilon^{{+}}) {name}\right)",
        values=rf"\min\left({free_values} \cdot {signed(a)}, "
        rf"\mathrm{{clip}}({number(r)}, {number(low)}, {number(high)}) \cdot {signed(a)}\right)",
        value=min(capped * a, banded * a),
        note=_branch(o, r, a),
        source=_source(o),
    )


def slope(t: Reading) -> Expression:
    """Explain the slope: r A where the active branch depends on r."""
    r, a = t.ratio, t.advantage
    is_open = _is_open(t.objective, r, a)
    return Expression(
        general=rf"{t.ratio_name} {t.advantage_name} \cdot [\mathrm{{not\ clipped}}]",
        values=rf"{number(r)} \cdot {signed(a)} \cdot {int(is_open)}",
        value=r * a if is_open else 0.0,
        note="" if is_open or not a else tr("The clipped branch was taken, which does not change with the ratio."),
        source=PPO,
    )


def explained_clip(t: Reading) -> Expression:
    """Explain whether the gradient was stopped, from the sign of the advantage and the bounds of the ratio."""
    o, r, a = t.objective, t.ratio, t.advantage
    return Expression(
        general=_condition(t.ratio_name, o),
        values="",
        value=float(a != 0 and not _is_open(o, r, a)),
        note=_branch(o, r, a),
        source=_source(o),
    )


def band(o: Objective) -> tuple[float, float]:
    """Return the bounds 1 − ε and 1 + ε⁺."""
    return 1 - o.clip_low, 1 + o.clip_high


def ratio_in_band(o: Objective, ratio: float) -> float:
    low, high = band(o)
    return min(max(ratio, low), high)


def _source(o: Objective) -> str:
    return PPO if o.dual_clip is None else f"{PPO}; {DUAL_CLIP}"


def _is_open(o: Objective, r: float, a: float) -> bool:
    """Return whether the active branch of the minimum still depends on the ratio."""
    low, high = band(o)
    if o.dual_clip is None:
        return r <= high if a > 0 else r >= low
    if min(r, o.dual_clip) * a <= min(max(r, low), high) * a:
        return r <= o.dual_clip
    return low <= r <= high


def _condition(r: str, o: Objective) -> str:
    """Return the LaTeX condition under which min(min(r, c) A, clip(r, 1 − ε, 1 + ε⁺) A) no longer depends on r."""
    low, rising, falling = r"1 - \varepsilon", r"1 + \varepsilon^{+}", ""
    if o.dual_clip is not None:
        rising, falling = (rising, "c") if o.dual_clip >= 1 + o.clip_high else ("c", rising)
    down = rf"{r} < {low}"
    if falling:
        down = rf"({down} \; \mathrm{{or}} \; {r} > {falling})"
    return rf"(A > 0 \; \mathrm{{and}} \; {r} > {rising}) \; \mathrm{{or}} \; (A < 0 \; \mathrm{{and}} \; {down})"


def _branch(o: Objective, r: float, a: float) -> str:
    """Return a sentence that says which branch of the minimum is active."""
    (low, high), cap = band(o), o.dual_clip
    width = tr("{low} to {high}").format(low=plain(low), high=plain(high))
    if a == 0:
        return tr("The advantage is 0, so both branches are 0.")
    if cap is not None and r > cap and min(r, cap) * a <= min(max(r, low), high) * a:
        return tr(
            "The ratio is above the dual clip {cap}, which was taken instead: the push on this token stops."
        ).format(cap=plain(cap))
    if cap is not None and cap < r <= high:  # A < 0, and a cap inside the band: the branches are c A and r A
        return tr("The ratio lies inside the band {band}: the branch r A was taken, and nothing is clipped.").format(
            band=width
        )
    if low <= r <= high:
        return tr("The ratio lies inside the band {band}: both branches are equal, and nothing is clipped.").format(
            band=width
        )
    if not _is_open(o, r, a):
        return tr(
            "The ratio left the band {band} and the clipped branch was taken: the push on this token stops."
        ).format(band=width)
    return tr(
        "The ratio left the band {band} on the side from which the push leads back: the unclipped branch was taken."
    ).format(band=width)


# -- exported and drawn ------------------------------------------------------------------------------------------------


def script(o: Objective) -> Script:
    """Return the clipped surrogate as code for a script. Without a dual clip, the second minimum is omitted."""
    constants: dict[str, object] = {"CLIP_LOW": o.clip_low, "CLIP_HIGH": o.clip_high}
    end = (
        "clipped = ~follows & (A != 0) & MASK",
        "slope = np.where(follows, ratio * A, 0.0)  # d surrogate / d log r",
    )
    if o.dual_clip is None:
        return Script(
            constants=constants,
            lines=(
                "surrogate = np.minimum(ratio * A, np.clip(ratio, 1 - CLIP_LOW, 1 + CLIP_HIGH) * A)",
                "follows = np.where(A > 0, ratio <= 1 + CLIP_HIGH, ratio >= 1 - CLIP_LOW)  # the minimum follows r",
                *end,
            ),
        )
    return Script(
        constants=constants | {"DUAL_CLIP": o.dual_clip},
        lines=(
            "capped, banded = np.minimum(ratio, DUAL_CLIP), np.clip(ratio, 1 - CLIP_LOW, 1 + CLIP_HIGH)",
            "surrogate = np.minimum(capped * A, banded * A)",
            "inside = (ratio >= 1 - CLIP_LOW) & (ratio <= 1 + CLIP_HIGH)",
            "follows = np.where(capped * A <= banded * A, ratio <= DUAL_CLIP, inside)  # the minimum follows r",
            *end,
        ),
    )


def terms(o: Objective) -> tuple[Term, ...]:
    """Return the terms of min(r A, clip(r, low, high) A), with the numeric values of the bounds."""
    low, high = (f"{bound:.6g}" for bound in band(o))
    clip = Term(
        key="clipped",
        latex=rf"\mathrm{{clip}}(r,\,{low},\,{high})",
        name=tr("clipped ratio"),
        help=tr("The ratio held inside the clip range: beyond it the push stops."),
    )
    ratio = RATIO
    if o.dual_clip is not None:
        ratio = Term(
            key="ratio",
            latex=rf"\min(r,\,{o.dual_clip:.6g})",
            name=RATIO.name,
            help=tr("Probability of the token now divided by that under the old policy, held below the dual clip."),
        )
    return (joint(r"\min("), ratio, ADVANTAGE, joint(",", glue=True), clip, ADVANTAGE, joint(")", glue=True))


SURROGATE = Surrogate(
    value=value,
    pull=pull,
    path=Path.RATIO,
    ratio=Ratio.LEVEL,
    clip=Clip(stopped=stopped, explained=explained_clip, band=band, after=ratio_in_band),
    knobs=("clip_low", "clip_high", "dual_clip"),
    explained=explained,
    slope=slope,
    script=script,
    terms=terms,
)
