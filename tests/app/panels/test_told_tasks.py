"""What is said of a task is true of its updates, before the first one and during a guided run of a gameable task."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.controllers.first_steps import MODEL_CHEATS, Text, measured, rules
from app.panels.evolution.evolution_words import LONGEST, acts_without_answers, quoted, what_to_watch
from app.workspace.run_handle import RunHandle
from grpo_core import learners
from grpo_core.claims.answered import Answered, State
from grpo_core.config import language_settings
from grpo_core.learners import learner
from grpo_core.metrics import METRICS, metrics
from grpo_core.record import Origin, Step
from grpo_core.runs.reader import RunReader
from grpo_core.shipped import resource
from tests.core.lm_steps import lm_settings

QUIET: dict[str, dict[str, Any]] = {
    "as it is": {},
    "k3": {"objective.kl": "k3", "objective.beta": 0.5},
    "exact": {"objective.kl": "exact", "objective.beta": 0.5},
    "k1 in the reward": {"objective.kl": "k1", "objective.kl_in": "reward", "objective.beta": 0.5},
    "no baseline": {"objective.baseline": "none", "objective.std": "none"},
    "a rate of 0": {"objective.entropy_bonus": 0.1, "optimizer.learning_rate": 0.0},
}
MOVED: dict[str, dict[str, Any]] = {
    "the entropy bonus": {"objective.entropy_bonus": 0.1},
    "the weight decay": {"optimizer.weight_decay": 0.1},
    "the noise of k1": {"objective.kl": "k1", "objective.beta": 0.5},
    "the reward of the working": {"task.working_weight": 1.0, "learner.temperature": 1.6},
}


def hopeless(changes: dict[str, Any]) -> tuple[str, bool]:
    """Return what is said about a run that never answers right, and whether three updates move its policy."""
    base = {"task.difficulty": "hopeless", "task.prompts": 2, "learner.group_size": 4, "task.held_out": 2}
    settings = language_settings().replace({**base, "task.accuracy_every": 1000, **changes})
    moved = False
    for step in islice(learner(settings), 3):
        assert step.reward_parts is not None and not step.reward_parts[:, 0].any(), "no answer is right"
        assert step.dist_logp is not None
        moved |= not np.array_equal(step.dist_logp[0], step.dist_logp[-1])
    return " ".join(what_to_watch(settings)), moved


@pytest.mark.parametrize("name", QUIET)
def test_a_hopeless_task_is_said_to_change_nothing_where_nothing_changes(name: str) -> None:
    pytest.importorskip("torch")
    said, moved = hopeless(QUIET[name])
    assert not moved and "while no answer is right, nothing changes" in said and "nothing is pushed" in said


@pytest.mark.parametrize("name", MOVED)
def test_what_moves_a_hopeless_run_all_the_same_is_named(name: str) -> None:
    pytest.importorskip("torch")
    said, moved = hopeless(MOVED[name])
    assert moved and name in said and "nothing changes" not in said


def test_several_causes_are_listed() -> None:
    settings = language_settings().replace({"objective.entropy_bonus": 0.1, "optimizer.weight_decay": 0.1})
    assert len(acts_without_answers(settings)) == 2


@pytest.mark.parametrize(
    "prompt",
    ["What is 6 plus 6? Reply with the number only.", "小明有七个苹果，又买来八个，他一共有多少个苹果？请只回答数字。"],
)
def test_a_long_prompt_is_quoted_from_its_beginning_in_every_script(prompt: str) -> None:
    said = quoted(f" {prompt}\n")
    assert said.strip("“”") == f"{prompt[: LONGEST - 1]}…" and len(said) == LONGEST + 2


PREDICTIONS = re.compile(r"more of them|stays high|fall|instead of solving|come back|nearly all")
"""Words that foretell what a run may not do."""


def texts(step: Step, origin: Origin) -> list[tuple[str, str]]:
    """Return prompt and completion of each row as text."""
    assert step.prompt_tokens is not None
    asked = [step.prompt_tokens[group] for group in step.group]
    said = [tokens[mask] for tokens, mask in zip(step.tokens, step.mask, strict=True)]
    prompts, answers = (["".join(origin.vocabulary[t] for t in own if t > 0) for own in each] for each in (asked, said))
    return list(zip(prompts, answers, strict=True))


def own_numbers(step: Step, origin: Origin) -> dict[str, float]:
    """Return mean reward and mean number of signs, counted in the texts."""
    task, pairs = step.settings.language, texts(step, origin)
    signs = [said.count("=") for _, said in pairs]
    last = [re.findall(r"-?\d+", said.rpartition("=")[2])[-1:] for _, said in pairs]
    right = [own == [str(eval(asked.rstrip("=")))] for (asked, _), own in zip(pairs, last, strict=True)]
    paid = task.answer_weight * np.array(right) + task.bonus * np.array(signs)
    return {"reward": float(paid.mean()), "signs": float(np.mean(signs))}


def continued(changes: dict[str, object], count: int) -> tuple[RunHandle, dict[int, Step]]:
    """Return the shipped run with so many further updates under other settings, and these updates."""
    path = resource(MODEL_CHEATS.start)
    with RunReader.open(path) as reader:
        last, settings = reader.step(100), reader.settings_at(100)
    new = learners.learner(settings.replace(changes), resume=last)
    return grown(RunHandle.open(path), list(islice(new, count)))


def begun(changes: dict[str, object], count: int) -> tuple[RunHandle, dict[int, Step]]:
    """Return a small new run with so many updates, and these updates."""
    few = {"task.prompts": 2, "learner.group_size": 2, "task.held_out": 8, "task.accuracy_every": 2}
    settings = lm_settings(**{"task.problem": "gameable", **few, **changes})
    run = RunHandle(title="small", origin=learners.origin(settings), path=Path())
    return grown(run, list(islice(learners.learner(settings), count)))


def grown(run: RunHandle, steps: list[Step]) -> tuple[RunHandle, dict[int, Step]]:
    """Append updates to a run."""
    found = [metrics(step) for step in steps]
    run.extend({name: np.array([m.get(name, np.nan) for m in found]) for name in METRICS}, steps[-1].step)
    kept = {step.step: step for step in steps}
    run.elsewhere = kept.get
    return run, kept


RUNS: dict[str, tuple[Callable[[], tuple[RunHandle, dict[int, Step]]], int]] = {
    "as shipped": (lambda: continued({}, 25), 100),
    "no bonus": (lambda: continued({"task.bonus": 0.0}, 12), 100),
    "seed 1": (lambda: begun({"seed": 1}, 5), 0),
    "seed 2, signs cost": (lambda: begun({"seed": 2, "task.bonus": -0.2}, 4), 0),
}
"""How to make a run, and the number of updates with which the experience begins."""


def written(text: Text, run: RunHandle, start: int) -> str:
    """Return a text of the story."""
    assert not isinstance(text, str)
    return text(run, start)


@pytest.mark.parametrize("name", RUNS)
def test_every_sentence_of_the_story_is_true_of_the_updates_so_far(name: str) -> None:
    make, start = RUNS[name]
    run, steps = make()
    assert not PREDICTIONS.search(rules(run, start) + what_to_watch(run.origin.settings)[1])
    for head in range(start + 1, run.head + 1):
        so_far = RunHandle(title="", origin=run.origin, path=run.path)
        so_far.extend({name: series.values[:head] for name, series in run.series.items()}, head)
        so_far.elsewhere = steps.get
        ends = [steps[n] for n in range(start + 1, head + 1) if "accuracy_greedy" in steps[n].measurements]
        expected = []
        for how in ("greedy", "sampled"):
            expected += [f"{own.measurements[f'accuracy_{how}']:.0%}" for own in (ends[0], ends[-1])]
        for what in ("reward", "signs"):
            expected += [f"{own_numbers(own, run.origin)[what]:.2f}" for own in (ends[0], ends[-1])]
        said = measured(so_far, start)
        numbers = re.findall(r"-?\d+(?:\.\d\d|%)", said)
        assert numbers == (expected if ends[0] is not ends[-1] else expected[::2]), (said, expected)
        assert ("→" in said) == (ends[0] is not ends[-1])
        for text in (written(MODEL_CHEATS.acts[1].text, so_far, start), written(MODEL_CHEATS.then, so_far, start)):
            assert text.startswith(said) and not PREDICTIONS.search(text)
        headline, _ = what_to_watch(steps[head].settings, steps[head])
        own = own_numbers(steps[head], run.origin)
        paid = f"pays {steps[head].settings.language.bonus:g}; {own['signs']:.2f} per answer now"
        assert paid in headline


def test_another_state_is_refused() -> None:
    _, steps = begun({"seed": 3}, 3)
    ends = (steps[1], steps[3])
    claim = Answered(then=State.of(steps[1]), now=State.of(steps[3]))
    assert claim.check(ends) and not claim.check(ends[::-1])
    for field in dataclasses.fields(State):
        changed = dataclasses.replace(claim.now, **{field.name: getattr(claim.now, field.name) + 1})
        assert not dataclasses.replace(claim, now=changed).check(ends), field.name


def test_before_anything_is_measured_no_number_is_said() -> None:
    run = RunHandle(title="", origin=learners.origin(lm_settings(**{"task.problem": "gameable"})), path=Path())
    assert measured(run, 0) == "" and written(MODEL_CHEATS.acts[1].text, run, 0).startswith("Only sampled")
