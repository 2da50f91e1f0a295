"""Each preset on numbers that a reader can check by hand, and as settings: recognised and changed into one another.

Unless stated otherwise: two completions of one prompt, with one and three tokens and rewards 1 and 0.
Mean 0.5; standard deviation (n − 1) √(0.25 + 0.25) = 0.707107; 0.5 / (0.707107 + 0.0001) = 0.707007.
"""

from __future__ import annotations

import json
import math
import re
from cProfile import Profile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.advantages import advantages, gae
from grpo_core.config import PRESETS, Objective, Settings, flat
from grpo_core.config.presets import nearest_preset, preset_of
from grpo_core.objective import evaluate, gradient, importance_weight

MASK = np.array([[True, False, False], [True, True, True]])
LOGP = np.array([[-0.5, 0.0, 0.0], [-1.0, -2.0, -3.0]])
ADVANTAGE = 0.5 / (math.sqrt(0.5) + 1e-4)


def objective(name: str) -> Objective:
    return PRESETS[name].objective


def advantage(name: str, rewards: Any = ((1.0, 0.0),), **more: Any) -> list[float]:
    found: list[float] = advantages(objective(name), np.array(rewards), **more).ravel().tolist()
    return found


def first_loss(name: str, **more: Any) -> float:
    """Return the loss of the first pass over the two completions."""
    return float(evaluate(objective(name), LOGP, LOGP, np.array(advantage(name)), MASK, **more).loss)


def one(name: str, log_ratio: list[float], a: float) -> tuple[list[float], list[float]]:
    """Return (surrogate, −gradient) of the tokens of a single completion."""
    old = np.full((1, len(log_ratio)), -1.0)
    arguments = (objective(name), old + np.array([log_ratio]), old, np.array([a]), np.full(old.shape, True))
    return evaluate(*arguments, ref_logp=old).surrogate[0].tolist(), (-gradient(*arguments, ref_logp=old))[0].tolist()


def test_grpo_deepseekmath() -> None:
    # π_ref = 2π everywhere: k3 = 2 − log 2 − 1 = 0.306853; the surrogates cancel, loss = 0.04 · 0.306853
    assert advantage("GRPO (DeepSeekMath)") == pytest.approx([0.707007, -0.707007], abs=1e-6)
    assert first_loss("GRPO (DeepSeekMath)", ref_logp=LOGP + math.log(2)) == pytest.approx(0.0122741, abs=1e-7)


def test_grpo_trl_averages_over_all_tokens() -> None:
    # −(1 · 0.707007 − 3 · 0.707007) / 4; β = 0 leaves the KL out
    assert first_loss("GRPO (TRL 1.16 defaults)") == pytest.approx(0.353503, abs=1e-6)
    assert first_loss("GRPO (TRL 1.16 defaults)", ref_logp=LOGP + 5) == pytest.approx(0.353503, abs=1e-6)


def test_grpo_trl_turns_a_penalty_that_is_switched_on_into_ratio_times_k3() -> None:
    # r = 1.1, π_ref = 2π: 1.1 · 0.306853, and the gradient β r (x − x_ref) = −0.1 · 1.1 · log 2
    trl = objective("GRPO (TRL 1.16 defaults)").replace(beta=0.1)
    logp = np.array([[-1.0]])
    arguments = (trl, logp, logp - math.log(1.1), np.array([0.0]), np.array([[True]]))
    assert evaluate(*arguments, ref_logp=logp + math.log(2)).kl == pytest.approx(0.3375381, abs=1e-7)
    assert gradient(*arguments, ref_logp=logp + math.log(2)) == pytest.approx(-0.0762462, abs=1e-7)


def test_grpo_verl_has_a_dual_clip_and_a_log_ratio_limit() -> None:
    # 0.5 / (0.707107 + 0.000001) = 0.707106; r = 4 with A = −1 is held at 3 and pushes no more; r = 2.5 still does
    assert advantage("GRPO (verl 0.9 defaults)")[0] == pytest.approx(0.7071058, abs=1e-7)
    assert one("GRPO (verl 0.9 defaults)", [math.log(4)], -1.0) == ([-3.0], [0.0])
    assert one("GRPO (verl 0.9 defaults)", [math.log(2.5)], -1.0)[1] == pytest.approx([-2.5])
    zero, every = np.zeros((1, 1)), np.full((1, 1), True)
    held = evaluate(objective("GRPO (verl 0.9 defaults)"), zero, zero - 30, np.ones(1), every)
    assert held.ratio == pytest.approx(math.exp(20))
    assert first_loss("GRPO (verl 0.9 defaults)") == pytest.approx(0.3535529, abs=1e-7)


def test_grpo_verl_says_that_a_group_of_one_differs() -> None:
    assert advantage("GRPO (verl 0.9 defaults)", [[0.7]]) == [0.0]
    assert "group of one" in PRESETS["GRPO (verl 0.9 defaults)"].not_covered


def test_dapo_clips_higher() -> None:
    # r = 1.25 is inside 1 + 0.28 and still pushes; 1.3 is held at 1.28; below, 0.75 with A < 0 is held at 0.8
    assert one("DAPO", [math.log(1.25)], 1.0)[1] == pytest.approx([1.25])
    assert one("DAPO", [math.log(1.3)], 1.0) == ([1.28], [0.0])
    assert one("DAPO", [math.log(0.75)], -1.0) == ([-0.8], [0.0])
    assert first_loss("DAPO") == pytest.approx(0.353503, abs=1e-6)
    assert PRESETS["DAPO"].resample_dead


def test_dr_grpo_divides_neither_by_the_std_nor_by_the_length() -> None:
    # A = ±0.5; −(1 · 0.5 − 3 · 0.5) / (2 · 3000) = 1 / 6000
    assert advantage("Dr. GRPO") == [0.5, -0.5]
    assert first_loss("Dr. GRPO") == pytest.approx(1 / 6000)


def test_dr_grpo_takes_its_constant_from_the_task() -> None:
    applied = PRESETS["Dr. GRPO"].applied_to(Settings().replace({"task.landscape": "length", "task.max_length": 12}))
    assert applied.objective.max_tokens == 12


def test_bnpo_counts_the_tokens_of_its_own_batch() -> None:
    # the second completion alone: three tokens, −(−0.707007 · 3) / 3
    alone = slice(1, 2)
    found = evaluate(objective("BNPO"), LOGP[alone], LOGP[alone], np.array([-ADVANTAGE]), MASK[alone])
    assert found.loss == pytest.approx(ADVANTAGE)
    assert first_loss("BNPO") == pytest.approx(ADVANTAGE / 2)


def test_gspo_has_one_ratio_a_sequence_and_a_narrow_clip() -> None:
    # mean (0.0006 + 0 + 0.0003) / 3 = 0.0003: s = 1.00030005 < 1.0004, each token A s / L
    surrogate, push = one("GSPO", [0.0006, 0.0, 0.0003], 1.0)
    assert surrogate == pytest.approx([1.00030005] * 3, abs=1e-8)
    assert push == pytest.approx([1.00030005 / 3] * 3, abs=1e-8)
    assert one("GSPO", [0.0009, 0.0003, 0.0003], 1.0) == ([1.0004] * 3, [0.0] * 3)  # mean 0.0005
    assert one("GSPO", [-0.0004], -1.0) == ([-0.9997], [0.0])
    assert first_loss("GSPO") == pytest.approx(0, abs=1e-15)


def test_cispo_caps_the_weight_and_keeps_pushing() -> None:
    # weights min(8, 5) = 5 and min(0.5, 5) = 0.5, over two tokens
    assert one("CISPO", [math.log(8), math.log(0.5)], 2.0)[1] == pytest.approx([5.0, 0.5])


def test_sapo_gates_softly() -> None:
    # r = 3, τ = 1: σ(2) = 0.880797; 4 · 0.880797 · 0.119203 · 3 = 1.259923
    assert one("SAPO", [math.log(3)], 1.0)[1] == pytest.approx([1.259923], abs=1e-6)
    assert one("SAPO", [math.log(3)], 1.0)[0] == pytest.approx([4 * 0.880797], abs=4e-6)
    # first pass: −½ (2 − 2 / 1.05) · 0.707007
    assert first_loss("SAPO") == pytest.approx(-0.0336670, abs=1e-7)


def test_luspo_sums_over_the_sequence() -> None:
    # −(1 · 0.707007 − 3 · 0.707007) / 2
    assert first_loss("LUSPO") == pytest.approx(0.707007, abs=1e-6)
    # every token A s / B, no 1/L
    assert one("LUSPO", [0.0003, 0.0003], 1.0)[1] == pytest.approx([math.exp(0.0003)] * 2)
    assert one("LUSPO", [0.0005], 1.0) == ([1.0004], [0.0])
    assert one("LUSPO", [-0.0004], -1.0) == ([-0.9997], [0.0])


def test_vespo_weighs_sequences_by_their_product_of_ratios() -> None:
    # w = √2 · √2 = 2 over two tokens: A ≥ 0: exp(3 + 2 log 2 − 6) = 4 e⁻³ = 0.199148; A < 0: 8 e⁻² = 1.082682
    half = math.log(2) / 2
    assert one("VESPO", [half, half], 1.0)[1] == pytest.approx([0.199148 / 2] * 2, abs=1e-6)
    assert one("VESPO", [half, half], -1.0)[1] == pytest.approx([-1.082682 / 2] * 2, abs=1e-6)
    assert one("VESPO", [0.3, -0.3], 1.0)[1] == pytest.approx([0.5] * 2)  # w = 1: φ = 1


def test_gmpo_is_a_geometric_mean_of_clipped_ratios() -> None:
    # 0.6 is held at 0.4; exp((0.4 + 0.2) / 2) = 1.349859; the held token gets no push, the other 1.349859 / 2
    surrogate, push = one("GMPO", [0.6, 0.2], 1.0)
    assert surrogate == pytest.approx([1.349859] * 2, abs=1e-6)
    assert push == pytest.approx([0.0, 0.674929], abs=1e-6)
    # A < 0 is held from below: exp((−0.4 − 0.3) / 2) = 0.704688
    surrogate, push = one("GMPO", [-0.6, -0.3], -1.0)
    assert surrogate == pytest.approx([-0.704688] * 2, abs=1e-6)
    assert push == pytest.approx([0.0, -0.352344], abs=1e-6)


def test_grpo_trl_with_vllm_leaves_out_completions_whose_weight_is_above_3() -> None:
    # the product of the tokens' weights: e^(0.5 + 0.5) = 2.718282 counts, e^(0.6 + 0.6) = 3.320117 > 3 does not
    old = np.full((2, 2), -1.0)
    arguments = (objective("GRPO (TRL 1.16 with vLLM)"), old, old, np.ones(2), np.full((2, 2), True))
    sampled = old - np.array([[0.5, 0.5], [0.6, 0.6]])
    push = -gradient(*arguments, sampling_logp=sampled)
    assert push.tolist() == [pytest.approx([math.e / 4] * 2), [0.0, 0.0]]
    # truncated instead, at token level and with a floor of 2: e^0.6 = 1.822119 becomes 2, e^1.2 = 3.320117 becomes 3
    token = arguments[0].replace(importance_mode="truncate", importance_level="token", importance_floor=2.0)
    push = -gradient(token, *arguments[1:], sampling_logp=old - np.array([[0.6, 1.2], [0.0, 1.0]]))
    assert push == pytest.approx(np.array([[2, 3], [2, math.e]]) / 4)


def test_reinforce_plus_plus_whitens_over_the_batch() -> None:
    # rewards 1, 0, 1, 1: mean 0.75, standard deviation (n − 1) √(3 · 0.0625 + 0.5625) / √3 = 0.5; a KL of 0
    assert advantage("REINFORCE++", [[1.0, 0], [1, 1]], kl=np.zeros((2, 2))) == pytest.approx([0.5, -1.5, 0.5, 0.5])
    # its baseline form: 0.5, −0.5, 0, 0 after the group's mean; √(0.5 / 3) = 0.408248
    whitened = [0.5 / 0.408248, -0.5 / 0.408248, 0, 0]
    assert advantage("REINFORCE++ baseline", [[1.0, 0], [1, 1]]) == pytest.approx(whitened, rel=1e-6)
    # a difference between prompts does not count: rewards 11, 10 and 1, 1 give the same
    assert advantage("REINFORCE++ baseline", [[11.0, 10], [1, 1]]) == pytest.approx(whitened, rel=1e-6)


def test_maxrl_divides_by_the_mean_reward() -> None:
    # one right answer of four: (1 − 0.25) / 0.25 = 3 and −1; three of four: 1/3 and −1
    assert advantage("MaxRL", [[1.0, 0, 0, 0]]) == pytest.approx([3, -1, -1, -1], abs=2e-5)
    assert advantage("MaxRL", [[1.0, 1, 1, 0]]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, -1], abs=2e-5)
    assert advantage("MaxRL", [[0.0, 0, 0, 0]]) == [0, 0, 0, 0]
    # a mean of −1 does not turn the push around: −0.5 + 1 and −1.5 + 1, divided by 1
    assert advantage("MaxRL", [[-0.5, -1.5]]) == [0.5, -0.5]


def test_dppo_stops_a_push_by_the_change_of_the_probability() -> None:
    # A = ±0.5 and W = 1 / 8192, as without a standard deviation and with a constant length
    assert advantage("DPPO") == [0.5, -0.5]
    # π_old = e⁻¹ = 0.367879: at r = 1.4 π has risen by 0.147152 and the push goes on, at r = 1.5 by 0.183940 > 0.15
    surrogate, push = one("DPPO", [math.log(1.4), math.log(1.5)], 1.0)
    assert push == pytest.approx([1.4 / 8192, 0])
    assert surrogate == pytest.approx([1.4 * (math.log(1.4) - 1), 0])
    # A < 0: at r = 0.6 π has fallen by 0.147152, at 0.5 by 0.183940; a rise stops nothing
    assert one("DPPO", [math.log(0.6), math.log(0.5), 2.0], -1.0)[1] == pytest.approx(
        [-0.6 / 8192, 0, -math.exp(2) / 8192]
    )
    # a rare token: π_old = e⁻⁸, and r = 100 moves it by 0.033
    rare = (objective("DPPO"), np.array([[math.log(100) - 8]]), np.array([[-8.0]]), np.ones(1), np.array([[True]]))
    assert -gradient(*rare)[0, 0] == pytest.approx(100 / 8192)


def test_rloo_compares_with_the_others() -> None:
    # G = 4: 1 − 0 = 1 and 0 − 1/3; the same as G/(G − 1) (r − mean) = 4/3 · 0.75
    kl = np.zeros((1, 4))
    assert advantage("RLOO", [[1.0, 0, 0, 0]], kl=kl) == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])
    # the summed k1 of the first is 2: 1 − 0.05 · 2 = 0.9
    kl[0, 0] = 2.0
    assert advantage("RLOO", [[1.0, 0, 0, 0]], kl=kl) == pytest.approx([0.9, -0.3, -0.3, -0.3])
    # one ratio exp(0.05 + 0.1) = 1.161834 for the sequence, the same push on every token; none at 0.2 > log 1.2
    assert one("RLOO", [0.05, 0.1], 1.0)[1] == pytest.approx([1.161834] * 2, abs=1e-6)
    assert one("RLOO", [0.1, 0.1], 1.0) == ([1.2, 1.2], [0.0, 0.0])


def test_reinforce_pushes_with_the_reward() -> None:
    # −½ (1 · (−0.5) + 0 · (−6)) = 0.25
    assert advantage("REINFORCE") == [1.0, 0.0]
    assert first_loss("REINFORCE") == pytest.approx(0.25)
    assert one("REINFORCE", [7.0, -7.0], 3.0)[1] == [3.0, 3.0]


def test_reinforce_with_a_baseline_subtracts_the_batchs_mean() -> None:
    # (1 + 0 + 1 + 1) / 4 = 0.75
    assert advantage("REINFORCE + baseline", [[1.0, 0.0], [1.0, 1.0]]) == [0.25, -0.75, 0.25, 0.25]
    # −½ (0.5 · (−0.5) − 0.5 · (−6)) = −1.375
    assert first_loss("REINFORCE + baseline") == pytest.approx(-1.375)


def test_reinforce_with_a_running_mean_compares_with_what_its_critic_holds() -> None:
    # V = 0.75 before the only token of each completion: 1 − 0.75 and 0 − 0.75
    every = np.full((2, 1), True)
    found = gae(np.array([[1.0], [0.0]]), np.full((2, 1), 0.75), every, gamma=1.0, lam=0.95)
    assert found[:, 0].tolist() == [0.25, -0.75]
    # −½ (0.25 · (−1) + (−0.75) · (−2)) = −0.625
    logp = np.array([[-1.0], [-2.0]])
    loss = evaluate(objective("REINFORCE + running mean"), logp, logp, found, every).loss
    assert loss == pytest.approx(-0.625)
    assert PRESETS["REINFORCE + running mean"].critic


def test_ppo_clip_takes_its_advantage_from_a_critic() -> None:
    # V = 0.5, 0.4 and a reward of 1 at the end, γ = 1, λ = 0.95: δ = −0.1 and 0.6; A = −0.1 + 0.95 · 0.6 = 0.47, 0.6
    every = np.full((1, 2), True)
    found = gae(np.array([[0.0, 1.0]]), np.array([[0.5, 0.4]]), every, gamma=1.0, lam=0.95)
    assert found[0].tolist() == pytest.approx([0.47, 0.6])
    # r = 1.1 follows, r = 1.3 is held at 1.2: −(1.1 · 0.47 + 1.2 · 0.6) / 2
    old = np.full((1, 2), -1.0)
    arguments = (objective("PPO-clip"), old + np.log([[1.1, 1.3]]), old, found, every)
    assert evaluate(*arguments).loss == pytest.approx(-0.6185)
    assert gradient(*arguments)[0].tolist() == pytest.approx([-0.2585, 0])
    assert PRESETS["PPO-clip"].critic


# -- as settings -------------------------------------------------------------------------------------------------------


def test_every_preset_says_where_it_comes_from_and_has_its_numbers_tested() -> None:
    written = Path(__file__).read_text(encoding="utf-8")
    for name, preset in PRESETS.items():
        assert preset.source, name
        assert f'"{name}"' in written, name
        assert not preset.not_covered or preset.not_covered.endswith("."), name


def test_every_preset_is_in_the_list_of_algorithms() -> None:
    listed = (Path(__file__).parents[2] / "docs" / "algorithms.md").read_text(encoding="utf-8")
    presets = listed.partition("## Presets")[2].partition("\n## ")[0]
    assert [line.split(" | ")[0][2:] for line in presets.splitlines() if line.startswith("| ")][1:] == list(PRESETS)
    settings = listed.partition("## Names for a setting")[2].partition("\n## ")[0]
    for path in re.findall(r"`((?:objective|learner)\.\w+)`", settings):
        assert path in flat(Settings()), path


def test_a_preset_is_recognised_by_its_switches() -> None:
    same = {"BNPO": "GRPO (TRL 1.16 defaults)"}  # one micro-batch a pass: the same switches
    for landscape in ("single_peak", "length"):
        for passes in (1, 3):
            start = Settings().replace({"task.landscape": landscape, "learner.group_size": 5, "seed": 3})
            for name, preset in PRESETS.items():
                settings = preset.applied_to(start).replace({"learner.mu": passes})
                assert preset_of(settings) == same.get(name, name)
                assert settings.learner.group_size == 5


def test_a_mixture_is_no_preset() -> None:
    assert preset_of(Settings().replace({"objective.beta": 0.123})) is None
    assert preset_of(PRESETS["DAPO"].applied_to(Settings()).replace({"learner.resample_dead": False})) is None


def test_a_preset_fixes_the_passes_only_where_its_source_does() -> None:
    start = Settings().replace({"learner.mu": 6})
    assert PRESETS["GRPO (DeepSeekMath)"].applied_to(start).learner.mu == 1
    assert PRESETS["GSPO"].applied_to(start).learner.mu == 6


def test_changing_from_one_preset_to_any_other_leaves_nothing_behind() -> None:
    for first in PRESETS.values():
        for second in PRESETS.values():
            assert second.applied_to(first.applied_to(Settings())).replace({"learner.mu": 1}) == second.applied_to(
                Settings()
            ).replace({"learner.mu": 1})


@pytest.mark.parametrize("name", PRESETS)
def test_what_differs_from_a_preset_is_what_choosing_it_would_change(name: str) -> None:
    other = {"objective.clip_high": 0.3, "learner.critic": True, "learner.mu": 3, "task.landscape": "length"}
    for settings in (Settings(), Settings().replace(other), PRESETS[name].applied_to(Settings())):
        chosen = PRESETS[name].applied_to(settings).differences(settings)
        chosen.pop("learner.mu", None)
        assert PRESETS[name].differences(settings) == chosen


def test_the_nearest_preset_is_found_without_making_settings() -> None:
    assert nearest_preset(Settings())[0] == "GRPO (DeepSeekMath)"
    settings = Settings(objective=Objective(beta=0.3))
    with Profile() as calls:
        nearest_preset(settings)
    assert sum(entry.callcount for entry in calls.getstats()) < 500


# -- numbers of the sources' own functions -----------------------------------------------------------------------------

DRAWN = json.loads((Path(__file__).parents[1] / "data" / "algorithms.json").read_text("utf-8"))
"""Drawn batches with the numbers that each source's own function gave, and the name of that function."""


@pytest.mark.parametrize("name", ["MaxRL", "REINFORCE++", "REINFORCE++ baseline"])
def test_the_advantages_are_those_of_the_source(name: str) -> None:
    for case in DRAWN[name]["cases"]:
        rewards = np.array(case["rewards"])
        found = advantages(objective(name), rewards, kl=np.zeros(rewards.shape))
        assert found == pytest.approx(np.array(case["advantages"]), rel=1e-7, abs=1e-12)  # verl adds 1e-8 elsewhere


def test_the_loss_of_dppo_is_that_of_the_source() -> None:
    clipped = 0
    for case in DRAWN["DPPO"]["cases"]:
        arguments = [np.array(case[name]) for name in ("logp", "old_logp", "advantage", "mask")]
        terms = evaluate(objective("DPPO"), *arguments)
        clipped += terms.clipped.sum()
        assert terms.loss == pytest.approx(case["loss"], rel=1e-12)
        assert gradient(objective("DPPO"), *arguments) == pytest.approx(np.array(case["gradient"]), rel=1e-12)
    assert clipped


def test_the_importance_weights_are_those_of_the_source() -> None:
    for case in DRAWN["importance weights"]["cases"]:
        level, mode = case["mode"].split("_")
        old, sampled, mask = (np.array(case[name]) for name in ("old_logp", "sampling_logp", "mask"))
        bounds = {"floor": case["floor"], "level": {"sequence": "sequence_sum"}.get(level, level), "mode": mode}
        found = importance_weight(case["cap"], old, sampled, mask, **bounds)
        assert np.where(mask, found, 0.0) == pytest.approx(np.array(case["weights"]), rel=1e-12)
