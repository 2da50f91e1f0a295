"""The objective of an update as terms, without the parts that are switched off."""

from __future__ import annotations

from grpo_core.config import Objective
from grpo_core.formula_term import Term, joint
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr


def objective_terms(objective: Objective) -> tuple[Term, ...]:
    """Return L = Σ W [ − surrogate + β KL − c H ] as a sum over tokens, with the numbers of ``objective`` filled in.

    The term of the surrogate comes from its row in the table of surrogates.
    """
    start = (
        Term(key="loss", latex=r"L", name=tr("loss L"), help=tr("The loss that the update descends; not a score.")),
        joint(r"=\;\sum"),
        Term(key="weight", latex="W", name=tr("weight W"), help=tr("How much the token counts in the mean.")),
        joint(r"\bigl[\,-", glue=True),
    )
    end = (joint(r"\bigr]", glue=True),)
    return start + _gate(objective) + SURROGATES[objective.surrogate].terms(objective) + _penalty(objective) + end


def _gate(o: Objective) -> tuple[Term, ...]:
    if o.importance_cap is None:
        return ()
    told = tr("How much a sample of another policy counts: π_old over the sampler's, within bounds.")
    return (Term(key="gate", latex="m", name=tr("importance weight m"), help=told),)


def _penalty(o: Objective) -> tuple[Term, ...]:
    terms: tuple[Term, ...] = ()
    if o.beta != 0 and not o.kl_in_reward:
        kl = r"r\,\mathrm{KL}" if o.kl_importance else r"\mathrm{KL}"
        terms += (
            joint(r"\;+\;"),
            Term(
                key="beta", latex=rf"{o.beta:.6g}", name=tr("KL weight β"), help=tr("How much the KL penalty counts.")
            ),
            Term(
                key="kl",
                latex=kl,
                name=tr("KL estimate {kind}").format(kind=o.kl),
                help=tr("How far the policy is from the reference."),
            ),
        )
    if o.entropy_bonus != 0:
        terms += (
            joint(r"\;-\;"),
            Term(
                key="entropy",
                latex=rf"{o.entropy_bonus:.6g}\,H",
                name=tr("entropy bonus"),
                help=tr("Keeps the policy broad."),
            ),
        )
    return terms
