"""The panels of a window, each created on first use, so that a window opens without creating those behind tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.workspace import Workspace

P = TypeVar("P", bound=Panel)


class PanelSet(Mapping[str, Panel]):
    """Panels by id, created on first use.

    Attributes:
        specs: the registry's entries of all panels, by id, in order.
        made: the panels created so far.

    Args:
        on_made: called once for each new panel, with its registry entry.
    """

    def __init__(
        self,
        specs: Sequence[PanelSpec[Panel]],
        workspace: Workspace,
        on_made: Callable[[PanelSpec[Panel], Panel], None],
    ) -> None:
        self.specs = {spec.id: spec for spec in specs}
        self.made: dict[str, Panel] = {}
        self._workspace = workspace
        self._on_made = on_made

    def of(self, spec: PanelSpec[P]) -> P:
        """Return the panel of a registry entry with its precise type, creating it if needed."""
        return cast(P, self[spec.id])

    def __getitem__(self, id: str) -> Panel:
        """Return the panel ``id``, creating it if needed.

        Raises:
            KeyError: there is no such panel.
        """
        if id not in self.made:
            spec = self.specs[id]
            self.made[id] = spec.make(self._workspace)
            self._on_made(spec, self.made[id])
        return self.made[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    def __contains__(self, id: object) -> bool:
        return id in self.specs
