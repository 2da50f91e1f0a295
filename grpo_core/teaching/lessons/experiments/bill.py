"""Memory of a training setup, compared with PPO's four models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grpo_core import memory
from grpo_core.memory import GIB, Block, Training

FOUR: dict[str, Any] = {"critic": True, "reward_model": True, "reference": True}
"""The models that PPO uses in addition to its policy."""


class Bill:
    """Memory of a training setup, compared with the same setup with all four models of PPO.

    Attributes:
        blocks: the memory of this setup, one block for each item.
        all_four: the memory of the setup with critic, reward model and reference.
    """

    def __init__(self, training: Training) -> None:
        self.training = training
        self.blocks = memory.ledger(training)
        self.all_four = memory.ledger(replace(training, **FOUR))

    def work(self) -> dict[str, dict[str, float]]:
        """Return the operations for one prompt, by worker, for PPO with one completion and for this training."""
        ppo = memory.compute(replace(self.training, **FOUR, generated=1))
        own = memory.compute(self.training)
        return {"PPO, one completion": ppo, "this training": {who: own.get(who, 0.0) for who in ppo}}

    def answers(self) -> dict[str, Callable[[], float]]:
        """Return the numbers that predictions are compared with, by name. Names with “known” exclude estimates."""
        known, four = known_of(self.blocks), known_of(self.all_four)
        ppo, own = (sum(part.values()) for part in self.work().values())
        policy = [block for block in known if block.model == "policy"]
        states = [block for block in policy if block.part == "optimizer states"]
        weights = [block for block in policy if block.part == "weights"]
        cache = [block for block in self.blocks if block.part == "keys and values"]
        return {
            "gib": lambda: memory.total(self.blocks) / GIB,
            "known_gib": lambda: memory.total(known) / GIB,
            "share_of_four": lambda: memory.total(known) / memory.total(four),
            "share_with_estimates": lambda: memory.total(self.blocks) / memory.total(self.all_four),
            "optimizer_share": lambda: memory.total(states) / memory.total(policy),
            "cache_over_weights": lambda: memory.total(cache) / memory.total(weights),
            "estimated_share": lambda: 1 - memory.total(known) / memory.total(self.blocks),
            "work_over_ppo": lambda: own / ppo,
        }


def known_of(blocks: list[Block]) -> list[Block]:
    """Return the blocks that depend only on the settings."""
    return [block for block in blocks if not block.estimate]


BILL_ANSWERS = tuple(Bill(Training()).answers())
"""Names of the numbers in :meth:`Bill.answers`."""
