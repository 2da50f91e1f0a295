"""Sentences that claim a direction, a size or a cause, checked against the engine with many settings."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.advantages import gae
from grpo_core.config import PRESETS, Objective, Settings, about
from grpo_core.config.presets import presets_of
from grpo_core.experiments.ensemble import ensembles
from grpo_core.explain import Numbers, Quantity, explain
from grpo_core.learners import learner
from grpo_core.objective import evaluate, gradient
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.shipped import resource
from grpo_core.teaching.lessons.experiments import by_hand
from grpo_core.teaching.lessons.experiments.by_hand import Divergence
from grpo_core.testing.updates import trained_with
from tests.core.steps import random_step

RATIOS = np.array([0.05, 0.3, 0.6, 0.9, 1.0, 1.1, 1.3, 1.7, 2.06, 2.5, 4.0, 9.0])


def pushes(objective: Objective, a: float) -> np.ndarray:
    """Return −∂loss/∂log π of completions with one token at :data:`RATIOS`, each alone in its batch, (12,)."""
    logp = np.log(RATIOS)[:, None, None]  # (12, 1, 1): twelve runs
    ones = np.ones((12, 1))
    return -np.asarray(gradient(objective, logp, 0 * logp, a * ones, ones[..., None] > 0))[:, 0, 0]


def glossary() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resource("glossary.toml").read_text("utf-8"))


# -- SAPO --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [1.0, -1.0, 0.3])
@pytest.mark.parametrize("tau", [0.5, 1.0, 2.0, 4.0])
def test_sapos_push_weakens_against_the_unclipped_push_and_still_grows_above_one(a: float, tau: float) -> None:
    found = pushes(Objective(surrogate="sapo", beta=0.0, sapo_temperature_pos=tau, sapo_temperature_neg=1.05 * tau), a)
    relative, ones = found / (RATIOS * a), int(np.flatnonzero(RATIOS == 1.0)[0])
    assert relative[ones] == pytest.approx(1)
    assert (np.diff(relative[ones:]) < 0).all() and (np.diff(relative[: ones + 1]) > 0).all()
    assert abs(found[ones + 1]) > abs(found[ones]), "not weaker as such: the push itself first grows"
    assert abs(found[-1]) < abs(found[ones]), "and then fades"
    assert (found != 0).all(), "and is never stopped"


@pytest.mark.parametrize("where", ["glossary", "reasons"])
def test_what_is_said_of_sapo_compares_with_the_unclipped_push(where: str) -> None:
    said = glossary()["sapo"]["sentence"]
    if where == "reasons":
        said = reasons(trained_with(1, objective__surrogate="sapo"), 0)["clip_fraction"].sentence
    assert "unclipped push" in said


# -- the KL ------------------------------------------------------------------------------------------------------------


def test_what_is_said_of_the_ratio_before_an_estimate_is_what_test_kl_computes() -> None:
    texts, help = glossary(), about(Objective, "kl_importance").help
    said = texts["kl_importance"]["sentence"]
    assert "k1 and k3" in said and "spoils that of k2" in said
    assert "for the exact KL, k2, and k1 or k3 times the ratio; for k1 and k3 alone" in texts["kl_penalty"]["sentence"]
    assert "k1 and k3" in help and "k2 has that gradient without the ratio" in help


def test_more_samples_buy_most_live_groups_near_one_half_and_near_0_and_1_it_takes_many_more() -> None:
    def live(p: float, size: int) -> float:
        return 1 - p**size - (1 - p) ** size

    gains = {p: live(p, 4) - live(p, 2) for p in (0.5, 0.9, 0.99)}
    assert gains[0.5] == pytest.approx(0.375) and gains[0.99] == pytest.approx(0.0195, abs=1e-3)
    needed = [next(g for g in range(1, 1000) if live(p, g) >= 0.9) for p in (0.5, 0.8, 0.95, 0.99)]
    assert needed == sorted(needed) and needed[-1] > 20 * needed[0]
    said = resource("lessons/05-same-rewards.toml").read_text("utf-8")
    assert "Near p = 0 or 1 it takes many." in said and "the more so the nearer" not in said


def test_no_advantage_of_a_divided_group_is_said_to_be_in_the_thousands() -> None:
    symptoms = (Path(__file__).parents[2] / "docs" / "symptoms.md").read_text("utf-8")
    assert f"{7 / math.sqrt(8):.2f} at G = 8" in symptoms and "a standard deviation of nearly 0" not in symptoms


def test_in_the_reward_it_is_k1_that_enters_whatever_is_set_and_that_is_said() -> None:
    steps = {}
    for kl in ("k1", "k2", "k3"):
        chosen = {"objective__kl_in": "reward", "objective__kl": kl, "objective__beta": 0.5}
        steps[kl] = trained_with(3, **chosen, objective__std="none")
        np.testing.assert_array_equal(recompute.advantage(steps[kl]), recompute.advantage(steps["k1"]))
        note = explain(steps[kl], Quantity("penalised_reward", row=1)).note
        assert ("always uses k1" in note) == (kl != "k1")
        assert (f"the estimator that is set, {kl}, has no effect there" in note) == (kl != "k1")
        warnings = steps[kl].settings.objective.warnings
        assert any("always the summed k1" in sentence for sentence in warnings) == (kl != "k1")


@pytest.mark.parametrize("beta", [0.1, 1.0])
def test_a_critics_advantage_leaves_the_kl_in_the_reward_out_and_that_is_said(beta: float) -> None:
    settings = PRESETS["PPO-clip"].applied_to(Settings()).replace({"objective.kl_in": "reward", "objective.beta": beta})
    run, bare = learner(settings), learner(settings.replace({"objective.beta": 0.0}))
    steps = [(next(run), next(bare)) for _ in range(3)]
    assert all(np.array_equal(a.logp, b.logp) for a, b in steps), "β has no effect"
    assert "β has no effect" in explain(steps[-1][0], Quantity("token_loss", row=0)).note


# -- presets -----------------------------------------------------------------------------------------------------------


def test_the_running_mean_is_the_whole_baseline_for_one_token_and_gae_for_several() -> None:
    preset = PRESETS["REINFORCE + running mean"]
    assert "GAE" in preset.not_covered and "one token" in preset.not_covered
    for landscape, alone in (("single_peak", True), ("length", False)):
        settings = preset.applied_to(Settings().replace({"task.landscape": landscape}))
        run = learner(settings)
        step = [next(run) for _ in range(6)][-1]
        assert step.values is not None
        found = recompute.advantage(step)
        last = step.mask & (np.cumsum(step.mask, axis=-1) == step.mask.sum(axis=-1, keepdims=True))
        paid = np.where(last, step.rewards[:, None], 0.0)
        assert settings.learner.lam == 0.95
        np.testing.assert_allclose(found, gae(paid, step.values, step.mask, gamma=settings.learner.gamma, lam=0.95))
        plain = np.where(step.mask, step.rewards[:, None] - step.values[:, :1], 0.0)  # R − V of the prompt
        assert np.allclose(found, plain) == alone


@pytest.mark.parametrize("missing", ["overlong filtering", "sixteen mini-batches", "at most ten times", "punishment"])
def test_what_of_dapo_is_not_here_is_said(missing: str) -> None:
    assert missing in PRESETS["DAPO"].not_covered


# -- who a formula is from ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_a_presets_token_loss_and_loss_cite_the_preset(name: str) -> None:
    settings = PRESETS[name].applied_to(Settings())
    step = next(learner(settings))
    sources = {PRESETS[same].source for same in presets_of(settings)}
    for quantity in (Quantity("token_loss", row=0), Quantity("loss")):
        assert explain(step, quantity).source in sources


def differing(**objective: Any) -> Step:
    step = random_step(prompts=2, group_size=4, tokens=3, passes=1, settings=Settings(objective=Objective(**objective)))
    return dataclasses.replace(step, rewards=np.array([1.0, 0.0, 0.25, 0.5, 2.0, 1.0, 0.0, 0.0]))


@pytest.mark.parametrize(
    ("objective", "cited", "not_cited"),
    [
        ({"std": "none"}, "2503.20783", "2402.03300"),
        ({"std": "none", "baseline": "leave_one_out"}, "2402.14740", "2402.03300"),
        ({"std": "none", "baseline": "none"}, "after Williams 1992", "2402.03300"),
        ({"std": "none", "baseline": "batch_mean"}, "after Williams 1992", "2402.03300"),
        ({}, "2402.03300", "Williams"),
        ({"std": "batch"}, "scale_rewards", "2402.03300"),
        ({"baseline": "leave_one_out"}, "2402.14740", "Williams"),
    ],
)
def test_an_advantage_cites_who_computes_it_so(objective: dict[str, Any], cited: str, not_cited: str) -> None:
    source = explain(differing(**objective), Quantity("advantage", row=0)).source
    assert cited in source and not_cited not in source


@pytest.mark.parametrize(
    ("level", "surrogate", "cited"),
    [
        ("sequence", "clip", "LUSPO"),
        ("token", "clip", "Williams"),
        ("token", "log_prob", "Williams"),
        ("sequence_sum", "clip", "Williams"),
    ],
)
def test_a_sum_over_tokens_is_luspos_only_with_one_ratio_for_the_completion(
    level: str, surrogate: str, cited: str
) -> None:
    step = differing(level=level, surrogate=surrogate, reduction="sequence_sum", beta=0.0)
    assert cited in explain(step, Quantity("weight", row=0, token=0)).source


# -- what is counted and shown -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [1.1, 1.5, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_tokens_above_the_dual_clip_count_here_and_not_in_trls_clip_ratio(cap: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    o = Objective(dual_clip=cap, beta=0.0)
    a, log_ratio = draw.normal(size=64), draw.normal(0, 1, size=(64, 1))
    r = np.minimum(np.exp(log_ratio[:, 0]), cap)  # TRL caps first, then looks
    trl = ((r < 1 - o.clip_low) & (a < 0)) | ((r > 1 + o.clip_high) & (a > 0))
    ours = np.asarray(evaluate(o, log_ratio, 0 * log_ratio, a, np.ones((64, 1), bool)).clipped)[:, 0]
    above = np.exp(log_ratio[:, 0]) > cap
    assert np.array_equal(ours & ~above, trl & ~above)
    assert (ours & above & ~trl).any() and not (trl & ~ours).any(), "ours counts more, and never less"
    for dual_clip in (None, cap):
        note = explain(trained_with(1, objective__dual_clip=dual_clip), Quantity("clip_fraction")).note
        assert ("TRL's clip_ratio leaves them out" in note) == (dual_clip is not None)
    assert "TRL's clip_ratio leaves them out" in glossary()["clip_fraction"]["sentence"]


@pytest.mark.parametrize("surrogate", ["clip", "cispo", "sapo", "vespo", "gmpo", "log_prob"])
def test_the_clip_fractions_note_says_what_is_counted(surrogate: str) -> None:
    step = trained_with(2, objective__surrogate=surrogate, objective__clip_high=0.9)
    terms, (push, _) = recompute.terms(step, step.passes - 1), recompute.token_gradient(step, step.passes - 1)
    said = explain(step, Quantity("clip_fraction")).note
    assert ("stopped" in said) == (surrogate in ("clip", "gmpo"))
    assert ("cut to the cap" in said) == (surrogate == "cispo") == bool((push[terms.clipped] != 0).any())
    assert ("no clip" in said) == (surrogate in ("sapo", "vespo", "log_prob"))


def test_capped_weights_are_not_said_to_be_stopped_pushes() -> None:
    step = trained_with(2, objective__surrogate="cispo", objective__clip_high=0.5)
    assert recompute.terms(step, 0).clipped.all() and recompute.token_gradient(step, 0)[0].any()
    for key in ("clip_fraction", "clipped"):
        said = reasons(step, 0)[key]
        assert said.chip == "most weights capped" and "their push stays" in said.sentence


def test_with_one_place_the_largest_probability_is_no_mean() -> None:
    step = trained_with(2)
    for name in ("max_prob", "kl", "entropy"):
        node = explain(step, Quantity(name))
        assert node.agrees and "frac" not in node.latex_values, name
        assert node.value == Numbers(step)[node.inputs[0]]


# -- lessons -----------------------------------------------------------------------------------------------------------


def test_lesson_12s_picture_of_running_means_shows_what_its_text_says() -> None:
    lesson = tomllib.loads(resource("lessons/12-kl.toml").read_text("utf-8"))
    state: dict[str, Any] = {}
    for step in lesson["steps"]:
        state |= step.get("state", {})
        if step.get("show") == "running":
            break
    policy, reference = (by_hand.from_weights(state[name]) for name in ("policy", "reference"))
    drawn = Divergence(policy, reference, state["samples"], state["seed"])
    off = {name: abs(float(means[-1]) - drawn.both[0]) for name, means in drawn.running.items()}
    assert off["k2"] > 5 * max(off["k1"], off["k3"]), off
    assert "k2 settles on another value" in step["text"]


def test_beta_limits_a_hacked_reward_for_good_and_does_not_just_delay_it() -> None:
    lesson = tomllib.loads(resource("lessons/14-reward-hacking.toml").read_text("utf-8"))
    settings = Settings().replace({**lesson["start"]["settings"], "objective.beta": 0.2})
    after = [next(ensembles([settings], range(8), n)).policy[:, 0, 6].mean() for n in (200, 800)]
    assert after[1] == pytest.approx(after[0], abs=0.05) and after[1] > 0.5
    assert "delays" not in lesson["gist"]


@pytest.mark.parametrize(("ratio", "a", "stopped"), [(10.9, 1, False), (11.1, 1, True), (1e-6, -1, False)])
def test_a_clip_range_of_ten_stops_what_the_published_figure_says(ratio: float, a: float, stopped: bool) -> None:
    logp = np.full((1, 1), math.log(ratio))
    clipped = evaluate(
        Objective(clip_low=10, clip_high=10, beta=0.0), logp, 0 * logp, np.array([a]), logp == logp
    ).clipped
    assert bool(clipped[0, 0]) is stopped
