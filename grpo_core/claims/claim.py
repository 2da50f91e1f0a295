"""The base class of claims: frozen dataclasses that can be checked against data and put into words."""

from __future__ import annotations

import math
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, Self, TypeVar

from grpo_core.claims.numbers import written
from grpo_core.rounding import DOUBLE, tolerance
from grpo_core.text import as_sentence, clauses
from grpo_core.typeset import plain

Data = TypeVar("Data", contravariant=True)


class Claim(ABC, Generic[Data]):
    """A statement about data that can be false. Each kind is a frozen dataclass whose fields determine its text."""

    @abstractmethod
    def check(self, data: Data) -> bool:
        """Return whether ``data`` supports the claim. Everything that the claim states is recomputed from the data."""

    @abstractmethod
    def words(self) -> str:
        """Return the claim as a clause or a sentence, through ``tr``, using only its fields."""

    def filled(self, text: str, **texts: object) -> str:
        """Return ``text`` with the fields of the claim filled in, or the ``texts`` in place of those of their names."""
        return text.format(**vars(self) | texts)

    def texts(self, *names: str) -> dict[str, str]:
        """Return the numbers in the fields ``names`` as text, with enough decimals to tell them apart."""
        return dict(zip(names, written(*(getattr(self, name) for name in names)), strict=True))


class Derived(Claim[Data]):
    """A claim that its data determine: it is made of them, and checked by being made again."""

    @classmethod
    @abstractmethod
    def found_in(cls, data: Data) -> Self | None:
        """Return the claim of this kind about the data. None if there is nothing to claim."""

    def check(self, data: Data) -> bool:
        made = self.found_in(data)
        return made is not None and same(tuple(vars(self).values()), tuple(vars(made).values()))


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Data]):
    """A kind of claim with a fixed wording: one row of a table.

    Attributes:
        text: its wording, with a field for each value.
        holds: function that returns whether the data supports the values, which are attributes of its second argument;
            None if the claims of the table are checked together.
    """

    text: str | Callable[[Any], str]
    holds: Callable[[Data, Any], Any] | None = None

    def template(self, values: Mapping[str, Any]) -> str:
        """Return the wording for these values, with its fields still to be filled in."""
        return self.text if isinstance(self.text, str) else self.text(SimpleNamespace(**values))


@dataclass(frozen=True, kw_only=True)
class Tabled(Claim[Data]):
    """A claim whose wording and check are in a row of a table.

    Attributes:
        values: pairs of name and value, including the subject of the claim, such as the index of a group.
    """

    KINDS: ClassVar[Mapping[str, Kind[Any]]]
    kind: str
    values: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, kind: str, **values: Any) -> Self:
        """Create a claim from the row ``kind``.

        Raises:
            KeyError: there is no such row.
        """
        cls.KINDS[kind]
        return cls(kind=kind, values=tuple(values.items()))

    def check(self, data: Data) -> bool:
        holds = self.KINDS[self.kind].holds
        assert holds is not None
        return bool(holds(data, SimpleNamespace(**dict(self.values))))

    def words(self) -> str:
        values = dict(self.values)
        return Writer().format(self.KINDS[self.kind].template(values), **values)


class Writer(string.Formatter):
    """Formatter that writes a number with four digits unless its format is given explicitly."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        if isinstance(value, float) and not format_spec:
            return plain(value)
        return super().format_field(value, format_spec)


def told(claims: Sequence[Claim[Any]]) -> str:
    """Join claims that are complete sentences."""
    return " ".join(claim.words() for claim in claims)


def sentence(*claims: Claim[Data]) -> str:
    """Return the claims joined into one sentence, which is empty if there are none."""
    return as_sentence(clauses(claim.words() for claim in claims)) if claims else ""


def agrees(claimed: float, computed: float) -> bool:
    """Return whether two numbers are equal up to rounding, relative to the larger one, at least 1. Infinities equal
    themselves, NaN equals nothing.
    """
    if math.isinf(claimed) or math.isinf(computed):
        return claimed == computed
    return abs(claimed - computed) <= tolerance(DOUBLE, 1.0, claimed, computed)


def same(claimed: Any, computed: Any) -> bool:
    """Return whether two values are equal: numbers with a fraction up to rounding, tuples entry by entry."""
    if isinstance(claimed, tuple) and isinstance(computed, tuple):
        return len(claimed) == len(computed) and all(map(same, claimed, computed))
    return agrees(claimed, computed) if isinstance(claimed, float) else bool(claimed == computed)
