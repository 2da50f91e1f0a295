"""The panels of a window, each made when it is first seen or asked for: a window opens without those behind tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from app.panels.base import Panel


class Shelf(Mapping[str, Panel]):
    """Panels by id.

    Attributes:
        kinds: all there can be, in the order of the window.
        made: those that are there.
    """

    def __init__(self, kinds: Sequence[type[Panel]], make: Callable[[type[Panel]], Panel]) -> None:
        self.kinds = {kind.id: kind for kind in kinds}
        self.made: dict[str, Panel] = {}
        self._make = make

    def __getitem__(self, id: str) -> Panel:
        """The panel ``id``, made if it is not there.

        Raises:
            KeyError: there is no such panel.
        """
        if id not in self.made:
            self.made[id] = self._make(self.kinds[id])
        return self.made[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)

    def __contains__(self, id: object) -> bool:
        return id in self.kinds
