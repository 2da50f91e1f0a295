"""Races and sweeps by JAX: the same numbers as by NumPy except for rounding, with a note that says so."""

from __future__ import annotations

import dataclasses
import re
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.commands.cli import main
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.experiments import fast
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.fast import fast_ensembles
from grpo_core.experiments.outcome import by_both, of_fast, of_reopened, reopened
from grpo_core.experiments.race import race
from grpo_core.jobs.packing import packed, unpacked
from grpo_core.levels import LEVELS
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES

ROUNDING = 1e-10
CASES = [*product(SURROGATES, LEVELS, REDUCTIONS)]


def both(points: list[Settings], seeds: int = 3, updates: int = 4) -> list[tuple[Ensemble, Ensemble]]:
    there = fast_ensembles(points, range(seeds), updates)
    return [*zip(there, ensembles(points, range(seeds), updates), strict=True)]


def assert_same(pairs: list[tuple[Ensemble, Ensemble]]) -> None:
    for one, other in pairs:
        assert one.settings == other.settings and one.seeds == other.seeds
        np.testing.assert_allclose(one.policy, other.policy, rtol=0, atol=ROUNDING)
        for name, values in one.measures.items():
            np.testing.assert_allclose(values, other.measures[name], rtol=0, atol=ROUNDING, err_msg=name)


@pytest.mark.quick_cases("gmpo-sequence-constant", "clip-token-sequence")
@pytest.mark.parametrize(("surrogate", "level", "reduction"), CASES, ids=["-".join(case) for case in CASES])
def test_every_surrogate_level_and_reduction(surrogate: str, level: str, reduction: str) -> None:
    settings = Settings().replace(
        {
            "objective.surrogate": surrogate,
            "objective.level": level,
            "objective.reduction": reduction,
            "objective.max_tokens": 4,
            "learner.mu": 2,
            "learner.group_size": 4,
        }
    )
    assert_same(both([settings.replace({"objective.beta": beta}) for beta in (0.0, 0.3)]))


OTHERS: dict[str, dict[str, Any]] = {
    "adam": {"optimizer.kind": "adam", "optimizer.max_grad_norm": 0.05, "optimizer.weight_decay": 0.01},
    "distributions": {"objective.kl": "exact", "objective.kl_importance": True, "objective.entropy_bonus": 0.02},
    "reward": {"objective.kl_in": "reward", "task.levels": (0.0, 0.5), "objective.std": "batch"},
    "critic": {"learner.critic": True, "objective.baseline": "given", "task.levels": (0.0, 1.0)},
    "length": {"optimizer.step_length": 0.3, "objective.baseline": "leave_one_out", "learner.group_size": 20},
}


@pytest.mark.quick_cases("distributions", "reward")
@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_other_settings(changes: dict[str, Any]) -> None:
    settings = Settings().replace({"learner.mu": 2, **changes})
    points = [
        settings.replace({"learner.temperature": t, "objective.clip_high": c}) for t, c in ((1.0, 0.2), (2.0, 0.1))
    ]
    assert_same(both(points, updates=70))


@pytest.mark.long
def test_every_algorithm_of_a_race_that_draws_nothing_again() -> None:
    names = [name for name, preset in PRESETS.items() if not preset.resample_dead]
    raced = (
        dict(race(Settings(), names, seeds=range(4), updates=6, train=train)) for train in (fast_ensembles, ensembles)
    )
    there, here = raced
    assert_same([(there[name], here[name]) for name in names])


def test_points_that_share_a_program_come_in_order_and_some_runs_are_checked() -> None:
    points = [Settings().replace({"objective.beta": beta}) for beta in np.linspace(0, 1, 30).tolist()]
    polled: list[None] = []
    found = [*fast_ensembles(points, range(64), 3, poll=lambda: polled.append(None))]
    assert [runs.settings for runs in found] == points and len(polled) >= 3
    data = by_both(found)
    assert data.runs == 30 * 64 and data.checked == fast.POINTS * fast.SEEDS and data.apart < ROUNDING
    (claim,) = of_fast(data)
    assert claim.check(data) and "1,920 runs, 8 were" in claim.words()
    assert not dataclasses.replace(claim, apart=data.apart + 1).check(data)  # type: ignore[type-var]
    assert of_fast(by_both(ensembles(points[:1], range(2), 1))) == ()
    again = reopened(found[3], 5)
    assert again is not None and again.apart < ROUNDING and of_reopened(again)[0].check(again)
    crossed = unpacked(*packed(found[0]))
    assert crossed.beside is not None and crossed.beside.seeds == found[0].beside.seeds  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "path"), [({"learner.resample_dead": True}, "resample_dead"), ({"learner.staleness": 2}, "staleness")]
)
def test_what_only_numpy_does_is_refused_before_anything_is_computed(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(SettingsError, match=rf"{path}.*fast path"):
        fast_ensembles([Settings(), Settings().replace(changes)], range(2), 2)


def test_without_jax_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    fast.jax_module.cache_clear()
    with pytest.raises(GrpoError, match=r"pip install grpo-lab\[fast\]"):
        fast_ensembles([Settings()], range(2), 2)


def test_others_keep_their_precision() -> None:
    from jax import numpy as jnp

    [*fast_ensembles([Settings()], range(2), 1)]
    assert jnp.ones(1).dtype == np.float32


def test_the_command_line_says_that_it_was_jax(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", "--seeds", "3", "--updates", "2", "--over", "objective.beta=0,1"]
    assert main([*sweep, "--fast", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert re.search(r"Computed with JAX; of 6 runs, 4 .* differ by at most \d\.\de-\d+\.", told)
    assert len(re.findall(r"The run itself is from NumPy; its measures differ from those of JAX by at most", told)) == 2
    assert main(sweep) == 0
    assert "JAX" not in capsys.readouterr().out
    for more in (["--cluster", "local"], ["--language"], ["--trl", "folder"], ["--set", "learner.staleness=1"]):
        assert main([*sweep, "--fast", *more]) != 0
        assert "fast" in capsys.readouterr().err
