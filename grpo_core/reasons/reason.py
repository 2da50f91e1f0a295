"""Data types for reasons, which are sentences about the numbers of an update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

from grpo_core.claims.claim import Claim, told
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.record import Step

LONGEST_CHIP = 26


@dataclass(frozen=True, kw_only=True)
class Reason:
    """The reason for the value of a number.

    Attributes:
        chip: a few words to show next to the number, at most 26 characters.
        claims: why the number has this value, and what would change it; at least one.
        kind: "zero" for a zero that has a reason, "unhealthy" for a possible problem, "note" otherwise.
        quantities: the numbers to which the reason refers.
    """

    chip: str
    claims: tuple[Claim[Step], ...]
    kind: str
    quantities: tuple[Quantity, ...] = ()

    @classmethod
    def of(cls, kind: str, chip: str, quantities: tuple[Quantity, ...], *claims: Claim[Step]) -> Self:
        return cls(kind=kind, chip=chip, quantities=quantities, claims=claims)

    def __post_init__(self) -> None:
        assert self.claims and all(isinstance(claim, Claim) for claim in self.claims), "a reason is made of claims"

    @property
    def sentence(self) -> str:
        return told(self.claims)


def cell(name: str, step: Step, row: int, token: int, passed: int = 0) -> Quantity:
    """Return the address of a token's number. The token is omitted if completions are one token long."""
    return Quantity(name, passed=passed, row=row, token=token if step.mask.shape[1] > 1 else None)


Check: TypeAlias = Callable[[Numbers, int], Reason | None]
"""Function of the numbers of an update and the index of the pass shown. Returns the reason for one number, or None."""
