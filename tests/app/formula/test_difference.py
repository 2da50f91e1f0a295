"""Changes to the formula with another objective: removed parts, new parts, and redefined symbols."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from pytestqt.qtbot import QtBot

from app.formula import render
from app.formula.objective_terms import (
    NEW,
    OLD,
    changed_terms,
    definitions,
    is_another_formula,
    objective_terms,
    shorter_terms,
)
from app.formula.term_strip import TermStrip
from grpo_core.baselines import BASELINES
from grpo_core.config import PRESETS, Objective
from grpo_core.deviations import DEVIATIONS
from grpo_core.kl import ESTIMATORS
from grpo_core.levels import LEVELS
from grpo_core.reductions import REDUCTIONS

FIRST = PRESETS["GRPO (DeepSeekMath)"].objective


def latex_of(terms: tuple[object, ...], *kinds: str) -> list[str]:
    return [term.latex for term in terms if term.change in kinds]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", PRESETS)
def test_without_what_is_struck_out_stands_the_new_formula_and_without_what_is_new_the_old_one(name: str) -> None:
    after = PRESETS[name].objective
    terms = changed_terms(FIRST, after)
    new, old = ([term.latex for term in objective_terms(objective)] for objective in (after, FIRST))
    assert latex_of(terms, "", NEW)[: len(new)] == new
    formula = terms[: next((n for n, term in enumerate(terms) if r"\quad" in term.latex), len(terms))]
    assert latex_of(formula, "", OLD) == old
    assert not any(term.key for term in terms), "there is no update yet whose numbers could be explained"


@pytest.mark.parametrize("name", PRESETS)
def test_every_letter_that_is_defined_anew_is_shown_with_both_definitions(name: str) -> None:
    after = PRESETS[name].objective
    then, now = definitions(FIRST), definitions(after)
    changed = [letter for letter in now if letter in then and now[letter] != then[letter]]
    terms = changed_terms(FIRST, after)
    for letter in changed:
        at = next(n for n, term in enumerate(terms) if term.latex.endswith(f"{letter} ="))
        assert [(term.latex, term.change) for term in terms[at + 1 : at + 3]] == [
            (then[letter].latex, OLD),
            (now[letter].latex, NEW),
        ]
    assert sum(r"\quad" in term.latex for term in terms) == len(changed)


@pytest.mark.parametrize("field", ["baseline", "std", "level", "reduction", "kl"])
def test_each_way_to_set_a_switch_has_a_formula_of_its_own(field: str) -> None:
    table = {"baseline": BASELINES, "std": DEVIATIONS, "level": LEVELS, "reduction": REDUCTIONS, "kl": ESTIMATORS}
    letter = {"level": "r", "reduction": "W", "kl": r"\mathrm{KL}"}.get(field, "A")
    objectives = [Objective(**{field: name, "max_tokens": 9}) for name in table[field]]  # type: ignore[attr-defined]
    found = [definitions(objective)[letter].latex for objective in objectives]
    assert len(set(found)) == len(found)
    assert all(render.picture(latex, 18.0, "#000000", 1.0) is not None for latex in found)


def test_a_change_of_numbers_alone_is_no_other_formula() -> None:
    assert not is_another_formula(Objective(beta=0.04, clip_high=0.2), Objective(beta=0.5, clip_high=0.28))
    assert is_another_formula(Objective(beta=0.04), Objective(beta=0.0))
    assert is_another_formula(Objective(), Objective(dual_clip=3.0))
    assert is_another_formula(Objective(), Objective(std="none"))


def test_a_change_without_room_leaves_out_what_has_gone_first(qtbot: QtBot) -> None:
    strip = TermStrip()
    qtbot.addWidget(strip)
    after = PRESETS["CISPO"].objective
    whole, *shorter = changed_terms(FIRST, after), *shorter_terms(FIRST, after)
    widths = []
    for terms in (whole, *shorter):
        strip.set_terms(terms)
        assert strip.fit_in(QSize(5000, 60)) and not strip.fit_in(QSize(40, 60))
        assert strip.fit_in(QSize(5000, 60))
        widths.append(strip.sizeHint().width())
    assert widths == sorted(widths, reverse=True)
    assert not any(term.change == OLD for term in shorter[1])


def test_the_change_is_said_in_words(qtbot: QtBot) -> None:
    strip = TermStrip(changed_terms(FIRST, PRESETS["Dr. GRPO"].objective))
    qtbot.addWidget(strip)
    name = strip.accessibleName()
    assert "KL weight β" in name.split("Struck out:")[1].split("New:")[0]
    assert DEVIATIONS["none"].phrase in name.split("New:")[1]
