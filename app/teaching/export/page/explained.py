"""The numbers that a page explains, each once, with its formula, its values, and its inputs."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass

from app.panels.explain import MOST_INPUTS, marked_verdict
from app.plotting.numbers import full, shown
from app.teaching.export.page.markup import Markup, element, formula
from grpo_core.explain import Node, Numbers, Quantity, explain_from, quantity_title
from grpo_core.text import tr

MOST_NODES = 12_000
"""Maximum number of explanations on a page. Further inputs have only their values."""


@dataclass(frozen=True, eq=False)
class Source:
    """An update whose numbers are explained.

    Attributes:
        numbers: the numbers of the update.
        label: name of the update.
    """

    numbers: Numbers
    label: str


class Explained:
    """Collects numbers when links to them are created, and later everything from which they are computed.

    Attributes:
        nodes: (source, explanation) of each number, in order of request.
        cut: number of inputs that have only their values, because the page has no space for more explanations.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[Source, Node]] = []
        self.cut = 0
        self._places: dict[tuple[Source, Quantity], int] = {}

    def place(self, source: Source, quantity: Quantity) -> int | None:
        """Return the index of a number's explanation in :attr:`nodes`, or None if there is no more space."""
        key = source, source.numbers.canonical(quantity)
        if key not in self._places:
            if len(self.nodes) >= MOST_NODES:
                return None
            self._places[key] = len(self.nodes)
            self.nodes.append((source, explain_from(source.numbers, key[1])))
        return self._places[key]

    def door(self, source: Source, quantity: Quantity, text: str, kind: str = "", **attributes: object) -> Markup:
        """Return a button with ``text`` that opens the explanation of a number, or only the text if space is short."""
        place = self.place(source, quantity)
        if place is None:
            self.cut += 1
            return element("span", text, class_=kind or None, **attributes)
        return element("button", text, type="button", class_=f"door {kind}".strip(), data_number=place, **attributes)

    def packed(self) -> str:
        """Return all explanations, including those of their inputs, as compressed JSON.

        It needs no escaping in HTML.
        """
        rows = []
        place = 0
        while place < len(self.nodes):  # the list grows as inputs are added
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

    def _input(self, source: Source, quantity: Quantity) -> object:
        place = self.place(source, quantity)
        if place is not None:
            return place
        self.cut += 1
        canonical = source.numbers.canonical(quantity)
        return [quantity_title(canonical), shown(source.numbers[canonical], 4)]


def packed(data: object) -> str:
    """Return ``data`` as compressed JSON in base 64."""
    return base64.b64encode(gzip.compress(json.dumps(data).encode("ascii"), mtime=0)).decode("ascii")
