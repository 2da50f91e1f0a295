"""The panels of a window, each created on first use, so that a window opens without creating those behind tabs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.workspace import Workspace

P = TypeVar("P", bound=Panel)


class PanelSet(dict[str, Panel]):
    """The panels created so far, by id. One that is looked up and does not exist yet is created.

    Attributes:
        specs: the registry's entries of all panels, by id, in order.

    Args:
        on_made: called once for each new panel, with its registry entry.
    """

    def __init__(
        self,
        specs: Sequence[PanelSpec[Panel]],
        workspace: Workspace,
        on_made: Callable[[PanelSpec[Panel], Panel], None],
    ) -> None:
        super().__init__()
        self.specs = {spec.id: spec for spec in specs}
        self._workspace, self._on_made = workspace, on_made

    def of(self, spec: PanelSpec[P]) -> P:
        """Return the panel of a registry entry with its precise type, creating it if needed."""
        return cast(P, self[spec.id])

    def __missing__(self, id: str) -> Panel:
        spec = self.specs[id]
        panel = self[id] = spec.make(self._workspace)
        self._on_made(spec, panel)
        return panel
