"""The script of an update prints the numbers of grpo_core, using only NumPy, for every member of the family."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import PRESETS, Objective, Settings, about
from grpo_core.export.script import step_script
from grpo_core.learners import learner, origin
from grpo_core.record import Origin, Step
from grpo_core.testing.cases import other_knobs
from grpo_core.testing.scripts import compare, executed, read
from tests.core.lm_steps import lm_origin, lm_settings, lm_step
from tests.core.steps import random_origin, random_step

RUN_ALL = "import runpy, sys\nfor path in sys.argv[1:]:\n    runpy.run_path(path)\n    print('====')"


def trained(settings: Settings, updates: int) -> Step:
    training = learner(settings)
    return [next(training) for _ in range(updates)][-1]


def test_every_preset_prints_the_numbers_that_trained(tmp_path: Path) -> None:
    tasks: tuple[dict[str, object], ...] = (
        {},
        {"task.landscape": "length", "task.levels": (0.3, 0.6), "learner.mu": 3},
    )
    cases = []
    for name, preset in PRESETS.items():
        for task in tasks:
            settings = preset.applied_to(Settings().replace(task))
            cases.append((name, trained(settings, 4), origin(settings), 1e-9))
        settings = preset.applied_to(lm_settings())
        step = lm_step(3, settings=settings, prompts=3, group_size=4, dead=(1,))
        if settings.learner.critic:
            step = dataclasses.replace(step, values=np.linspace(0, 1, step.mask.size).reshape(step.mask.shape))
        cases.append((name, step, lm_origin(), 1e-5))
    paths = []
    for number, (name, step, start, _) in enumerate(cases):
        paths.append(tmp_path / f"{number}.py")
        paths[-1].write_text(step_script(step, start, title=name), encoding="utf-8")
        assert "grpo_core" not in paths[-1].read_text(encoding="utf-8")
    command = [sys.executable, "-I", "-W", "error", "-c", RUN_ALL, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for (name, step, _, tolerance), output in zip(cases, done.stdout.split("====\n"), strict=False):
        try:
            compare(step, output, tolerance)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


CHOICES: dict[str, tuple[object, ...]] = {
    **{name: about(Objective, name).choices for name in ("baseline", "std", "level", "surrogate", "kl", "reduction")},
    "kl_importance": (False, True),
    "kl_in": ("loss", "loss", "reward"),
    "beta": (0.3, 0.0),
    "entropy_bonus": (0.0, 0.0, 0.2),
    "log_ratio_limit": (None, 0.5),
    "clip_low": (0.2, 0.05),
}


def any_objective(rng: np.random.Generator) -> Objective:
    """Return a random objective, including unpublished combinations of switches."""
    chosen = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
    if chosen["surrogate"] == "clip" and rng.uniform() < 0.5:
        chosen["dual_clip"] = 1.5
    if rng.uniform() < 0.5:
        chosen |= other_knobs(str(chosen["surrogate"]))
    return Objective(max_tokens=7, **chosen)  # type: ignore[arg-type]


def any_step(rng: np.random.Generator, number: int) -> Step:
    """Return a step in which each optional field is present or missing at random."""
    settings = Settings().replace({"objective": any_objective(rng), "learner.critic": True})
    tokens = int(rng.integers(1, 5))
    step = random_step(number, settings=settings, prompts=3, group_size=4, tokens=tokens, passes=2, contexts=3)
    B, T = step.mask.shape
    changes: dict[str, np.ndarray] = {"values": rng.normal(size=(B, T))}
    if rng.uniform() < 0.4:
        changes["rewards"] = np.where(rng.uniform(size=B) < 0.4, np.nan, step.rewards)
    if rng.uniform() < 0.3:
        changes["rewards"] = np.where(step.group == 1, 0.1 + 0.2, step.rewards)
    if rng.uniform() < 0.3:
        changes["group"] = np.array([0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2])
    if rng.uniform() < 0.3:
        changes["gate"] = rng.uniform(size=(B, T) if rng.uniform() < 0.5 else (2, B, T))
    elif rng.uniform() < 0.3:
        changes["sampling_logp"] = step.old_logp - rng.normal(0, 0.5, (B, T))
        step = dataclasses.replace(step, settings=settings.replace({"objective.importance_cap": 1.1}))
    if rng.uniform() < 0.2:
        changes["advantage"] = rng.normal(size=(B, T) if rng.uniform() < 0.5 else B)
    if rng.uniform() < 0.4:
        changes["part"] = rng.integers(-1, 3, size=(2, B))
        changes["part"][:, :3] = [0, 1, 2]
    if rng.uniform() < 0.3:
        changes["denominator"] = rng.uniform(1, 9, size=(2, 3))
    if rng.uniform() < 0.3:
        changes["mask"] = rng.uniform(size=(B, T)) < 0.7
    return dataclasses.replace(step, **changes)  # type: ignore[arg-type]


@pytest.mark.quick_cases("0", "1")
@pytest.mark.parametrize("seed", range(4))
def test_any_switches_and_any_record_print_the_same_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for number in range(1, 31):
        step = any_step(rng, number)
        try:
            compare(step, executed(step_script(step, random_origin())), 1e-9)
        except Exception as error:
            raise AssertionError(f"{number}: {step.settings.objective}: {error}") from error


def test_a_person_runs_it_and_reads_what_the_program_said(tmp_path: Path) -> None:
    step = trained(Settings(), 3)
    path = tmp_path / "schritt π.py"
    path.write_text(step_script(step, origin(Settings()), title="Mine"), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=200, check=True)
    compare(step, done.stdout, 1e-9)
    for line in (line for line in done.stdout.splitlines() if line.startswith("pass")):
        words = line.rstrip(")").split()
        assert words[3] == words[-1]
    text = path.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 120
    code = text.partition("# ---------- settings")[2]
    assert len(code.splitlines()) <= 60, "short enough to be read"


def test_one_pass_of_several() -> None:
    step = trained(Settings(), 3)
    output = executed(step_script(step, origin(Settings()), passes=(2,)))
    assert output.startswith("pass 3: loss ")
    ((loss, _),) = read(output)
    assert loss == pytest.approx(float(recompute.terms(step, 2).loss), abs=1e-9)


def test_a_title_cannot_become_code() -> None:
    words = ("\n'''\"\\", "\u2028", *map(str, range(8)))
    start: Origin = dataclasses.replace(random_origin(), vocabulary=words)
    text = step_script(random_step(), start, title="x\nraise SystemExit(1)\r\x0craise SystemExit(2)")
    assert not any(line.startswith("raise") for line in text.splitlines())
    assert executed(text).count("pass ") == 4
