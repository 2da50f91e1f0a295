"""The claim of a guided run whose reward can be gamed: right answers, reward and “=” signs, then and now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from grpo_core.claims.claim import Claim
from grpo_core.record import Step
from grpo_core.text import tr

Ends = tuple[Step, Step]
"""Two updates of a run, or twice the same one, before which the held-out prompts were answered."""


@dataclass(frozen=True, kw_only=True)
class State:
    """Measurements of one update.

    Attributes:
        greedy, sampled: shares of the held-out prompts that were answered right before it, by the likeliest tokens and
            by one sample each.
        reward: mean reward of its completions.
        signs: mean number of “=” in its completions.
    """

    step: int
    greedy: float
    sampled: float
    reward: float
    signs: float

    @classmethod
    def of(cls, step: Step) -> Self:
        """Read the state of an update of the program's own language model."""
        greedy, sampled = (step.measurements[f"accuracy_{how}"] for how in ("greedy", "sampled"))
        reward = float(step.rewards.mean())
        return cls(step=step.step, greedy=greedy, sampled=sampled, reward=reward, signs=signs_in(step))

    @property
    def shown(self) -> dict[str, str]:
        formats = {"step": ",", "greedy": ".0%", "sampled": ".0%", "reward": ".2f", "signs": ".2f"}
        return {name: format(getattr(self, name), spec) for name, spec in formats.items()}


def signs_in(step: Step) -> float:
    """Return the mean number of “=” in the completions of an update, the third part of its rewards."""
    assert step.reward_parts is not None
    return float(step.reward_parts[:, 2].mean())


@dataclass(frozen=True, kw_only=True)
class Answered(Claim[Ends]):
    """Claims the state of two updates, or of a single one if both are the same."""

    then: State
    now: State

    def check(self, data: Ends) -> bool:
        return (self.then, self.now) == tuple(State.of(step) for step in data)

    def words(self) -> str:
        then, now = self.then.shown, self.now.shown
        pattern = tr(
            "Update {step}: held-out sums answered right, greedily {greedy}, sampled {sampled}; mean reward {reward}, "
            "“=” per answer {signs}."
        )
        alone = self.then == self.now
        return pattern.format(**now if alone else {name: f"{then[name]} → {now[name]}" for name in now})
