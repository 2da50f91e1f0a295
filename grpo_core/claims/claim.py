"""What every claim is: a frozen dataclass that can be checked against data, and said."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

Data = TypeVar("Data", contravariant=True)
SAME = 1e-9
"""Largest difference of two computations of a number, relative to the larger one above 1."""


class Claim(ABC, Generic[Data]):
    """A statement on data that can be false. Each kind is a frozen dataclass with all that it says in its fields."""

    @abstractmethod
    def check(self, data: Data) -> bool:
        """Whether ``data`` bear the claim out: everything that it says is computed from them once more."""

    @abstractmethod
    def words(self) -> str:
        """The claim as a clause or a sentence, through ``tr``, made from its fields alone."""


def sentence(*claims: Claim[Data]) -> str:
    """Claims as one sentence; empty without any."""
    return "; ".join(claim.words() for claim in claims) + "." if claims else ""


def agrees(claimed: float, computed: float) -> bool:
    """Whether two numbers are the same but for rounding; infinities agree with themselves, NaN with nothing."""
    if math.isinf(claimed) or math.isinf(computed):
        return claimed == computed
    return abs(claimed - computed) <= SAME * max(1.0, abs(claimed), abs(computed))
