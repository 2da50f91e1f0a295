"""Breakpoints, which stop a run at the update where a condition on one of its series becomes true.

The values are those of :func:`grpo_core.metrics.metrics`. A condition stops a run when it becomes true, not for as long
as it is true, so that the run can continue from there. A non-finite number in an update stops every run, without any
breakpoint (:class:`grpo_core.errors.NonFiniteError`).
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
"""Relations between a series and a value, in words. “first” does not need a value."""
SIGNS = {"above": ">", "below": "<", "first": "!="}
_TRUE: dict[str, Callable[[Any, Any], Any]] = {"above": operator.gt, "below": operator.lt, "first": operator.ne}


@dataclass(frozen=True, kw_only=True)
class Breakpoint:
    """A condition on a series.

    Attributes:
        series: its name in ``METRICS``.
        relation: “above”, “below”, or “first” (not 0 for the first time in the run).
        value: the value that the series is compared with; 0 with “first”.

    Raises:
        SettingsError: there is no such series or relation, or the value is not a finite number.
    """

    series: str
    relation: str = "above"
    value: float = 0.0
    on: bool = True

    def __post_init__(self) -> None:
        if self.series not in tuple(METRICS):  # a file can contain anything: a list cannot be looked up
            raise SettingsError("series", self.series, _no_such_series(self.series))
        if self.relation not in tuple(RELATIONS):
            raise SettingsError(
                "relation", self.relation, tr("it must be one of {relations}").format(relations=", ".join(RELATIONS))
            )
        value: object = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise SettingsError("value", self.value, tr("it must be a finite number"))
        if self.relation == "first" and self.value != 0:
            raise SettingsError(
                "value",
                self.value,
                tr("“first” finds the first update at which a series is not 0; leave the value at 0"),
            )
        if not isinstance(self.on, bool):
            raise SettingsError("on", self.on, tr("it must be true or false"))

    @property
    def text(self) -> str:
        """The condition as text, such as ``entropy<1``, which :func:`breakpoint_from_text` parses."""
        return f"{self.series}{SIGNS[self.relation]}{self.value:.17g}"

    @property
    def words(self) -> str:
        """The condition in words, such as “entropy falls below 1”."""
        return {
            "above": tr("{series} rises above {value}"),
            "below": tr("{series} falls below {value}"),
            "first": tr("{series} ≠ 0 for the first time"),
        }[self.relation].format(series=name_of(self.series), value=self._value)

    @property
    def title(self) -> str:
        """Short title of the condition, such as “Entropy below 1”."""
        return {
            "above": tr("{series} above {value}"),
            "below": tr("{series} below {value}"),
            "first": tr("{series} first ≠ 0"),
        }[self.relation].format(series=METRICS[self.series].title, value=self._value)

    def holds(self, value: float) -> bool:
        """Return whether the condition is true of ``value``, which must not be NaN."""
        return bool(_TRUE[self.relation](value, self.value))

    def became(self, values: np.ndarray, before: bool = False) -> tuple[np.ndarray, bool]:
        """Find the positions in a series at which the condition becomes true.

        A value that was not measured (NaN) changes nothing.

        Args:
            values: the series or a part of it, (N,).
            before: the state that the call for the preceding part returned.

        Returns:
            (indices into ``values``, state to pass with the next part).
        """
        known = np.flatnonzero(~np.isnan(values))
        is_true = np.concatenate([[before], _TRUE[self.relation](values[known], self.value)])
        if self.relation == "first":
            is_true = np.logical_or.accumulate(is_true)
        return known[is_true[1:] & ~is_true[:-1]], bool(is_true[-1])

    def at(self, value: float) -> str:
        """Describe a ``value`` that has made the condition true, such as “entropy 0.998 nats, below 1”."""
        unit = METRICS[self.series].unit
        shown = f"{name_of(self.series)} {self._shown(value)}{f' {unit}' * bool(unit)}".replace("-", "−")
        return {
            "above": tr("{shown}, above {value}"),
            "below": tr("{shown}, below {value}"),
            "first": tr("{shown}, not 0 for the first time"),
        }[self.relation].format(shown=shown, value=self._value)

    @property
    def _value(self) -> str:
        return f"{self.value:.6g}".replace("-", "−")

    def _shown(self, value: float) -> str:
        """Round ``value`` to as few digits as still satisfy the condition."""
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        texts = [f"{value:.{digits}g}" for digits in (3, 6, 17)]
        return next((text for text in texts if self.holds(float(text))), texts[-1])


class Watch:
    """Monitor of a run's series that reports which breakpoints each update reaches.

    Args:
        breakpoints: the breakpoints; only enabled ones are monitored.
        past: name of a series -> its values so far, (updates,).
    """

    def __init__(self, breakpoints: Iterable[Breakpoint], past: Callable[[str], np.ndarray]) -> None:
        self._held = {one: one.became(past(one.series))[1] for one in breakpoints if one.on}

    def reached(self, values: Mapping[str, float]) -> tuple[Breakpoint, ...]:
        """Return the breakpoints whose conditions become true at the next update, whose metrics are ``values``."""
        reached = []
        for one, before in self._held.items():
            places, self._held[one] = one.became(np.array([values[one.series]]), before)
            if len(places):
                reached.append(one)
        return tuple(reached)


def nothing_before(name: str) -> np.ndarray:
    """Return an empty series, for a run at update 0."""
    return np.empty(0)


def sentence(step: int, reached: Sequence[Breakpoint], values: Mapping[str, float]) -> str:
    """Return a sentence on why a run stopped at update ``step``: “Update 37: max π(a) 0.912, above 0.9.”"""
    return tr("Update {step}: {values}.").format(
        step=step, values="; ".join(one.at(values[one.series]) for one in reached)
    )


def name_of(series: str) -> str:
    """Return the title of a series as written inside a sentence."""
    title = METRICS[series].title
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def breakpoint_from_text(text: str) -> Breakpoint:
    """Parse a breakpoint: ``entropy<1.0``, ``max_prob>0.9``, or ``clip_fraction!=0`` for the first clip.

    Raises:
        SettingsError: the text cannot be parsed; the message gives the accepted form.
    """
    parts = re.fullmatch(r"\s*(\w+)\s*(>|<|!=)\s*(\S+)\s*", text)
    if parts is None:
        raise SettingsError(
            "condition", text, tr("write a condition such as entropy<1.0, max_prob>0.9 or dead_groups!=0")
        )
    series, sign, number = parts.groups()
    try:
        value = float(number)
    except ValueError:
        raise SettingsError("condition", text, tr("“{number}” is not a number").format(number=number)) from None
    relation = next(name for name, known in SIGNS.items() if known == sign)
    return Breakpoint(series=series, relation=relation, value=value)


def breakpoint_from_json(stored: Any) -> Breakpoint:
    """Restore a breakpoint from the JSON form of ``dataclasses.asdict``.

    Raises:
        SettingsError: it is not a breakpoint.
    """
    names = {field.name for field in fields(Breakpoint)}
    if not isinstance(stored, dict) or not {"series"} <= stored.keys() <= names:
        raise SettingsError(
            "breakpoint", str(stored), tr("it must be an object with {names}").format(names=", ".join(sorted(names)))
        )
    return Breakpoint(**stored)


def _no_such_series(series: object) -> str:
    """Return the error message for an unknown series name, which suggests similar names or lists all."""
    near = difflib.get_close_matches(str(series), METRICS, n=3)
    if near:
        return tr("there is no such series; similar ones are {near}").format(near=", ".join(near))
    return tr("there is no such series; choose one of {metrics}").format(metrics=", ".join(METRICS))
