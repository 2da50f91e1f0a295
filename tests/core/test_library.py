"""The core as a library: its public names, the example on its page, and the arguments that its functions refuse."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grpo_core
from grpo_core import Objective, ShapeError, evaluate, gradient
from grpo_core.advantages import advantages, equal_rewards, gae, step_scores
from grpo_core.testing import cases

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
LOSS = Objective(beta=0.3)
RUNS, ROWS, TOKENS = 3, 4, 5


def arrays(*leading: int) -> dict[str, Any]:
    numbers = np.random.default_rng(5)
    shape = (*leading, ROWS, TOKENS)
    return {
        "logp": -numbers.random(shape),
        "old_logp": -numbers.random(shape),
        "ref_logp": -numbers.random(shape),
        "advantage": numbers.normal(size=shape[:-1]),
        "mask": numbers.random(shape) < 0.8,
    }


def test_the_example_of_the_page_prints_what_the_page_says() -> None:
    program = re.search(r"```python\n(.*?)```", PAGE, re.S)
    printed = re.search(r"```text\n(.*?)```", PAGE, re.S)
    assert program and printed
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program[1], "library.md", "exec"), {})
    assert out.getvalue() == printed[1]


def test_every_public_name_is_there_and_on_the_page() -> None:
    for name in grpo_core.__all__:
        assert getattr(grpo_core, name) is not None
        assert f"`{name}" in PAGE or name == "__version__"
    with pytest.raises(AttributeError):
        _ = grpo_core.unheard_of


def test_the_version_alone_needs_no_numpy() -> None:
    code = "import sys, grpo_core; print(grpo_core.__version__, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [grpo_core.__version__, "False"]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("advantage", (1,)),
        ("advantage", ()),
        ("advantage", (ROWS, 1)),
        ("advantage", (TOKENS,)),
        ("advantage", (1, TOKENS)),
        ("old_logp", (ROWS, 1)),
        ("old_logp", (TOKENS,)),
        ("old_logp", (RUNS, ROWS, TOKENS)),
        ("mask", (ROWS, 1)),
        ("mask", (1, TOKENS)),
        ("mask", (ROWS,)),
        ("ref_logp", (ROWS, 1)),
        ("gate", (ROWS, 1)),
        ("gate", (ROWS,)),
        ("denominator", (ROWS,)),
        ("denominator", (ROWS, 1)),
        ("denominator", (RUNS, 1, 1)),
        ("logp", (TOKENS,)),
    ],
)
@pytest.mark.parametrize("function", [evaluate, gradient])
def test_the_loss_names_the_argument_that_does_not_fit(function: Any, name: str, shape: tuple[int, ...]) -> None:
    given = arrays() | {name: np.ones(shape, dtype=bool if name == "mask" else float)}
    with pytest.raises(ShapeError, match=re.escape(f"{name} cannot have the shape {shape}")) as raised:
        function(LOSS, **given)
    assert raised.value.argument == name
    assert raised.value.shape == shape


@pytest.mark.parametrize(
    ("name", "shape"),
    [("exact_kl", (ROWS, 1)), ("entropy", (ROWS,)), ("entropy_weight", (TOKENS,)), ("entropy_coefficient", (ROWS,))],
)
def test_so_it_does_of_what_comes_from_whole_distributions(name: str, shape: tuple[int, ...]) -> None:
    whole = {"entropy": np.ones((ROWS, TOKENS)), "entropy_coefficient": 0.1, name: np.ones(shape)}
    with pytest.raises(ShapeError) as raised:
        evaluate(LOSS, **arrays(), **whole)
    assert raised.value.argument == name


@pytest.mark.parametrize(
    "shared",
    [
        {"old_logp": (ROWS, TOKENS)},
        {"ref_logp": (1, ROWS, TOKENS)},
        {"mask": (ROWS, TOKENS)},
        {"advantage": (ROWS,)},
        {"advantage": (1, ROWS)},
        {"advantage": (1, ROWS, TOKENS)},
        {"gate": (ROWS, TOKENS)},
        {"denominator": (1, 1)},
        {"denominator": (RUNS, 1, 1)},
        {"denominator": ()},
    ],
)
def test_what_runs_share_counts_for_each_of_them(shared: dict[str, tuple[int, ...]]) -> None:
    numbers = np.random.default_rng(6)
    given = arrays(RUNS)
    for name, shape in shared.items():
        given[name] = numbers.random(shape) < 0.8 if name == "mask" else numbers.random(shape) - 1.5
    together, slopes = evaluate(LOSS, **given), gradient(LOSS, **given)
    for run in range(RUNS):
        own = {name: _of_run(name, x, run) for name, x in given.items()}
        np.testing.assert_allclose(together.loss[run], evaluate(LOSS, **own).loss, rtol=1e-12)
        np.testing.assert_allclose(slopes[run], gradient(LOSS, **own), rtol=1e-12)


def _of_run(name: str, x: np.ndarray, run: int) -> np.ndarray:
    """Return the part of ``x`` that belongs to one run. The leading axis of ``x`` can be missing, or 1."""
    alone = {"denominator": (1, 1), "advantage": x.shape[-2:] if x.ndim == 3 else x.shape[-1:]}.get(name, x.shape[-2:])
    return x if x.ndim == len(alone) or x.ndim == 0 else x[min(run, len(x) - 1)]


def test_a_tensor_of_another_shape_is_refused_too() -> None:
    torch = pytest.importorskip("torch")
    given = {name: torch.from_numpy(x) for name, x in cases.batch(3).items()}
    evaluate(LOSS, **given)
    with pytest.raises(ShapeError, match="advantage"):
        evaluate(LOSS, **given | {"advantage": given["advantage"][:1]})


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"rewards": np.ones(4)}, "rewards"),
        ({"baseline": np.ones(3)}, "baseline"),
        ({"baseline": np.ones((2, 2, 4))}, "baseline"),
        ({"kl": np.ones((2, 1))}, "kl"),
        ({"kl": np.ones(4)}, "kl"),
    ],
)
def test_advantages_name_what_does_not_fit(wrong: dict[str, np.ndarray], name: str) -> None:
    given: dict[str, Any] = {"rewards": np.arange(8.0).reshape(2, 4)} | wrong
    with pytest.raises(ShapeError) as raised:
        advantages(Objective(baseline="given", kl_in="reward", beta=0.1), given.pop("rewards"), **given)
    assert raised.value.argument == name


@pytest.mark.parametrize(
    "baseline", [np.float64(0.5), np.full((2, 1), 0.5), np.full((2, 4), 0.5), np.full((1, 4), 0.5)]
)
def test_a_given_baseline_is_broadcast(baseline: np.ndarray) -> None:
    rewards = np.arange(8.0).reshape(2, 4)
    plain = Objective(baseline="given", std="none")
    np.testing.assert_array_equal(advantages(plain, rewards, baseline=baseline), rewards - 0.5)


def test_rewards_of_steps_and_groups_need_their_axes() -> None:
    with pytest.raises(ShapeError, match="step_rewards"):
        step_scores(LOSS, np.ones((2, 4)))
    with pytest.raises(ShapeError, match="rewards"):
        equal_rewards(np.ones(4))


@pytest.mark.parametrize(
    ("name", "shape"), [("values", (5,)), ("rewards", (4, 1)), ("mask", (4, 1)), ("rewards", (3, 4, 5))]
)
def test_the_estimation_of_advantages_names_what_does_not_fit(name: str, shape: tuple[int, ...]) -> None:
    given = {"rewards": np.ones((4, 5)), "values": np.ones((4, 5)), "mask": np.ones((4, 5), dtype=bool)}
    with pytest.raises(ShapeError) as raised:
        gae(**given | {name: np.ones(shape, dtype=given[name].dtype)}, gamma=1.0, lam=0.9)
    assert raised.value.argument == name
