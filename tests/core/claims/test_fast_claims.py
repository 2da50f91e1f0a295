"""Claims on runs computed by JAX: confirmed by the runs that NumPy has trained as well, and refused otherwise."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Beside, Ensemble, ensembles
from grpo_core.experiments.outcome import by_both, of_fast, of_reopened, reopened
from tests.core.claims.drawn import others

KINDS = ("Rounded", "Reopened")


def lanes(apart: float) -> list[Ensemble]:
    """Return two settings as if computed by JAX; for two of the first one's four seeds, NumPy's results are
    ``apart`` from JAX's.
    """
    first, second = ensembles([Settings(), Settings().replace({"objective.beta": 0.5})], (3, 5, 7, 9), 6)
    few = {name: values[:, [0, 2]] for name, values in first.measures.items()}
    few["kl"] = few["kl"] + np.array([0.0, apart])
    return [
        dataclasses.replace(first, beside=Beside(seeds=(3, 7), measures=few)),
        dataclasses.replace(second, beside=Beside(seeds=(), measures={})),
    ]


@pytest.mark.parametrize("apart", [0.0, 3e-15, 0.25, np.nan])
def test_what_is_said_is_borne_out_and_anything_else_refused(apart: float) -> None:
    runs = lanes(apart)
    data = by_both(runs)
    (claim,) = of_fast(data)
    assert claim.check(data) and "of 8 runs, 2 were" in claim.words()
    assert ("turn the fast path off" in claim.words()) == np.isnan(apart)
    again = reopened(runs[0], 2)
    assert again is not None and again.apart == 0.0
    (opened,) = of_reopened(again)
    assert opened.check(again) and "from NumPy" in opened.words()
    for one, of in ((claim, data), (opened, again)):
        changed = [*others(one, np.random.default_rng(1))]
        assert changed and not any(other.check(of) for other in changed)


def test_where_numpy_has_computed_all_nothing_is_said() -> None:
    runs = [*ensembles([Settings()], (1, 2), 2)]
    assert of_fast(by_both(runs)) == () and reopened(runs[0], 0) is None
