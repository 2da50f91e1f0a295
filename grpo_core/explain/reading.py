"""One token of an update, as read by the tables of settings. Every number read becomes an input of the explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.expression import Expression, Reading
from grpo_core.levels import LEVELS


def ratio_name(n: Numbers) -> str:
    """Return the symbol of the ratio: r for a token, s for a completion as in GSPO (arXiv:2507.18071, equation 7)."""
    return "s_{i}" if LEVELS[n.objective.level].of_completion else f"r_{n.it}"


class TokenReading(Reading):
    """The engine's numbers of one token in one pass.

    Attributes:
        inputs: addresses of the numbers that have been read, in order; shared by all readings of one explanation.
    """

    def __init__(self, numbers: Numbers, place: Quantity, beside: TokenReading | None = None) -> None:
        self.inputs: list[Quantity] = [] if beside is None else beside.inputs
        self.objective, self.index, self.ratio_name = numbers.objective, numbers.it, ratio_name(numbers)
        self.advantage_name = f"A_{numbers.it}" if numbers.advantage.ndim > 1 else "A_{i}"
        self._numbers = numbers
        self._place = place
        self._completion: dict[Callable[[Sequence[Reading]], Expression], Expression]
        self._completion = {} if beside is None else beside._completion

    def read(self, name: str) -> float:
        quantity = self._numbers.token(name, self._place)
        self.inputs.append(quantity)
        return self._numbers[quantity]

    def of_completion(self, rule: Callable[[Sequence[Reading]], Expression]) -> Expression:
        if rule not in self._completion:
            n, q = self._numbers, self._place
            places = [Quantity(q.name, passed=q.passed, row=q.row, token=t) for t in n.visited(q.row)]
            self._completion[rule] = rule([TokenReading(n, place, self) for place in places])
        return self._completion[rule]
