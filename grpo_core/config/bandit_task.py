"""Settings of the tabular policy's task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grpo_core.config.fields import check, setting, structural, structural_variant, variant
from grpo_core.errors import SettingsError
from grpo_core.parsing import is_number
from grpo_core.plugins import table
from grpo_core.text import plural, tr

LARGEST = 1e9
"""Upper bound on the magnitude of a task's numbers, far below the limit of a float."""

LANDSCAPES = ("single_peak", "double_peak", "linear", "custom")
"""One-token tasks whose rewards are given per action. A run can continue if these are replaced by custom rewards."""
LONGER = ("length", "chain")
"""Tasks whose completions have several tokens."""


@dataclass(frozen=True, kw_only=True)
class BanditTask:
    """The task of the tabular policy: its prompts and rewards."""

    landscape: str = structural(
        "single_peak",
        tr("How the reward depends on the action; the length toy and the chain answer with several tokens."),
        tr("Task"),
        choices=(*LANDSCAPES, *LONGER),
        plugins="task",
    )
    actions: int = structural(10, tr("Number of actions."), tr("Actions"), symbol="A", limits=(2, 64), usual=(2, 20))
    peak: float = setting(7.0, tr("Action with the highest reward."), tr("Peak at"), limits=(1, 64), usual=(1, 10))
    half_width: float = variant(
        5.0,
        tr("Distance from a peak at which its reward has fallen to 0."),
        tr("Half-width"),
        above=0,
        high=64,
        usual=(1, 10),
    )
    custom: tuple[float, ...] = setting(
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        tr("Reward of each action of the custom landscape, one number per action."),
        tr("Custom rewards"),
        limits=(-1e9, 1e9),
    )
    levels: tuple[float, ...] = structural_variant(
        (0.0,),
        tr("One number per prompt: a constant added to every reward of that prompt."),
        tr("Prompts' levels"),
        limits=(-1e9, 1e9),
    )
    bias_action: int = structural_variant(
        1,
        tr("Action that the starting policy leans towards."),
        tr("Bias towards"),
        limits=(1, 64),
        usual=(1, 10),
    )
    bias: float = structural_variant(
        0.0,
        tr("Added to that action's logit at the start."),
        tr("Starting bias"),
        limits=(-50, 50),
        usual=(0, 5),
    )
    max_length: int = structural_variant(
        8,
        tr("Maximum length of a completion of the length toy, and number of decisions in the chain."),
        tr("Longest completion"),
        limits=(1, 256),
        usual=(1, 32),
    )

    faulty_action: int | None = variant(
        None,
        tr("Action of the chain for which a faulty checker of steps pays at every decision, right or wrong."),
        tr("Faulty check pays for"),
        limits=(1, 64),
        usual=(1, 10),
        optional=True,
    )
    faulty_reward: float = variant(
        1.0,
        tr("What the faulty checker pays for that action; a right decision is paid 1."),
        tr("Faulty check pays"),
        limits=(-1e9, 1e9),
        usual=(0, 2),
    )

    def __post_init__(self) -> None:
        check(self)
        for name in ("custom", "levels"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        if self.landscape == "custom" and len(self.custom) != self.actions:
            raise SettingsError(
                "custom",
                self.custom,
                plural(
                    "give {actions} reward, one per action", "give {actions} rewards, one per action", self.actions
                ).format(actions=self.actions),
            )
        if self.landscape in LANDSCAPES and self.bias and not self.bias_action <= self.actions:
            raise SettingsError(
                "bias_action",
                self.bias_action,
                plural(
                    "it must be one of the {actions} action", "it must be one of the {actions} actions", self.actions
                ).format(actions=self.actions),
            )
        if not self.levels or len(self.levels) > 64:
            raise SettingsError("levels", self.levels, tr("give 1 to 64 numbers, one per prompt"))

    @property
    def prompts(self) -> int:
        """P, the number of prompts."""
        return len(self.levels)

    @property
    def longest(self) -> int:
        """T, the maximum length of a completion in tokens."""
        if self.landscape in LANDSCAPES:
            return 1
        return int(table("task")[self.landscape].longest(self))


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    if not isinstance(values, (tuple, list)) or not all(map(is_number, values)):
        raise SettingsError(name, str(values), tr("give a list of numbers"))
    if not all(abs(v) <= LARGEST for v in values):
        raise SettingsError(name, values, tr("the numbers must be finite and at most 1e9 in size"))
    return tuple(float(v) for v in values)
