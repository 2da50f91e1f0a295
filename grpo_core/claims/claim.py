"""The base of every claim: a frozen dataclass that can be checked against data, and said."""

from __future__ import annotations

import math
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, Self, TypeVar

from grpo_core.typeset import plain

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


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Data]):
    """A kind of claim that takes one text: a row of a table.

    Attributes:
        text: its words, with a place for each value that is said.
        holds: whether the data bear out the values, which it finds as attributes of its second argument.
    """

    text: str
    holds: Callable[[Data, Any], Any]


@dataclass(frozen=True, kw_only=True)
class Tabled(Claim[Data]):
    """A claim whose words and check are a row of a table.

    Attributes:
        kind: the row's key.
        values: name -> what is said, in pairs; and what it is said of, such as the number of a group.
    """

    KINDS: ClassVar[Mapping[str, Kind[Any]]]
    kind: str
    values: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, kind: str, **values: Any) -> Self:
        """A claim of the row ``kind``.

        Raises:
            KeyError: there is no such row.
        """
        cls.KINDS[kind]
        return cls(kind=kind, values=tuple(values.items()))

    def check(self, data: Data) -> bool:
        return bool(self.KINDS[self.kind].holds(data, SimpleNamespace(**dict(self.values))))

    def words(self) -> str:
        return Writer().format(self.KINDS[self.kind].text, **dict(self.values))


class Writer(string.Formatter):
    """Puts values into a text: a number for which the text names no format with four digits."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        """One value in words."""
        if isinstance(value, float) and not format_spec:
            return plain(value)
        return super().format_field(value, format_spec)


def told(claims: Sequence[Claim[Any]]) -> str:
    """Claims that are sentences each, one after the other."""
    return " ".join(claim.words() for claim in claims)


def sentence(*claims: Claim[Data]) -> str:
    """Claims as one sentence. Empty without any."""
    return "; ".join(claim.words() for claim in claims) + "." if claims else ""


def agrees(claimed: float, computed: float) -> bool:
    """Whether two numbers are the same but for rounding. Infinities agree with themselves, NaN with nothing."""
    if math.isinf(claimed) or math.isinf(computed):
        return claimed == computed
    return abs(claimed - computed) <= SAME * max(1.0, abs(claimed), abs(computed))
