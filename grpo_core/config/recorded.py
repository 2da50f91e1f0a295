"""Facts about a run trained by another program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from grpo_core.config.fields import check, structural
from grpo_core.errors import SettingsError
from grpo_core.parsing import ParseError, from_json
from grpo_core.text import tr

fact = partial(structural, since="0.2.0")
"""Return the field of something that the other program recorded."""


@dataclass(frozen=True, kw_only=True)
class RecordedTask:
    """A run trained and recorded by another program, which can be viewed and recomputed but not continued.

    The seed of such a run is unknown; ``Settings.seed`` is meaningless for it.
    """

    source: str = fact("", tr("The program that trained the run, with its version."), tr("Trained by"))
    reward_names: tuple[str, ...] = fact((), tr("The reward functions."), tr("Rewards"))
    reward_weights: tuple[float, ...] = fact(
        (), tr("Weight of each reward function in the reward."), tr("Reward weights")
    )
    eos_ids: tuple[int, ...] = fact((), tr("Token numbers that end a completion."), tr("End tokens"))
    max_tokens: int | None = fact(
        None,
        tr("The trainer's limit on a completion."),
        tr("Longest completion"),
        unit=tr("tokens"),
        limits=(1, 10**9),
        optional=True,
    )
    trainer_settings: str = fact("", tr("The trainer's own settings, as JSON."), tr("The trainer's settings"))

    def __post_init__(self) -> None:
        check(self)
        if self.reward_weights and len(self.reward_weights) != len(self.reward_names):
            raise SettingsError(
                "reward_weights", self.reward_weights, tr("there must be one weight for each reward function")
            )

    @property
    def longest(self) -> int | None:
        """T, the maximum length of a completion in tokens. None if unknown."""
        return self.max_tokens

    @property
    def names_loss(self) -> bool:
        """Whether the source records the settings of the loss. Otherwise the objective is assumed."""
        return bool(self.trainer_settings)

    @property
    def trainer_values(self) -> dict[str, Any]:
        """The trainer's own settings, by the trainer's names. Empty if the source does not record any."""
        try:
            values = from_json(self.trainer_settings or "{}")
        except ParseError:
            return {}
        return values if isinstance(values, dict) else {}
