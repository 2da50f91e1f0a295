"""The numbers that a page explains: each once, with its formula, its values, and what it comes from."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass

from app.export.page.markup import Markup, element, formula
from app.panels.explain import MOST_INPUTS, marked_verdict
from app.plotting.numbers import full, shown
from grpo_core.explain import Node, Numbers, Quantity, explain_from, quantity_title
from grpo_core.text import tr

MOST_NODES = 12_000
"""Explanations of a page; what lies further down is named with its value alone."""


@dataclass(frozen=True, eq=False)
class Source:
    """An update whose numbers are explained.

    Attributes:
        numbers: of the update.
        label: what the update is called.
    """

    numbers: Numbers
    label: str


class Explained:
    """Collects numbers as doors are made, then everything that those come from.

    Attributes:
        nodes: (source, explanation) of each number, in the order in which it was asked for.
        cut: inputs that are named with their value alone, since the page has no room for more.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[Source, Node]] = []
        self.cut = 0
        self._places: dict[tuple[Source, Quantity], int] = {}

    def place(self, source: Source, quantity: Quantity) -> int | None:
        """The place of a number's explanation among :attr:`nodes`. None where there is no more room."""
        key = source, source.numbers.canonical(quantity)
        if key not in self._places:
            if len(self.nodes) >= MOST_NODES:
                return None
            self._places[key] = len(self.nodes)
            self.nodes.append((source, explain_from(source.numbers, key[1])))
        return self._places[key]

    def door(self, source: Source, quantity: Quantity, text: str, kind: str = "", **attributes: object) -> Markup:
        """A button that opens the explanation of a number and shows ``text``. Without room the text alone."""
        place = self.place(source, quantity)
        if place is None:
            self.cut += 1
            return element("span", text, class_=kind or None, **attributes)
        return element(
            "button", text, type="button", class_=f"door {kind}".strip(), data_number=place, **attributes
        )  # fmt: skip

    def packed(self) -> str:
        """Every explanation, and those of what they come from, as compressed JSON in letters that HTML leaves alone."""
        rows = []
        place = 0
        while place < len(self.nodes):  # it grows as inputs are placed
            rows.append(self._row(*self.nodes[place]))
            place += 1
        return packed(rows)

    def _row(self, source: Source, node: Node) -> dict[str, object]:
        inputs: list[object] = [self._input(source, quantity) for quantity in node.inputs[:MOST_INPUTS]]
        left = len(node.inputs) - len(inputs)
        return {
            "title": tr("{title}, {update}").format(title=node.title, update=source.label),
            "name": node.title,
            "said": tr("{title}: {value}. Explain").format(title=node.title, value=shown(node.value)),
            "formula": formula(node.latex) if node.latex else "",
            "values": formula(node.latex_values),
            "value": shown(node.value, 4), "full": full(node.value), "unit": node.unit,
            "verdict": marked_verdict(node) if node.latex else "", "agrees": node.agrees,
            "comparison": node.comparison if node.latex else "",
            "note": node.note, "source": node.source, "inputs": inputs,
            "more": tr("and {left} more").format(left=left) if left else "",
        }  # fmt: skip

    def _input(self, source: Source, quantity: Quantity) -> object:
        place = self.place(source, quantity)
        if place is not None:
            return place
        self.cut += 1
        canonical = source.numbers.canonical(quantity)
        return [quantity_title(canonical), shown(source.numbers[canonical], 4)]


def packed(data: object) -> str:
    """``data`` as JSON, compressed, in the letters of base 64."""
    return base64.b64encode(gzip.compress(json.dumps(data).encode("ascii"), mtime=0)).decode("ascii")
