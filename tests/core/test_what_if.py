"""What-if: one recorded update with other settings, on numbers that a reader can check by hand."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.explain import Numbers, Quantity, explain_from
from grpo_core.learners import learner
from grpo_core.questions import Replay, Replayed, answer_from_json, question_from_json
from grpo_core.record import Step
from grpo_core.what_if import compared, direction, in_force, notes, replayed, unchanged, what_if
from tests.core.lm_steps import lm_settings, lm_step
from tests.core.steps import random_step, same
from tests.core.test_recompute import REDUCTIONS, across_ranks

EVERYTHING: dict[str, Any] = {
    "task.landscape": "length",
    "learner.mu": 3,
    "learner.critic": True,
    "learner.resample_dead": True,
    "optimizer.kind": "adam",
    "optimizer.learning_rate": 0.05,
    "objective.baseline": "given",
    "objective.entropy_bonus": 0.01,
    "objective.kl": "exact",
}


def bandit(changes: dict[str, Any] | None = None, count: int = 3) -> list[Step]:
    run = learner(Settings().replace(changes or {}))
    return [next(run) for _ in range(count)]


def two_of_three(**changes: Any) -> Step:
    """Return one prompt with G = 2: a right completion of two tokens and a wrong one of three, at ratio 1."""
    step = lm_step(1, prompts=1, group_size=2, settings=lm_settings(**{"learner.group_size": 2, **changes}))
    mask = np.array([[True, True, False], [True, True, True]])
    cut: dict[str, Any] = {
        name: np.where(mask, getattr(step, name)[..., :3], 0)
        for name in ("tokens", "old_logp", "sampling_logp", "context")
    }
    logp = np.where(mask, step.logp[..., :3], 0)
    logp[0] = cut["old_logp"]
    return dataclasses.replace(
        step, mask=mask, logp=logp, ref_logp=cut["old_logp"], rewards=np.array([1.0, 0.0]), reward_parts=None, **cut
    )


def row(w: Any, name: str, passed: int = 0) -> Any:
    return next(each for each in compared(w, passed) if each.name == name)


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_dr_grpo_divides_by_the_longest_completion_of_the_task_and_not_by_the_standard_deviation() -> None:
    w = what_if(two_of_three(), "Dr. GRPO")
    std = math.sqrt(0.5)  # of the rewards 1 and 0, with n − 1
    np.testing.assert_allclose(w.ran.advantage, np.array([0.5, -0.5]) / (std + 1e-4))
    np.testing.assert_allclose(w.other.advantage, [0.5, -0.5])
    assert "The signs of the advantages are the same; their sizes differ." in unchanged(w, 0)
    longest = w.ran.step.settings.trained.longest
    np.testing.assert_allclose(w.other.terms(0).weight[w.ran.step.mask], 1 / (2 * longest))
    assert (row(w, "share").ran, row(w, "share").other) == pytest.approx((1 / 2, 3 / 5))


def test_dapo_weighs_every_token_by_the_tokens_of_the_batch() -> None:
    w = what_if(two_of_three(), "DAPO")
    np.testing.assert_allclose(w.ran.terms(0).weight, [[1 / 4, 1 / 4, 0], [1 / 6, 1 / 6, 1 / 6]])
    np.testing.assert_allclose(w.other.terms(0).weight, np.where(w.ran.step.mask, 1 / 5, 0))
    a = 0.5 / (math.sqrt(0.5) + 1e-4)
    assert row(w, "loss").ran == pytest.approx(0.0, abs=1e-7)
    assert row(w, "loss").other == pytest.approx(-(2 * a - 3 * a) / 5)
    np.testing.assert_allclose(-w.other.gradient(0), np.where(w.ran.step.mask, 1 / 5, 0) * np.array([[a], [-a]]))


def test_gspo_gives_a_completion_one_ratio() -> None:
    step = two_of_three()
    logp = step.logp.copy()
    logp[0] = step.old_logp + np.array([[0.1, 0.3, 0], [0.0, -0.3, 0.0]])
    w = what_if(dataclasses.replace(step, logp=logp), "GSPO")
    np.testing.assert_allclose(w.ran.terms(0).ratio, np.exp([[0.1, 0.3, 0], [0, -0.3, 0]]), rtol=1e-6)
    np.testing.assert_allclose(w.other.terms(0).ratio, np.exp([[0.2, 0.2, 0], [-0.1, -0.1, -0.1]]), rtol=1e-6)
    assert w.ran.terms(0).clipped.tolist() == [[False, True, False], [False, True, False]]
    assert w.other.terms(0).clipped.tolist() == [[True, True, False], [True, True, True]]
    assert (row(w, "clipped").ran, row(w, "clipped").other) == (2, 5)
    assert row(w, "still").other == 5


@pytest.mark.parametrize("preset", [name for name in PRESETS if not PRESETS[name].critic])
def test_both_sides_are_what_recompute_says_of_the_recorded_batch(preset: str) -> None:
    step = lm_step(3, dead=(1,))
    w = what_if(step, preset)
    asked = recompute.under(step, in_force(step, PRESETS[preset].applied_to(step.settings)))
    expected = recompute.terms(asked, 0)
    push, pull = recompute.token_gradient(asked, 0)
    for name in ("ratio", "weight", "clipped", "token_loss", "loss"):
        assert np.array_equal(getattr(w.other.terms(0), name), getattr(expected, name)), name
        assert np.array_equal(getattr(w.ran.terms(0), name), getattr(recompute.terms(step, 0), name)), name
    assert np.array_equal(w.other.gradient(0), push if pull is None else push + pull)
    assert np.array_equal(w.other.advantage, recompute.advantage(asked))


def test_gradients_are_compared_by_angle_and_length() -> None:
    here = np.array([[1.0, 0.0], [0.0, 0.0]])
    assert direction(here, 3 * here) == direction(here, here + 2 * here)
    assert (direction(here, 3 * here).cosine, direction(here, 3 * here).ratio) == (1, 3)
    assert direction(here, np.array([[0.0, 2.0], [0.0, 0.0]])).cosine == 0
    assert direction(here, 0 * here) == direction(here, -0.0 * here)
    assert direction(here, 0 * here).cosine is None
    assert direction(0 * here, here).ratio is None


@pytest.mark.parametrize("wanted", REDUCTIONS)
@pytest.mark.parametrize("ran", REDUCTIONS)
def test_in_micro_batches_another_reduction_has_the_weights_that_recompute_and_explain_give(
    ran: str, wanted: str
) -> None:
    step = dataclasses.replace(across_ranks(ran), resume={})
    goal = step.settings.replace({"objective.reduction": wanted})
    w, expected = what_if(step, goal), Numbers(recompute.under(step, goal))
    assert np.array_equal(w.other.terms(0).weight, expected.terms(0).weight)
    assert np.array_equal(w.other.gradient_parts(0)[0], expected.gradient_parts(0)[0])
    assert any("the completions used in a pass are one batch" in note for note in notes(w)) == (ran != wanted)
    assert all(explain_from(expected, Quantity("weight", row=row, token=0)).agrees for row in range(8))


# -- nothing differs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, EVERYTHING])
def test_a_bandit_under_its_own_settings_is_the_recorded_update_bit_for_bit(changes: dict[str, Any]) -> None:
    steps = bandit(changes)
    for before, step in zip([None, *steps], steps, strict=False):
        assert same(replayed(step, step.settings, before), step)


@pytest.mark.parametrize("step", [bandit(count=1)[0], lm_step(2), random_step(3, tokens=5, bare=True)])
def test_under_the_same_settings_no_number_differs(step: Step) -> None:
    w = what_if(step, step.settings)
    assert w.differences == () and notes(w) == ()
    for passed in range(step.passes):
        assert all(each.same for each in compared(w, passed))
    assert unchanged(w, 0) == ("Nothing differs: these are the settings that the run used.",)


# -- a bandit is computed to its end -----------------------------------------------------------------------------------


def test_a_bandit_ends_where_a_run_under_those_settings_would_have_ended() -> None:
    first, second, _ = bandit()
    wanted = second.settings.replace({"learner.mu": 2, "optimizer.learning_rate": 1.0, "objective.beta": 0.5})
    w = what_if(second, wanted, first)
    run = learner(wanted, resume=first)
    assert same(w.other.step, next(run)), "the same samples, since the settings that draw are the same"
    assert (w.ran.passes, w.other.passes) == (4, 2)
    assert w.other.nearest_pass(3) == 1


def test_without_the_update_before_it_only_the_first_pass_is_known() -> None:
    first, second, _ = bandit()
    w = what_if(second, "DAPO")
    assert not w.other.step.scored_after and w.other.passes == 4
    assert row(w, "kl").other is None
    assert "The first pass is exact." in " ".join(notes(w))
    whole = what_if(second, "DAPO", first)
    assert np.array_equal(w.other.gradient(0), whole.other.gradient(0))
    assert row(whole, "kl").other is not None
    with pytest.raises(GrpoError, match="without the update before it"):
        what_if(second, "DAPO", second)


def test_an_update_that_would_not_be_finite_is_refused() -> None:
    settings = Settings().replace(
        {
            "task.landscape": "custom",
            "task.custom": (1e9,) + (0.0,) * 9,
            "objective.std": "none",
            "optimizer.learning_rate": 0.0,
            "seed": 3,
            "learner.group_size": 32,
        }
    )
    step = next(learner(settings))
    assert len({*step.rewards.tolist()}) > 1
    with pytest.raises(GrpoError, match="Under these settings the loss of pass 2 of update 1 would not be a finite"):
        what_if(step, settings.replace({"optimizer.learning_rate": 1e3}))


# -- what cannot be replayed -------------------------------------------------------------------------------------------


def test_settings_that_decide_what_is_drawn_are_held_and_said() -> None:
    step = lm_step(2)
    wanted = step.settings.replace({"learner.temperature": 2.0, "learner.group_size": 4, "objective.beta": 0.5})
    w = what_if(step, wanted)
    assert w.other.step.settings == step.settings.replace({"objective.beta": 0.5})
    assert [d.text for d in w.differences] == ["KL weight β: 0.04 → 0.5", "Group size G: 8 → 4", "Temperature T: 1 → 2"]
    assert [d.replayed for d in w.differences] == [True, False, False]
    assert "Group size G: 8 → 4 decides what is drawn; the samples here are those of the run." in notes(w)


@pytest.mark.parametrize(
    ("dead", "said"),
    [((1, 4), "drawn 2 of 8 groups again"), ((), "Resampling would have drawn nothing again: no group is dead.")],
)
def test_dapos_resampling_is_said_to_be_out_of_reach(dead: tuple[int, ...], said: str) -> None:
    rewards = np.tile([1.0, 0.0, 0.0, 0.0], 16)
    rewards[np.isin(np.arange(64) // 8, dead)] = 0.5
    w = what_if(dataclasses.replace(lm_step(2), rewards=rewards), "DAPO")
    assert said in " ".join(notes(w, "DAPO"))
    assert "Not covered in DAPO: The soft punishment" in " ".join(notes(w, "DAPO"))
    assert not w.other.step.settings.learner.resample_dead


def test_a_critic_that_never_learned_values_every_token_at_nothing() -> None:
    w = what_if(two_of_three(**{"learner.lam": 1.0}), "PPO-clip")
    np.testing.assert_allclose(w.other.advantage, [[1, 1, 0], [0, 0, 0]])
    assert "No critic learned in this update: an untrained one values every token at 0." in notes(w)


def test_what_the_record_lacks_is_refused_in_a_sentence() -> None:
    bare = dataclasses.replace(lm_step(2, settings=lm_settings(**{"objective.beta": 0.0})), ref_logp=None)
    with pytest.raises(SettingsError, match="without a reference policy there is no KL"):
        what_if(bare, "GRPO (DeepSeekMath)")
    with pytest.raises(KeyError):
        what_if(bare, "No such preset")


def odd_steps() -> dict[str, Step]:
    """Return unusual but valid records."""
    step, several = lm_step(2), random_step(3, prompts=3, group_size=4, tokens=6, passes=2)
    part = np.array([np.repeat([0, 1], 6), np.repeat([0, -1], [5, 7])])
    return {
        "some unscored": dataclasses.replace(step, rewards=np.where(np.arange(64) % 3, step.rewards, np.nan)),
        "none scored": dataclasses.replace(step, rewards=np.full(64, np.nan)),
        "all masked": dataclasses.replace(step, mask=np.zeros_like(step.mask)),
        "micro-batches": dataclasses.replace(
            several, part=part, denominator=np.array([[6.0, 6.0], [5.0, 1.0]]), resume={}
        ),
        "given by the source": dataclasses.replace(several, advantage=np.linspace(-1, 1, 12), gate=several.mask * 0.5),
    }


@pytest.mark.parametrize("name", list(odd_steps()))
def test_no_preset_breaks_on_an_odd_record(name: str) -> None:
    step = dataclasses.replace(odd_steps()[name], resume={})
    for preset in PRESETS:
        w = what_if(step, preset)
        assert all(isinstance(sentence, str) for sentence in (*unchanged(w, 0), *notes(w, preset)))
        assert all(math.isfinite(each.other) for each in compared(w, 0) if each.other is not None), preset


# -- sentences ---------------------------------------------------------------------------------------------------------


def test_at_one_pass_no_clip_can_differ() -> None:
    step = lm_step(2)
    w = what_if(step, step.settings.replace({"objective.clip_low": 0.0, "objective.clip_high": 1.0}))
    said = unchanged(w, 0)
    assert "One pass: every ratio is 1, so no clip can differ." in said
    assert "The push on every token is the same." in said
    assert (
        "The advantages are the same: both compare with the group's mean and divide by its standard deviation "
        "(n − 1)." in said
    )
    assert "Every token weighs the same: both take a mean per completion, then over completions." in said


def test_a_cap_below_one_does_clip_at_ratio_one() -> None:
    step = lm_step(2)
    w = what_if(step, step.settings.replace({"objective.surrogate": "cispo", "objective.clip_high": 0.2}))
    assert not any("no clip can" in said for said in unchanged(w, 0))
    assert row(w, "clipped").other == step.mask.sum()


def test_on_a_bandit_two_reductions_agree_and_a_factor_is_called_one() -> None:
    (step,) = bandit({"objective.beta": 0.0}, 1)
    w = what_if(step, step.settings.replace({"objective.reduction": "token"}))
    assert any("all completions have one length" in said for said in unchanged(w, 0))
    assert any("exactly as likely" in said for said in unchanged(w, 0))
    w = what_if(step, step.settings.replace({"objective.std": "none"}))
    factor = 1 / float(np.abs(w.ran.advantage).max()) * float(np.abs(w.other.advantage).max())
    assert f"Every push points the same way and is {factor:.3g} times as large." in unchanged(w, 0)


def test_equal_rewards_push_nothing_under_any_group_baseline() -> None:
    step = dataclasses.replace(lm_step(2, settings=lm_settings(**{"objective.beta": 0.0})), rewards=np.ones(64))
    said = unchanged(what_if(step, "Dr. GRPO"), 0)
    assert any(s.startswith("Every advantage is 0 in both") for s in said)
    assert "No token is pushed in either." in said
    assert direction(*(side.gradient(0) for side in what_if(step, "Dr. GRPO").sides)).cosine is None


# -- the model's answer ------------------------------------------------------------------------------------------------


def test_a_question_and_its_answer_survive_their_line_bit_for_bit() -> None:
    step = lm_step(2)
    question = Replay(step=2, settings=PRESETS["GSPO"].applied_to(step.settings))
    assert question_from_json(question.to_json()) == question
    answer = Replayed(arrays={"logp": step.logp, "mask": step.mask}, measurements={"grad_norm": 0.25})
    again = answer_from_json(question, answer.to_json())
    assert isinstance(again, Replayed) and again.measurements == {"grad_norm": 0.25}
    for name, x in answer.arrays.items():
        assert again.arrays[name].dtype == x.dtype and np.array_equal(again.arrays[name], x)
    for damaged in ('{"arrays": {"weights": []}}', '{"arrays": {"logp": ["O", [1], "AAAAAAAAAAA="]}}', "[]", "{}"):
        with pytest.raises((ValueError, TypeError, LookupError)):
            answer_from_json(question, damaged)


def test_an_answer_makes_the_other_side_whole() -> None:
    step = lm_step(2)
    logp = np.stack([step.old_logp, step.old_logp + np.float32(0.1), step.old_logp + np.float32(0.2)])
    wanted = step.settings.replace({"learner.mu": 2})
    w = what_if(step, wanted, answer=Replayed(arrays={"logp": logp}, measurements={"grad_norm": 0.7}))
    assert w.other.step.scored_after and w.asked and w.other.passes == 2
    assert row(w, "risen", 1).other == pytest.approx(0.2, abs=1e-6)
    assert row(w, "grad_norm").other == 0.7
    np.testing.assert_allclose(w.other.terms(1).ratio[step.mask], np.exp(0.1), rtol=1e-5)
