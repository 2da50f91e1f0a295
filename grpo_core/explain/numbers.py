"""Look-up of an update's numbers by address: the values against which every explanation is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grpo_core import metrics
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain.quantity import KINDS, NAN, Quantity, is_card
from grpo_core.expression import Expression, Reading
from grpo_core.levels import LEVELS
from grpo_core.record import Step
from grpo_core.text import tr


class Numbers(EvaluatedStep):
    """An evaluated update whose numbers can be looked up by :class:`Quantity`. NaN if the record lacks a number."""

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self._values: dict[Quantity, float] = {}

    def __getitem__(self, quantity: Quantity) -> float:
        value = self._values.get(quantity)
        if value is None:
            value = self._values[quantity] = self._read(self.canonical(quantity))
        return value

    def _read(self, q: Quantity) -> float:
        if q.name in metrics.OF_DISTRIBUTION and is_card(q):  # the reason on its card is looked up with every frame
            return metrics.of_distribution(self.step, q.name)
        if is_card(q):
            return self.cards.get(q.name, self.step.measurements.get(q.name, NAN))
        return KINDS[q.name].read(self, q)

    def canonical(self, q: Quantity) -> Quantity:
        """Return ``q`` with exactly the parts that its kind requires.

        The token is omitted if completions are one token long.

        Raises:
            KeyError: the update has no such number.
        """
        if is_card(q):
            if q.name not in metrics.METRICS and q.name not in self.step.measurements:
                raise KeyError(f"there is no number called “{q.name}”")
            return Quantity(q.name)
        if q.name in ("probability", "log_probability", "entropy", "exact_kl") and q.row is not None:
            at = q.row, q.token or 0
            context = None if self.step.context is None else int(self.step.context[at])
            action = int(self.step.tokens[at]) if q.action is None else q.action
            q = Quantity(q.name, passed=q.passed, context=context, action=action)
        axes = KINDS[q.name].axes
        token = None
        if "token" in axes and self.step.mask.shape[1] > 1 and not (q.name == "advantage" and self.advantage.ndim == 1):
            token = q.token or 0
        wanted = {a: (getattr(q, a) or 0) if a in axes else None for a in ("row", "context", "action", "group")}
        if "rows" in axes:
            wanted["row"] = q.row
        return Quantity(q.name, passed=q.passed if {"pass", "state"} & set(axes) else 0, token=token, **wanted)

    @property
    def long(self) -> bool:
        """Whether completions have more than one position."""
        return bool(self.step.mask.shape[1] > 1)

    @property
    def it(self) -> str:
        """The index of a token in general formulas: ``{i,t}``, or ``{i}`` for completions of one token."""
        return "{i,t}" if self.long else "{i}"

    def at(self, q: Quantity) -> str:
        """Return the index of the token of ``q``, counted from 1, as LaTeX."""
        row = (q.row or 0) + 1
        return f"{{{row}}}" if q.token is None else f"{{{row},{q.token + 1}}}"

    def token(self, name: str, q: Quantity, token: int | None = None) -> Quantity:
        """Return the address of the number ``name`` at the token of ``q``, or at another token of its completion."""
        place = q.token if token is None else token
        return self.canonical(Quantity(name, passed=q.passed, row=q.row, token=place))

    def visited(self, row: int | None) -> list[int]:
        """Return the positions of tokens in completion ``row`` (None: the first), counted from 0."""
        return [int(t) for t in np.flatnonzero(self.step.mask[row or 0])]

    def rows(self, group: int | None) -> list[int]:
        """Return the rows of the batch that are completions of the prompt ``group``."""
        return [int(i) for i in np.flatnonzero(self.step.group == group)]

    def idle(self, q: Quantity) -> str:
        """Return why there is no number at this address: padding, or an unused completion. Empty if there is."""
        axes = KINDS[q.name].axes if not is_card(q) else ()
        if "token" in axes and not self.step.mask[q.row or 0, q.token or 0]:
            return tr("padding: there is no token here")
        if "pass" in axes and "row" in axes and self.step.part[q.passed, q.row or 0] < 0:
            return tr("this completion was not used in this pass")
        return ""

    def compared(self, group: int | None) -> list[Quantity]:
        """Return the values compared within a group or within the batch: rewards of completions or of their steps."""
        rows = range(len(self.step.group)) if group is None else self.rows(group)
        if self.objective.credits_steps:
            return [self.canonical(Quantity("step_reward", row=i, token=t)) for i in rows for t in self.visited(i)]
        return [Quantity("penalised_reward" if self.penalised else "reward", row=i) for i in rows]


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
