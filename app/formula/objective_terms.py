"""The objective of an update as terms, without the parts that are switched off, and the difference between two.

In a difference, removed pieces are struck out and new ones marked. No piece has a value or can be explained, because
the new formula belongs to a future update.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache

from app.formula.plain import plain_text
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective
from grpo_core.deviations import DEVIATIONS
from grpo_core.expression import Term, joint
from grpo_core.levels import LEVELS
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES, Ratio
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


OLD, NEW = "old", "new"
"""Values of ``Term.change``."""


def definitions(objective: Objective) -> dict[str, Term]:
    """Return the definitions of the letters of the formula that differ among objectives, by letter."""
    terms = {"A": _advantage(objective)}
    reduction = REDUCTIONS[objective.reduction]
    terms["W"] = Term(latex=reduction.inline, name=reduction.phrase, glue=True)
    if SURROGATES[objective.surrogate].ratio is not Ratio.NONE:
        latex = LEVELS[objective.level].inline
        terms["r"] = Term(latex=latex, name=tr("ratio {formula}").format(formula=plain_text(latex)), glue=True)
    if objective.beta != 0 and not objective.kl_in_reward:
        kind = objective.kl
        latex = rf"k_{{{kind[1:]}}}" if re.fullmatch(r"k\d", kind) else r"\mathrm{exact}"
        terms[r"\mathrm{KL}"] = Term(latex=latex, name=tr("KL estimate {kind}").format(kind=kind), glue=True)
    return terms


def _advantage(o: Objective) -> Term:
    baseline, deviation = BASELINES[o.baseline], DEVIATIONS[o.std]
    if baseline.from_critic:
        return Term(latex=r"\mathrm{GAE}", name=baseline.phrase, glue=True)
    reward = r"R - \beta\,k_{1}" if o.beta != 0 and o.kl_in_reward else "R"
    centred = f"{reward} - {baseline.inline}" if baseline.inline else reward
    divided = f"({centred})/{deviation.inline}" if centred != "R" else f"R/{deviation.inline}"
    name = tr("reward minus {baseline}, {division}").format(baseline=baseline.phrase, division=deviation.phrase)
    return Term(latex=divided if deviation.inline else centred, name=name, glue=True)


def is_another_formula(before: Objective, after: Objective) -> bool:
    """Return whether the two formulas differ in more than numbers."""
    return _shape(before) != _shape(after)


@lru_cache(maxsize=2)
def _shape(objective: Objective) -> tuple[object, ...]:
    pieces = tuple(re.sub(r"\d+(\.\d+)?", "#", term.latex) for term in objective_terms(objective))
    return (pieces, definitions(objective))


def changed_terms(before: Objective, after: Objective) -> tuple[Term, ...]:
    """Return the formula of ``after`` with the replaced pieces of ``before`` struck out, followed by the redefined
    letters.
    """
    return (*_merged(objective_terms(before), objective_terms(after)), *_redefined(before, after))


def shorter_terms(before: Objective, after: Objective) -> tuple[tuple[Term, ...], ...]:
    """Return two shorter forms of :func:`changed_terms` for narrow widgets: one without struck-out pieces, and one
    without redefined letters as well.
    """
    formula = tuple(term for term in _merged(objective_terms(before), objective_terms(after)) if term.change != OLD)
    return (*formula, *_redefined(before, after)), formula


def _merged(old: Sequence[Term], new: Sequence[Term]) -> list[Term]:
    matcher = SequenceMatcher(None, [term.latex for term in old], [term.latex for term in new], autojunk=False)
    terms: list[Term] = []
    for _, first, last, start, end in matcher.get_opcodes():
        same = [term.latex for term in old[first:last]] == [term.latex for term in new[start:end]]
        if not same:
            terms += [_struck(term) for term in old[first:last]]
        terms += [replace(term, key="") if same else _marked(term) for term in new[start:end]]
    return terms


def _redefined(before: Objective, after: Objective) -> list[Term]:
    """Return each letter of the new formula whose definition has changed, with both definitions."""
    then, now = definitions(before), definitions(after)
    terms: list[Term] = []
    for letter, definition in now.items():
        if letter in then and then[letter] != definition:
            terms += [joint(rf",\quad {letter} ="), _struck(then[letter]), _marked(definition)]
    return terms


def _struck(term: Term) -> Term:
    return replace(term, key="", meaning="muted", change=OLD)


def _marked(term: Term) -> Term:
    return replace(term, key="", meaning="accent", change=NEW)
