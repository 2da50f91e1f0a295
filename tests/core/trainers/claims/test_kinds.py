"""Every computed statement has a claim, and the tests on random data draw every kind of claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grpo_core import claims
from grpo_core.claims.captions import CAPTIONS
from grpo_core.claims.claim import Claim, Tabled
from grpo_core.claims.leading import LEADING, SIGNALS
from grpo_core.claims.what_if import WHAT_IFS
from grpo_core.trainers import claims as claims_of_trainers
from grpo_core.trainers.claims.advice import ADVICE
from grpo_core.trainers.claims.effects import EFFECTS
from grpo_core.trainers.claims.put_right import PUT_RIGHT, REWEIGHTED
from tests.core.claims import drawn, test_update_claims
from tests.core.claims.drawn import kinds_in
from tests.core.trainers.claims import test_cause_claims, test_finding_claims, test_measured_claims

ROOT = Path(__file__).parents[4] / "grpo_core"
PACKAGES = (claims, claims_of_trainers)
ROOMS = sorted(
    f"{package.__name__}.{path.stem}"
    for package in PACKAGES
    for path in Path(package.__path__[0]).glob("*.py")
    if path.stem not in ("__init__", "claim")
)
CHOOSERS = [
    *sorted((ROOT / "reasons").glob("*.py")),
    ROOT / "what_if" / "sentences.py",
    ROOT / "experiments" / "outcome.py",
    *(
        ROOT / "trainers" / "health" / f"{name}.py"
        for name in ("lengths", "masks", "numerics", "policy_checks", "rewards")
    ),
]
"""Files that choose what is said about cards, what-ifs, races, sweeps, repeats and recorded runs."""


def below(kind: type[Any]) -> Iterator[type[Any]]:
    """Yield all subclasses."""
    subclasses: list[type[Any]] = kind.__subclasses__()
    for one in subclasses:
        yield one
        yield from below(one)


def test_every_kind_of_claim_is_drawn() -> None:
    known = set(kinds_in(*ROOMS))
    tables = {name for name in known if any(one.__name__ == name for one in Tabled.__subclasses__())}
    rows = {row for table in Tabled.__subclasses__() for row in table.KINDS}
    of_experiments = {kind.__name__ for kind in drawn.KINDS}
    elsewhere = {
        *CAPTIONS,
        "Moved",
        "Undrawn",
        "up",
        "down",
        "neither",
        "paid",
        "odds",
        "rare",
        "all_equal",
        "Answered",
    }  # tests/app/panels
    tested = {*test_finding_claims.KINDS, *test_update_claims.ON_CARDS, *WHAT_IFS}
    tested |= {
        *test_cause_claims.KINDS,
        *EFFECTS,
        *LEADING,
        *SIGNALS,
        *REWEIGHTED,
        *PUT_RIGHT,
        *test_measured_claims.KINDS,
    }
    tested |= {*kinds_in("grpo_core.claims.advice"), *ADVICE}  # test_advice.py, test_advice_claims.py
    assert (known - tables) | rows == of_experiments | elsewhere | tested - tables


def test_every_claim_is_in_the_room_of_claims() -> None:
    assert {kind.__module__.rpartition(".")[0] for kind in below(Claim)} == {package.__name__ for package in PACKAGES}


@pytest.mark.parametrize("path", CHOOSERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_sentence_with_a_number_is_written_where_it_is_chosen_what_is_said(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tr":
            text = ast.literal_eval(node.args[0])
            assert not re.search(r"\{\w+.*\}.*\.$", text, re.DOTALL), f"{path}:{node.lineno} writes “{text}”"
