"""The base class of what a part adds to a window."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject

from app.widgets.panel import Panel
from app.widgets.panel_spec import Door
from app.workspace.run_handle import RunHandle
from grpo_core.runs.session import Manifest


class WindowPart(QObject):
    """Base of what a part adds to a window. The methods here add nothing; a part overrides those it needs.

    It is created after the controllers of the lab, with the program (:class:`app.application.Application`) as its only
    argument and as its parent.

    Attributes:
        files: description and patterns of the files that it opens, for a file dialog; empty if there are none.
    """

    name = ""
    files = ""

    def commands(self) -> Sequence[Any]:
        """Return commands (:class:`app.commands.command.Command`)."""
        return ()

    def commands_made(self, by_id: Any) -> None:
        """Receive all commands as actions, by id (:attr:`app.commands.actions.Actions.by_id`)."""

    def connect_panel(self, panel: Panel) -> None:
        """Connect a panel that has just been created."""

    def doors(self) -> tuple[Door, ...]:
        """Return doors of the first screen."""
        return ()

    def opener(self, path: Path) -> Callable[[Path], object] | None:
        """Return the function that opens what is at ``path``, or None if this part does not."""
        return None

    def open_recorded(self, path: Path) -> bool:
        """Open a run file with a run of another trainer. Return whether this part does."""
        return False

    def has_read(self, run: RunHandle, poll: Callable[[], None]) -> None:
        """Read what this part knows about a run whose file has been read. Called in a thread."""

    def opens(self, options: argparse.Namespace) -> bool:
        """Return whether the arguments of the command line ask for something that :meth:`started` opens."""
        return False

    def started(self, options: argparse.Namespace) -> None:
        """Open what the arguments of the command line ask for, after the window has been shown."""

    def present(self, name: str) -> None:
        """Open and present what the user has named on the command line."""

    def owns(self, run: RunHandle) -> bool:
        """Return whether a run belongs to this part and not to the user."""
        return False

    def described(self, manifest: Manifest) -> Manifest:
        """Return a session's manifest with what this part adds to it."""
        return manifest

    def saved(self, manifest: Manifest) -> str:
        """Return words on what this part has added to a session that was saved, or an empty string."""
        return ""

    def restore(self, manifest: Manifest) -> bool:
        """Restore what this part has added to a session. Return whether it has opened the session's lesson."""
        return False

    def checks(self, driven: Any) -> tuple[tuple[str, Callable[[], str]], ...]:
        """Return checks of the self-test, each with its title, for a program that is driven by it
        (:class:`app.self_test.driving.Driven`).
        """
        return ()

    def offer(self) -> None:
        """Offer to restore what a crash has interrupted."""

    def leave(self) -> None:
        """Give the window back to the user: the first screen is to be shown, or the program is about to close."""

    def closers(self) -> tuple[Callable[[], object], ...]:
        """Return functions that close files, processes and windows when the program closes, in this order."""
        return ()
