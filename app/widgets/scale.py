"""Mapping of a slider's positions to the values of a setting."""

from __future__ import annotations

import math
from dataclasses import dataclass

from grpo_core.config import About

STEPS = 1000


@dataclass(frozen=True, kw_only=True)
class SliderScale:
    """A slider's range: linear, logarithmic, or over whole numbers."""

    low: float
    high: float
    whole: bool
    logarithmic: bool

    @classmethod
    def of(cls, about: About, whole: bool) -> SliderScale:
        """Return the slider of a setting, over its usual range or, if it has none, over its full allowed range."""
        low, high = about.usual or (about.low, about.high)
        return cls(low=low, high=high, whole=whole, logarithmic=about.logarithmic and low > 0)

    @property
    def steps(self) -> int:
        """Number of slider positions after the first."""
        return round(self.high - self.low) if self.whole else STEPS

    def value(self, position: int) -> float:
        """Return the setting at a slider position, rounded to three significant digits."""
        if self.whole:
            return round(self.low) + position
        share = position / STEPS
        if self.logarithmic:
            return _rounded(self.low * (self.high / self.low) ** share)
        return round(self.low + (self.high - self.low) * share, 3)

    def position(self, value: float) -> int:
        """Return the slider position nearest to a value, clamped to the range."""
        value = min(max(value, self.low), self.high)
        if self.whole:
            return round(value - self.low)
        if self.logarithmic:
            return round(STEPS * math.log(value / self.low) / math.log(self.high / self.low))
        return round(STEPS * (value - self.low) / (self.high - self.low))


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def shown(value: object) -> str:
    """Return the text of a setting's field: plain digits, empty for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(f"{v:.6g}" for v in value)
    return str(value)


def parsed(text: str, whole: bool) -> object:
    """Return the value of typed text, as a number if it is one. A decimal comma is accepted."""
    text = text.strip().replace("\u2212", "-")
    if not text:
        return None
    candidate = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    try:
        return int(candidate) if whole else float(candidate)
    except ValueError:
        try:
            return float(candidate)
        except ValueError:
            return text
