"""The definition of a sweep: settings, their values and the axis of these, the base settings, seeds and updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from grpo_core.assignments import settings_from
from grpo_core.config import Settings
from grpo_core.config.settings import described_at
from grpo_core.config.value_names import worded
from grpo_core.errors import SettingsError
from grpo_core.experiments import language_ensemble
from grpo_core.experiments.ensemble import SIDE_BY_SIDE
from grpo_core.experiments.sweep import BETAS, ESTIMATORS
from grpo_core.parsing import is_number
from grpo_core.text import plural, tr

GAP = 4.0
"""Gap in pixels between two labels."""


def _fits(texts: Sequence[str], width: Callable[[str], float], space: float) -> bool:
    wide = [width(text) for text in texts]
    return all((a + b) / 2 + GAP <= space for a, b in pairwise(wide))


def name(value: object) -> str:
    """Return a short label for the value of a setting."""
    return tr("none", "value") if value is None else worded(value)


def grid_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the distinct values. Numbers are sorted in ascending order."""
    once = dict.fromkeys(values)
    return tuple(sorted(once) if all(map(is_number, once)) else once)


BETA = "objective.beta"
ESTIMATOR = "estimator"
"""Path that stands for the group of settings that define how the KL in the loss is estimated."""
GRIDS: dict[str, tuple[Any, ...]] = {
    BETA: BETAS,
    "objective.clip_high": (0.05, 0.1, 0.2, 0.3, 0.5, 1.0),
    "objective.clip_low": (0.05, 0.1, 0.2, 0.3, 0.5, 0.9),
    "optimizer.learning_rate": (0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0),
    "learner.temperature": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0),
    "learner.group_size": (2, 4, 8, 16, 32),
    "learner.mu": (1, 2, 4, 8),
    "objective.entropy_bonus": (0.0, 0.01, 0.03, 0.1, 0.3),
    "objective.std": ("sample", "population", "batch", "none"),
    "objective.baseline": ("none", "batch_mean", "group_mean", "leave_one_out"),
}
"""Settings that can be swept, with suggested values."""
LANGUAGE_GRIDS: dict[str, tuple[Any, ...]] = {
    BETA: language_ensemble.BETAS,
    "optimizer.learning_rate": (0.00003, 0.0001, 0.0003, 0.001),
}
"""Other suggestions for the language model."""
IN_WORDS = {ESTIMATOR: "KL", "objective.entropy_bonus": tr("entropy bonus")}
"""Path of a setting without a symbol -> its name within a sentence."""
MOST_PLACES, MOST_RUNS, MOST_UPDATES = 400, 65_536, 10_000


@dataclass(frozen=True, kw_only=True)
class Swept:
    """A swept setting and its values, which are at positions 0, 1, ..., n - 1 of a grid. Numbers are sorted; words keep
    their order.
    """

    path: str
    values: tuple[Any, ...]

    @classmethod
    def of(cls, path: str, *, language: bool = False) -> Swept:
        """Return the setting ``path`` with its suggested values. ``language``: whether the language model is swept."""
        grids = GRIDS | LANGUAGE_GRIDS if language else GRIDS
        return cls(path=path, values=tuple(ESTIMATORS) if path == ESTIMATOR else grids[path])

    @property
    def title(self) -> str:
        return title_of(self.path)

    @property
    def symbol(self) -> str:
        """The setting's symbol or, if it has none, its name within a sentence."""
        return IN_WORDS[self.path] if self.path in IN_WORDS else described_at(self.path).symbol

    @property
    def label(self) -> str:
        """Name and symbol, for an axis."""
        return self.title if self.path in IN_WORDS else f"{self.title} {self.symbol}"

    @property
    def text(self) -> str:
        """The values separated by commas, as typed."""
        return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in self.values)

    def named(self, value: Any) -> str:
        """Return the symbol with a value, such as “β 0.1”."""
        return f"{self.symbol} {name(value)}"

    def changes(self, value: Any) -> dict[str, Any]:
        """Return the changes to the settings after which the swept setting has this ``value``."""
        return {"objective.kl_in": "loss", **ESTIMATORS[value]} if self.path == ESTIMATOR else {self.path: value}

    def with_text(self, text: str) -> Swept:
        """Return this setting with the values typed in ``text``, which are separated by commas or spaces.

        Raises:
            SettingsError: a value is not allowed, or there are none or too many.
        """
        words = text.replace(",", " ").replace(";", " ").split()
        if self.path == ESTIMATOR:
            known = {key.replace(" ", ""): key for key in ESTIMATORS}
            words = text.replace(";", ",").split(",")
            unknown = [word for word in words if word.replace(" ", "") not in known]
            if unknown:
                raise SettingsError(
                    tr("KL estimator"),
                    unknown[0].strip(),
                    tr("choose from {estimators}").format(estimators=", ".join(ESTIMATORS)),
                )
            values: list[Any] = [known[word.replace(" ", "")] for word in words]
        else:
            values = [settings_from(None, [f"{self.path}={word}"]).get(self.path) for word in words]
        if not values:
            raise SettingsError(self.title, text, tr("give at least one value, such as 0, 0.1, 1"))
        return Swept(path=self.path, values=grid_of(values))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, in which case there are further values between two neighbours."""
        return all(map(is_number, self.values))

    def at(self, values: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Return the positions (n,) of ``values`` (n,). NaN outside the grid."""
        if not self.numeric:
            return np.array([self.values.index(v) if v in self.values else np.nan for v in values], dtype=float)
        grid = np.array(self.values, dtype=float)
        places = np.interp(np.asarray(values, dtype=float), grid, np.arange(len(grid)), left=np.nan, right=np.nan)
        return np.asarray(places)

    def nearest(self, x: float) -> int:
        """Return the index of the value nearest to position ``x``."""
        return min(max(round(x), 0), len(self.values) - 1)

    def value(self, x: float) -> Any:
        """Return the value at position ``x``.

        Between two grid values it is rounded to three digits, or to an integer.
        """
        near = self.nearest(x)
        if not self.numeric or abs(x - near) < 1e-9:
            return self.values[near]
        found = float(np.interp(x, np.arange(len(self.values)), np.array(self.values, dtype=float)))
        whole = all(isinstance(value, int) for value in self.values)
        return round(found) if whole else float(f"{found:.3g}")

    def labels(self, width: Callable[[str], float], space: float) -> list[tuple[float, str]]:
        """Return (position, label) of every value, given ``space`` pixels per interval.

        If the labels do not fit on one line, every other one is moved to a second line, and if necessary leading zeros
        are dropped. If the labels are still too wide, some are omitted, but never the first.
        """
        full = [name(value) for value in self.values]
        short = [text.removeprefix("0") if text.startswith("0.") else text for text in full]
        for texts, lines in ((full, 1), (full, 2), (short, 2)):
            if all(_fits(texts[line::lines], width, lines * space) for line in range(lines)):
                lowered = ["\n" * (place % lines) + text for place, text in enumerate(texts)]
                return list(zip(np.arange(len(texts), dtype=float).tolist(), lowered, strict=True))
        texts = short
        kept: list[tuple[float, str]] = []
        end = -np.inf
        for place, text in enumerate(texts):
            half = width(text) / 2
            if place * space - half >= end:
                kept.append((float(place), text))
                end = place * space + half + GAP
        return kept


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Definition of a sweep. Equal definitions lead to equal numbers.

    Attributes:
        over: the setting along the axis.
        across: a second swept setting, or None.
        seeds: S; the seeds are 0 to S - 1.
        updates: U, the updates of every run.
    """

    base: Settings
    over: Swept
    across: Swept | None = None
    seeds: int = 64
    updates: int = 200

    def __post_init__(self) -> None:
        """Give the swept settings and the seed in ``base`` fixed values, so that they do not affect comparisons."""
        first = {"seed": 0, **self.over.changes(self.over.values[0])}
        if self.across is not None:
            if self.across.path == self.over.path:
                raise SettingsError(self.over.title, "twice", tr("choose two different settings"))
            first |= self.across.changes(self.across.values[0])
        object.__setattr__(self, "base", self.base.replace(first))
        if not 1 <= self.updates <= MOST_UPDATES:
            raise SettingsError(
                "updates", self.updates, tr("allowed is 1 to {most_updates:,}").format(most_updates=MOST_UPDATES)
            )
        if len(self.keys) > MOST_PLACES or len(self.keys) * self.seeds > MOST_RUNS:
            raise SettingsError(
                "sweep",
                f"{len(self.keys):,} places",
                plural(
                    "choose fewer values or seeds: at most {most_places} place",
                    "choose fewer values or seeds: at most {most_places} places",
                    MOST_PLACES,
                ).format(most_places=MOST_PLACES),
            )

    @property
    def rows(self) -> tuple[Any, ...]:
        """Values of the second setting. If there is none, the only entry is None."""
        return self.across.values if self.across is not None else (None,)

    @property
    def keys(self) -> list[tuple[int, int]]:
        """(position, row) of every point, in the order of computation.

        The order matters for speed: :func:`ensembles` computes neighbours in one call if they differ only in
        settings that allow it.
        """
        columns, rows = range(len(self.over.values)), range(len(self.rows))
        if self.over.path in SIDE_BY_SIDE or self.across is None or self.across.path not in SIDE_BY_SIDE:
            return [(i, j) for j, i in product(rows, columns)]
        return list(product(columns, rows))

    def at(self, value: Any, row: int = 0) -> Settings:
        """Return the settings for any value of the first setting.

        Raises:
            SettingsError: the two values are incompatible.
        """
        changes = self.over.changes(value)
        if self.across is not None:
            changes |= self.across.changes(self.across.values[row])
        return self.base.replace(changes)

    def points(self) -> list[Settings]:
        """Return the settings of every point, in the order of ``keys``."""
        return [self.at(self.over.values[place], row) for place, row in self.keys]


def title_of(path: str) -> str:
    """Return the displayed name of a setting."""
    return tr("KL estimator") if path == ESTIMATOR else described_at(path).title


def choices(first: str | None = None) -> Sequence[str]:
    """Return the paths that can be swept.

    If the path of the first setting is given, return those for a second one, which include the KL estimator.
    """
    return list(GRIDS) if first is None else [ESTIMATOR, *(path for path in GRIDS if path != first)]
