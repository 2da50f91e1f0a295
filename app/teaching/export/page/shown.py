"""One update as shown on a page: its pass and prompt, and the collector of its explanations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.teaching.export.page.explained import Explained, Source
from app.teaching.export.page.markup import Markup
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from grpo_core.errors import GrpoError
from grpo_core.explain import Numbers, Quantity
from grpo_core.record import Origin, Step
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class ShownUpdate:
    """One update as shown on a page.

    Attributes:
        view: its view at the last stage and the pass shown.
        numbers: all of its numbers.
        group: index of the prompt whose completions are shown, if they have several tokens.
        id: unique among the updates on the page.
        explained: the collector of explanations.
        source: the source to which explanations refer for this update.
    """

    view: StepView
    numbers: Numbers
    group: int
    id: str
    explained: Explained
    source: Source

    @property
    def step(self) -> Step:
        """The recorded update that is shown."""
        return self.numbers.step

    @property
    def passed(self) -> int:
        """The pass shown, counted from 0."""
        return self.view.passed

    @property
    def long(self) -> bool:
        """Whether completions have several tokens, in which case those of only one prompt are shown."""
        return bool(self.step.mask.shape[1] > 1)

    @property
    def rows(self) -> list[int]:
        """The rows of the completions shown."""
        wanted = self.step.group == self.group if self.long else np.ones(len(self.step.group), dtype=bool)
        return [int(row) for row in np.flatnonzero(wanted)]

    def door(self, quantity: Quantity, text: str, kind: str = "", **attributes: object) -> Markup:
        """Return a button that opens the explanation of a number of this update."""
        return self.explained.door(self.source, quantity, text, kind, **attributes)

    def place(self, quantity: Quantity) -> int | None:
        """Return the index of a number's explanation on the page, or None if there is no more space."""
        return self.explained.place(self.source, quantity)


def shown_update(
    origin: Origin, step: Step, explained: Explained, *, label: str, id: str, passed: int | None = None, group: int = 0
) -> ShownUpdate:
    """Return ``step`` prepared for a page.

    Args:
        origin: the run before its first update.
        step: the record.
        explained: the collector of explanations.
        label: name of the update.
        id: unique among the updates on the page.
        passed: the pass, counted from 0; None for the last.
        group: the prompt, counted from 0.

    Raises:
        GrpoError: the update has no tokens, or no such pass or prompt; the message says what it has.
    """
    if not step.mask.any() or not step.passes:
        raise GrpoError(
            tr("{update} has no tokens with numbers, so nothing in it can be explained.").format(update=label)
        )
    passed = step.passes - 1 if passed is None else passed
    if not 0 <= passed < step.passes:
        raise GrpoError(
            tr("{update} has no pass {passed}; it has passes 1 to {passes}.").format(
                update=label, passed=passed + 1, passes=step.passes
            )
        )
    groups = int(step.group.max()) + 1
    if not 0 <= group < groups:
        raise GrpoError(
            tr("{update} has no prompt {group}; it has prompts 1 to {groups}.").format(
                update=label, group=group + 1, groups=groups
            )
        )
    view = StepView(origin, step, Stage.UPDATE, passed)
    assert view.numbers is not None
    return ShownUpdate(
        view=view,
        numbers=view.numbers,
        group=group,
        id=id,
        explained=explained,
        source=Source(numbers=view.numbers, label=label),
    )
