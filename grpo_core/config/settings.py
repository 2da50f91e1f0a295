"""Everything a run needs, as one frozen object that goes to JSON and back."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from grpo_core.config.fields import about, check, setting
from grpo_core.config.objective import Objective
from grpo_core.errors import SettingsError

LARGEST = 1e9
"""No number of a task is larger in size; far below where a float overflows."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """How a batch is sampled and how often it is learned from."""

    group_size: int = setting(
        8, "Completions sampled for each prompt.", "Group size", symbol="G", low=1, high=4096, usual=(1, 64)
    )
    mu: int = setting(
        4,
        "Passes over the same samples before new ones are drawn; at one pass every ratio is 1 and nothing is clipped.",
        "Inner passes",
        symbol="μ",
        low=1,
        high=64,
        usual=(1, 16),
    )
    temperature: float = setting(
        1.0,
        "Divides the logits in sampling and scoring alike; above 1 samples spread, below 1 they concentrate.",
        "Temperature",
        symbol="T",
        low=0.01,
        high=100,
        usual=(0.1, 4),
        logarithmic=True,
    )
    resample_dead: bool = setting(
        False, "Groups whose rewards are all equal are drawn again, up to ten times (DAPO).", "Resample dead groups"
    )
    critic: bool = setting(
        False, "Learns one value a prompt and state, which serves as the baseline “given” (PPO).", "Learned critic"
    )
    critic_rate: float = setting(
        0.1, "Step size of the critic's own update.", "Critic rate", low=0, high=10, usual=(0.001, 1), logarithmic=True
    )
    gamma: float = setting(1.0, "Discount from one token to the next.", "Discount", symbol="γ", low=0, high=1)
    lam: float = setting(
        0.95,
        "How far the critic's estimate looks ahead: 0 one token, 1 to the end (GAE).",
        "GAE λ",
        symbol="λ",
        low=0,
        high=1,
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """How a gradient becomes a change of the parameters."""

    kind: str = setting("sgd", "Plain gradient step, or Adam (arXiv:1412.6980).", "Optimizer", choices=("sgd", "adam"))
    learning_rate: float = setting(
        0.3,
        "Length of one step along the negative gradient.",
        "Learning rate",
        symbol="α",
        low=0,
        high=1e3,
        usual=(1e-3, 10),
        logarithmic=True,
    )
    adam_beta1: float = setting(
        0.9, "How long Adam remembers the gradient.", "Adam β₁", symbol="β₁", low=0, high=0.999999, usual=(0, 0.99)
    )
    adam_beta2: float = setting(
        0.999, "How long Adam remembers its square.", "Adam β₂", symbol="β₂", low=0, high=0.999999, usual=(0.9, 0.9999)
    )
    adam_epsilon: float = setting(
        1e-8,
        "Keeps Adam's division finite.",
        "Adam ε",
        low=0,
        above=True,
        high=1,
        usual=(1e-10, 1e-4),
        logarithmic=True,
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class BanditTask:
    """What the tabular policy is asked, and what it is paid."""

    landscape: str = setting(
        "single_peak",
        "How reward depends on the action; the length toy and the chain answer with several tokens.",
        "Task",
        choices=("single_peak", "double_peak", "linear", "custom", "length", "chain"),
        live=False,
    )
    actions: int = setting(10, "Number of actions.", "Actions", symbol="A", low=2, high=64, usual=(2, 20), live=False)
    peak: float = setting(7.0, "Action with the highest reward.", "Peak at", low=1, high=64, usual=(1, 10))
    half_width: float = setting(
        5.0,
        "Distance from a peak at which its reward has fallen to 0.",
        "Half-width",
        low=0,
        above=True,
        high=64,
        usual=(1, 10),
    )
    custom: tuple[float, ...] = setting(
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        "Reward of each action of the custom landscape, one number an action.",
        "Custom rewards",
        low=-1e9,
        high=1e9,
    )
    levels: tuple[float, ...] = setting(
        (0.0,),
        "One entry a prompt: a constant added to every reward of that prompt.",
        "Prompts' levels",
        low=-1e9,
        high=1e9,
        live=False,
    )
    bias_action: int = setting(
        1, "Action that the starting policy leans towards.", "Bias towards", low=1, high=64, usual=(1, 10), live=False
    )
    bias: float = setting(
        0.0, "Added to that action's logit at the start.", "Starting bias", low=-50, high=50, usual=(0, 5), live=False
    )
    max_length: int = setting(
        8,
        "Longest completion of the length toy, and number of decisions in the chain.",
        "Longest completion",
        low=1,
        high=256,
        usual=(1, 32),
        live=False,
    )

    def __post_init__(self) -> None:
        check(self)
        for name in ("custom", "levels"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        if self.landscape == "custom" and len(self.custom) != self.actions:
            raise SettingsError("custom", self.custom, f"give {self.actions} rewards, one an action")
        if self.landscape not in ("length", "chain") and self.bias and not self.bias_action <= self.actions:
            raise SettingsError("bias_action", self.bias_action, f"allowed is one of the {self.actions} actions")
        if not self.levels or len(self.levels) > 64:
            raise SettingsError("levels", self.levels, "give 1 to 64 numbers, one a prompt")

    @property
    def prompts(self) -> int:
        """P, the number of prompts."""
        return len(self.levels)

    @property
    def longest(self) -> int:
        """T, the longest completion in tokens."""
        return self.max_length if self.landscape in ("length", "chain") else 1


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A whole run: what is minimised, how it is sampled and stepped, on which task, from which seed."""

    objective: Objective = field(default_factory=Objective)
    learner: Learner = field(default_factory=Learner)
    optimizer: Optimizer = field(default_factory=Optimizer)
    task: BanditTask = field(default_factory=BanditTask)
    seed: int = setting(
        7, "Fixes every random number of the run.", "Seed", low=0, high=2**63 - 1, usual=(0, 100), live=False
    )

    def __post_init__(self) -> None:
        check(self)
        if self.objective.baseline == "given" and not self.learner.critic:
            raise SettingsError("objective.baseline", "given", "this baseline is the critic's; switch the critic on")

    def get(self, path: str) -> Any:
        """The value at a dotted path such as ``objective.beta``."""
        value: Any = self
        for part in path.split("."):
            value = getattr(value, part)
        return value

    def replace(self, changes: dict[str, Any]) -> Settings:
        """A copy in which each dotted path holds its new value; all are changed together, then checked.

        Raises:
            SettingsError: naming the dotted path.
        """
        parts: dict[str, dict[str, Any]] = {}
        top: dict[str, Any] = {}
        known = flat(self).keys() | {part.name for part in dataclasses.fields(self)}
        for path, value in changes.items():
            if path not in known:
                raise SettingsError(path, value, "there is no such setting")
            outer, _, inner = path.rpartition(".")
            if outer:
                parts.setdefault(outer, {})[inner] = value
            else:
                top[path] = value
        for outer, inner_changes in parts.items():
            try:
                top[outer] = dataclasses.replace(top.get(outer, getattr(self, outer)), **inner_changes)
            except SettingsError as error:
                raise error.within(outer) from None
        return dataclasses.replace(self, **top)

    def differences(self, other: Settings) -> dict[str, tuple[Any, Any]]:
        """Dotted path -> (value here, value there), for all that differ."""
        mine, theirs = flat(self), flat(other)
        return {path: (value, theirs[path]) for path, value in mine.items() if value != theirs[path]}

    def refuse_structural(self, wanted: Settings) -> None:
        """Nothing, if a run under these settings can go on under ``wanted``.

        Raises:
            SettingsError: naming the first structural setting that differs.
        """
        for path, (now, then) in self.differences(wanted).items():
            if not is_live(path):
                raise SettingsError(path, then, f"this run was started with {now}; start a new run to change it")

    def to_json(self) -> str:
        """One line of JSON with every field; :func:`grpo_core.config.settings_from_json` reads it back."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)


def is_live(path: str) -> bool:
    """Whether a change at a dotted path acts at the next update; a structural one needs a new run."""
    part, _, name = path.rpartition(".")
    owner = type(getattr(Settings(), part)) if part else Settings
    return about(owner, name).live


def flat(settings: Settings) -> dict[str, Any]:
    """Every leaf of ``settings`` by its dotted path."""
    leaves: dict[str, Any] = {}
    for part in dataclasses.fields(settings):
        value = getattr(settings, part.name)
        if dataclasses.is_dataclass(value):
            leaves |= {f"{part.name}.{leaf.name}": getattr(value, leaf.name) for leaf in dataclasses.fields(value)}
        else:
            leaves[part.name] = value
    return leaves


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    if not isinstance(values, (tuple, list)) or not all(_is_number(v) for v in values):
        raise SettingsError(name, str(values), "give a list of numbers")
    if not all(abs(v) <= LARGEST for v in values):
        raise SettingsError(name, values, "allowed are finite numbers up to 1e9 in size")
    return tuple(float(v) for v in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
