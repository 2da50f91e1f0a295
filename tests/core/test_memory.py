"""The memory ledger, on numbers that a reader can check by hand."""

from __future__ import annotations

import dataclasses

import pytest

from grpo_core.errors import SettingsError
from grpo_core.memory import Block, Training, compute, ledger, shape, total

BARE = Training(parameters=1e9, reference=False, generated=0)


def of(blocks: list[Block], model: str, part: str) -> float:
    return sum(block.bytes for block in blocks if (block.model, block.part) == (model, part))


def without_estimates(training: Training) -> float:
    return total([block for block in ledger(training) if not block.estimate])


def test_adamw_in_mixed_precision_takes_sixteen_bytes_a_parameter() -> None:
    assert without_estimates(BARE) == 16e9
    assert of(ledger(BARE), "policy", "optimizer states") == 12e9


def test_without_critic_and_reward_model_the_bill_halves() -> None:
    grpo = dataclasses.replace(BARE, reference=True)
    ppo = dataclasses.replace(grpo, critic=True, reward_model=True)
    assert without_estimates(grpo) == 18e9
    assert without_estimates(ppo) == 36e9


def test_frozen_models_have_weights_alone() -> None:
    blocks = ledger(dataclasses.replace(BARE, reference=True, reward_model=True))
    assert {block.part for block in blocks if block.model in ("reference", "reward model")} == {"weights"}


def test_lora_saves_gradients_and_states_but_not_weights() -> None:
    blocks = ledger(dataclasses.replace(BARE, trained_share=0.005))
    assert of(blocks, "policy", "weights") == 2e9
    assert of(blocks, "policy", "gradients") + of(blocks, "policy", "optimizer states") == pytest.approx(14e9 * 0.005)


def test_seven_billion_parameters_are_about_4096_wide_and_32_deep() -> None:
    width, depth = shape(6.5e9)
    assert width == pytest.approx(4096, rel=0.01) and depth == pytest.approx(32, rel=0.01)
    assert 12 * depth * width**2 == pytest.approx(6.5e9)


def test_estimates_are_marked_and_follow_their_formula() -> None:
    training = Training(parameters=6.5e9, tokens=1000, generated=10, length=100)
    marked = {block.part: block.bytes for block in ledger(training) if block.estimate}
    width, depth = shape(6.5e9)
    assert marked == {"activations": 2 * width * depth * 1000, "keys and values": 2 * width * depth * 2 * 10 * 100}
    stored = dataclasses.replace(training, recompute=False)
    assert of(ledger(stored), "policy", "activations") == pytest.approx(17 * marked["activations"])


def test_a_critic_of_the_policys_size_costs_as_much_as_four_more_samplings() -> None:
    alone = compute(BARE)
    valued = compute(dataclasses.replace(BARE, critic=True))
    assert valued["critic"] == 4 * alone["sampling"]
    assert valued["policy's update"] == 3 * alone["sampling"]


def test_twice_the_group_is_twice_the_work() -> None:
    few, many = (compute(dataclasses.replace(BARE, generated=g)) for g in (8, 16))
    assert all(many[name] == 2 * few[name] for name in few)


@pytest.mark.parametrize("change", [{"parameters": 0}, {"optimizer": "lion"}, {"trained_share": 0}, {"tokens": 0.5}])
def test_what_cannot_be_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        dataclasses.replace(BARE, **change)  # type: ignore[arg-type]
