"""The ledger of a real model: its tensors, counted, compared with the calculated memory."""

from __future__ import annotations

import pytest

from grpo_core.config import language_settings
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.interface import TORCH
from grpo_core.lm.learner import LanguageLearner
from grpo_core.lm.numpy_engine.weights import parameters
from grpo_core.memory import Training, ledger, total


def test_the_tensors_of_a_model_after_an_update_are_what_the_ledger_predicts() -> None:
    settings = language_settings().replace({"learner.group_size": 2, "task.prompts": 1})
    training = LanguageLearner(settings, make_policy=ENGINES[TORCH])
    fresh = training.policy.ledger()["blocks"]
    assert {(block.model, block.part) for block in fresh} == {
        ("policy", "weights"),
        ("policy", "gradients"),
        ("reference", "weights"),
    }
    next(training)
    after = training.policy.ledger()
    blocks = {(block.model, block.part): block for block in after["blocks"]}
    count = parameters(settings.model)
    bill = Training(parameters=count, weight_bytes=4, gradient_bytes=4, optimizer="adamw", generated=0)
    for block in ledger(bill):
        if block.estimate:
            continue
        found = blocks[block.model, block.part]
        tensors = 4 * 200  # Adam counts its steps in one more number a tensor
        assert block.bytes <= found.bytes <= block.bytes + tensors, block
    assert total(list(blocks.values())) == pytest.approx(20 * count, rel=0.01)
    assert f"{count:,} numbers of float32" in blocks["policy", "weights"].formula
    assert after["allocated"] is None, "on the CPU torch keeps no count"
