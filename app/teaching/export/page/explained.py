"""The updates on a page, and their numbers, each explained once, with its formula, its values, and its inputs."""

from __future__ import annotations

import base64
import gzip
import json

import numpy as np

from app.panels.explain import MOST_INPUTS, marked_verdict
from app.plotting.numbers import full, shown
from app.teaching.export.page.markup import Markup, element, formula
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from grpo_core.errors import GrpoError
from grpo_core.explain import Node, Quantity, explain_from, quantity_title
from grpo_core.record import Origin, Step
from grpo_core.text import tr

MOST_NODES = 12_000
"""Maximum number of explanations on a page. Further inputs have only their values."""


class Explained:
    """Collects numbers when links to them are created, and later everything from which they are computed.

    Attributes:
        nodes: (update, explanation) of each number, in order of request.
        cut: number of inputs that have only their values, because the page has no space for more explanations.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[ShownUpdate, Node]] = []
        self.cut = 0
        self._places: dict[tuple[ShownUpdate, Quantity], int] = {}

    def place(self, update: ShownUpdate, quantity: Quantity) -> int | None:
        """Return the index of a number's explanation in :attr:`nodes`, or None if there is no more space."""
        key = update, update.numbers.canonical(quantity)
        if key not in self._places:
            if len(self.nodes) >= MOST_NODES:
                return None
            self._places[key] = len(self.nodes)
            self.nodes.append((update, explain_from(update.numbers, key[1])))
        return self._places[key]

    def packed(self) -> str:
        """Return all explanations, and those of their inputs, as compressed JSON, which needs no escaping in HTML."""
        return packed([self._row(*node) for node in self.nodes])  # the list grows as inputs are added

    def _row(self, update: ShownUpdate, node: Node) -> dict[str, object]:
        inputs: list[object] = [self._input(update, quantity) for quantity in node.inputs[:MOST_INPUTS]]
        left = len(node.inputs) - len(inputs)
        return {
            "title": tr("{title}, {update}").format(title=node.title, update=update.label),
            "name": node.title,
            "said": tr("{title}: {value}. Explain").format(title=node.title, value=shown(node.value)),
            "formula": formula(node.latex) if node.latex else "",
            "values": formula(node.latex_values),
            "value": shown(node.value, 4),
            "full": full(node.value),
            "unit": node.unit,
            "verdict": marked_verdict(node) if node.latex else "",
            "agrees": node.agrees,
            "comparison": node.comparison if node.latex else "",
            "note": node.note,
            "source": node.source,
            "inputs": inputs,
            "more": tr("and {left} more").format(left=left) if left else "",
        }

    def _input(self, update: ShownUpdate, quantity: Quantity) -> object:
        place = self.place(update, quantity)
        if place is not None:
            return place
        self.cut += 1
        canonical = update.numbers.canonical(quantity)
        return [quantity_title(canonical), shown(update.numbers[canonical], 4)]


class ShownUpdate:
    """One update as shown on a page: its pass and its prompt.

    Attributes:
        explained: the explanations of the page.
        view: its view at the last stage and the pass shown.
        passed: that pass, counted from 0.
        group: index of the prompt whose completions are shown, if they have several tokens.
        id: unique among the updates on the page.
    """

    def __init__(
        self,
        origin: Origin,
        step: Step,
        explained: Explained,
        *,
        label: str,
        id: str,
        passed: int | None = None,
        group: int = 0,
    ) -> None:
        """Prepare ``step`` for a page.

        Args:
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
        self.view = StepView(origin, step, Stage.UPDATE, passed)
        assert self.view.numbers is not None
        self.step, self.passed, self.numbers, self.group = step, passed, self.view.numbers, group
        self.label, self.id, self.explained = label, id, explained

    @property
    def rows(self) -> list[int]:
        """The completions shown: those of one prompt if they have several tokens, otherwise all."""
        wanted = self.step.group == self.group if self.numbers.long else np.ones(len(self.step.group), dtype=bool)
        return [int(row) for row in np.flatnonzero(wanted)]

    def door(self, quantity: Quantity, text: str, kind: str = "", **attributes: object) -> Markup:
        """Return a button with ``text`` that opens the explanation of a number, or only the text if space is short."""
        place = self.explained.place(self, quantity)
        if place is None:
            self.explained.cut += 1
            return element("span", text, class_=kind or None, **attributes)
        return element("button", text, type="button", class_=f"door {kind}".strip(), data_number=place, **attributes)


def packed(data: object) -> str:
    """Return ``data`` as compressed JSON in base 64."""
    return base64.b64encode(gzip.compress(json.dumps(data).encode("ascii"), mtime=0)).decode("ascii")
