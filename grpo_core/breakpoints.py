"""Breakpoints: a run stops at the update at which a condition on one of its series becomes true.

The values are those of :func:`grpo_core.metrics.metrics`. A condition stops a run where it becomes true, not for as
long as it is true, so that the run can go on from there. A number of an update that is not finite stops every run
without being asked for (:class:`grpo_core.errors.NonFiniteError`).
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from grpo_core.errors import SettingsError
from grpo_core.metrics import METRICS
from grpo_core.text import tr

RELATIONS: dict[str, str] = {
    "above": tr("rises above"),
    "below": tr("falls below"),
    "first": tr("≠ 0 for the first time"),
}
"""What may be asked of a series, in words. “first” needs no value."""
SIGNS = {"above": ">", "below": "<", "first": "!="}
_TRUE: dict[str, Callable[[Any, Any], Any]] = {"above": operator.gt, "below": operator.lt, "first": operator.ne}


@dataclass(frozen=True, kw_only=True)
class Breakpoint:
    """A condition on a series.

    Attributes:
        series: its name in ``METRICS``.
        relation: “above”, “below”, or “first” (not 0 for the first time in the run).
        value: what the series is held against; 0 with “first”.
        on: whether it stops runs.

    Raises:
        SettingsError: there is no such series or relation, or the value is not a finite number.
    """

    series: str
    relation: str = "above"
    value: float = 0.0
    on: bool = True

    def __post_init__(self) -> None:
        if self.series not in tuple(METRICS):  # whatever a file held: a list cannot be looked up
            raise SettingsError("series", self.series, _no_such_series(self.series))
        if self.relation not in tuple(RELATIONS):
            raise SettingsError(
                "relation", self.relation, tr("allowed is one of {relations}").format(relations=", ".join(RELATIONS))
            )
        value: object = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise SettingsError("value", self.value, tr("allowed is any finite number"))
        if self.relation == "first" and self.value != 0:
            raise SettingsError("value", self.value, tr("“first” asks where a series is not 0; leave the value at 0"))
        if not isinstance(self.on, bool):
            raise SettingsError("on", self.on, tr("allowed is true or false"))

    @property
    def text(self) -> str:
        """The condition as it is typed, such as ``entropy<1``. :func:`breakpoint_from_text` reads it back."""
        return f"{self.series}{SIGNS[self.relation]}{self.value:.17g}"

    @property
    def words(self) -> str:
        """The condition in words, such as “entropy falls below 1”."""
        against = "" if self.relation == "first" else f" {self.value:.6g}".replace("-", "−")
        return f"{name_of(self.series)} {RELATIONS[self.relation]}{against}"

    @property
    def title(self) -> str:
        """The condition where room is short, such as “Entropy below 1”."""
        return f"{METRICS[self.series].title} {'first ≠ 0' if self.relation == 'first' else self._side}"

    def holds(self, value: float) -> bool:
        """Whether the condition is true of ``value``, which was measured."""
        return bool(_TRUE[self.relation](value, self.value))

    def became(self, values: np.ndarray, before: bool = False) -> tuple[np.ndarray, bool]:
        """Places in a series at which the condition becomes true.

        A value that was not measured (NaN) changes nothing.

        Args:
            values: the series or a part of it, (N,).
            before: what the same call said of the part before it.

        Returns:
            (indices into ``values``, what to call the next part with).
        """
        known = np.flatnonzero(~np.isnan(values))
        is_true = np.concatenate([[before], _TRUE[self.relation](values[known], self.value)])
        if self.relation == "first":
            is_true = np.logical_or.accumulate(is_true)
        return known[is_true[1:] & ~is_true[:-1]], bool(is_true[-1])

    def at(self, value: float) -> str:
        """The sentence for a ``value`` that has made it true, such as “entropy 0.998 nats, below 1”."""
        unit = METRICS[self.series].unit
        shown = f"{name_of(self.series)} {self._shown(value)}{f' {unit}' * bool(unit)}".replace("-", "−")
        return f"{shown}, {'not 0 for the first time' if self.relation == 'first' else self._side}"

    @property
    def _side(self) -> str:
        return f"{self.relation} {self.value:.6g}".replace("-", "−")

    def _shown(self, value: float) -> str:
        """``value`` with as few digits as still keep the condition true."""
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        texts = [f"{value:.{digits}g}" for digits in (3, 6, 17)]
        return next((text for text in texts if self.holds(float(text))), texts[-1])


class Watch:
    """Says at each update of a run which of its breakpoints it has reached.

    Args:
        breakpoints: those that are on are watched.
        past: name of a series -> its values so far, (updates,).
    """

    def __init__(self, breakpoints: Iterable[Breakpoint], past: Callable[[str], np.ndarray]) -> None:
        self._held = {one: one.became(past(one.series))[1] for one in breakpoints if one.on}

    def reached(self, values: Mapping[str, float]) -> tuple[Breakpoint, ...]:
        """The breakpoints whose conditions become true with the next update.

        Args:
            values: its metrics.
        """
        reached = []
        for one, before in self._held.items():
            value = values[one.series]
            if math.isnan(value):
                continue
            now = one.holds(value)
            if now and not before:
                reached.append(one)
            self._held[one] = now or (before and one.relation == "first")
        return tuple(reached)


def nothing_before(name: str) -> np.ndarray:
    """The past of a run at update 0."""
    return np.empty(0)


def sentence(step: int, reached: Sequence[Breakpoint], values: Mapping[str, float]) -> str:
    """The reason why a run is at update ``step``, such as “Update 37: max π(a) 0.912, above 0.9.”"""
    return tr("Update {step}: {values}.").format(
        step=step, values="; ".join(one.at(values[one.series]) for one in reached)
    )


def name_of(series: str) -> str:
    """The title of a series as it stands inside a sentence."""
    title = METRICS[series].title
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def breakpoint_from_text(text: str) -> Breakpoint:
    """A breakpoint as it is typed: ``entropy<1.0``, ``max_prob>0.9``, or ``clip_fraction!=0`` for the first clip.

    Raises:
        SettingsError: it cannot be read; the message says what would be right.
    """
    parts = re.fullmatch(r"\s*(\w+)\s*(>|<|!=)\s*(\S+)\s*", text)
    if parts is None:
        raise SettingsError(
            "--stop-when", text, tr("write a condition such as entropy<1.0, max_prob>0.9 or dead_groups!=0")
        )
    series, sign, number = parts.groups()
    try:
        value = float(number)
    except ValueError:
        raise SettingsError("condition", text, tr("“{number}” is not a number").format(number=number)) from None
    relation = next(name for name, known in SIGNS.items() if known == sign)
    return Breakpoint(series=series, relation=relation, value=value)


def breakpoint_from_json(stored: Any) -> Breakpoint:
    """A breakpoint from what ``dataclasses.asdict`` made of one, by way of JSON.

    Raises:
        SettingsError: it is none.
    """
    names = {field.name for field in fields(Breakpoint)}
    if not isinstance(stored, dict) or not {"series"} <= stored.keys() <= names:
        raise SettingsError(
            "breakpoint", str(stored), tr("allowed is an object with {names}").format(names=", ".join(sorted(names)))
        )
    return Breakpoint(**stored)


def _no_such_series(series: object) -> str:
    """The sentence on a name that is no metric's: the names that may have been meant, or all of them."""
    near = difflib.get_close_matches(str(series), METRICS, n=3)
    if near:
        return tr("there is no such series; close to it are {near}").format(near=", ".join(near))
    return tr("there is no such series; there are {metrics}").format(metrics=", ".join(METRICS))
