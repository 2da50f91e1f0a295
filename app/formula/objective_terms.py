"""The objective of this very update as terms: what is switched off is not in the formula."""

from __future__ import annotations

from app.formula.term_strip import Term
from grpo_core.config import Objective
from grpo_core.text import tr

_RATIO = Term(
    key="ratio", latex="r", name=tr("ratio r"), help=tr("Probability of the token now over that when sampled.")
)
_ADVANTAGE = Term(
    key="advantage", latex="A", name=tr("advantage A"), help=tr("How much better than its group the completion was."),
)  # fmt: skip
_LOG_PROB = Term(
    key="logp", latex=r"\log\pi", name=tr("log-probability"), help=tr("Log-probability of the sampled token.")
)


def _join(latex: str, *, glue: bool = False) -> Term:
    return Term(latex=latex, glue=glue)


def objective_terms(objective: Objective) -> tuple[Term, ...]:
    """L = − Σ W [ surrogate ] + β KL − c H, with the numbers of ``objective`` written in.

    Keys: loss, weight, surrogate, ratio, clipped, advantage, logp, gate, beta, kl, entropy.
    """
    start = (
        Term(key="loss", latex=r"L", name=tr("loss L"), help=tr("What the update descends; not a score.")),
        _join(r"=\;-\sum"),
        Term(key="weight", latex="W", name=tr("weight W"), help=tr("What the token counts in the mean.")),
        _join(r"\bigl[", glue=True),
    )
    end = (_join(r"\bigr]", glue=True),)
    return start + _surrogate(objective) + end + _penalty(objective)


def _surrogate(o: Objective) -> tuple[Term, ...]:
    if o.surrogate == "clip":
        low, high = f"{1 - o.clip_low:.6g}", f"{1 + o.clip_high:.6g}"
        clip = Term(
            key="clipped", latex=rf"\mathrm{{clip}}(r,\,{low},\,{high})", name=tr("clipped ratio"),
            help=tr("The ratio held inside the clip range: beyond it the push stops."),
        )  # fmt: skip
        ratio = _RATIO
        if o.dual_clip is not None:
            ratio = Term(
                key="ratio",
                latex=rf"\min(r,\,{o.dual_clip:.6g})",
                name=tr("ratio r"),
                help=_RATIO.help + tr(" Dual clip."),
            )
        return (_join(r"\min("), ratio, _ADVANTAGE, _join(",", glue=True), clip, _ADVANTAGE, _join(")", glue=True))
    if o.surrogate == "log_prob":
        return (_ADVANTAGE, _LOG_PROB)
    if o.surrogate == "cispo":
        cap = Term(
            key="clipped", latex=rf"\mathrm{{sg}}(\min(r,\,{o.clip_high:.6g}))", name=tr("capped ratio"),
            help=tr("The ratio, capped and held constant: it weighs the push and is never pushed itself."),
        )  # fmt: skip
        return (cap, _ADVANTAGE, _LOG_PROB)
    if o.surrogate == "vespo":
        return (_gate(r"\mathrm{sg}(\varphi(r))", tr("weight φ")), _ADVANTAGE, _LOG_PROB)
    if o.surrogate == "sapo":
        return (_gate(r"\tfrac{4}{\tau}\,\sigma(\tau(r-1))", tr("soft gate")), _ADVANTAGE)
    return (_gate(r"\bar{r}", tr("mean ratio")), _ADVANTAGE)


def _gate(latex: str, name: str) -> Term:
    return Term(key="gate", latex=latex, name=name, help=tr("How the ratio enters this surrogate."))


def _penalty(o: Objective) -> tuple[Term, ...]:
    terms: tuple[Term, ...] = ()
    if o.beta != 0 and o.kl_in == "loss":
        kl = r"r\,\mathrm{KL}" if o.kl_importance else r"\mathrm{KL}"
        terms += (
            _join(r"\;+\;"),
            Term(key="beta", latex=rf"{o.beta:.6g}", name=tr("KL weight β"), help=tr("What the KL penalty counts.")),
            Term(
                key="kl",
                latex=kl,
                name=tr("KL estimate {kind}").format(kind=o.kl),
                help=tr("How far the policy is from the reference."),
            ),
        )
    if o.entropy_bonus != 0:
        terms += (
            _join(r"\;-\;"),
            Term(
                key="entropy",
                latex=rf"{o.entropy_bonus:.6g}\,H",
                name=tr("entropy bonus"),
                help=tr("Keeps the policy broad."),
            ),
        )
    return terms
