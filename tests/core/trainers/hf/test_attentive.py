"""An update is cancelled between two layers of a forward or backward pass, and the run stays where it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grpo_core.errors import Cancelled
from tests.core.trainers.hf.test_policy import run, same
from tests.core.trainers.hf.tiny import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_asks_on_the_way_there_and_back(kind: str, folders: dict[str, Path]) -> None:
    learner = run(folders[kind])
    model, asked = learner.policy.model, [0]

    def count() -> None:
        asked[0] += 1

    learner.policy.ask = count
    logits = model(input_ids=torch.tensor([[5, 6, 7]])).logits
    assert asked[0] == 2, "both layers"
    logits.sum().backward()
    assert asked[0] == 4, "and back"


@pytest.mark.quick_cases("1-8", "90-0")
@pytest.mark.parametrize("rank", [8, 0])
@pytest.mark.parametrize("after", [1, 40, 90])
def test_an_update_given_up_within_a_pass_leaves_the_run_as_it_was(
    rank: int, after: int, folders: dict[str, Path]
) -> None:
    given_up, undisturbed = (
        run(folders["llama"], model__adapter_rank=rank, optimizer__learning_rate=1e-3) for _ in range(2)
    )
    go_on, asked = given_up.policy.ask, [0]

    def stop() -> None:
        asked[0] += 1
        if asked[0] == after:
            raise Cancelled("enough")

    given_up.policy.ask = stop
    finished = 0
    try:
        while True:
            next(given_up)
            finished += 1
    except Cancelled:
        assert asked[0] == after
    given_up.policy.ask = go_on
    for _ in range(finished):
        next(undisturbed)
    assert same(next(given_up), next(undisturbed))
