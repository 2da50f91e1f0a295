"""Detection of repeated crashes at startup, after which the program starts in safe mode.

Each process creates a marker file when it starts. The file is removed on closing, and marked as settled after the
first 30 seconds, which prove that the start itself was successful. Two markers of dead processes that ended earlier
cause a safe start, with the default layout and without restoring anything.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import psutil

from app.settings.files import write_atomically
from grpo_core.text import tr

EARLY_SECONDS = 30
"""Seconds after which a start counts as successful."""
CRASHES = 2
"""Number of consecutive early crashes that trigger safe mode."""


class StartMarker:
    """The marker file of this process.

    No method raises an exception. If the folder is not writable, there is no safe mode.

    Attributes:
        safe_mode: whether the last starts crashed early.
        crashed_before: whether an earlier session crashed, whether early or late.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"{os.getpid()}.start"
        self._early: list[Path] = []
        self.crashed_before = False
        self._read()
        self.safe_mode = len(self._early) >= CRASHES
        self._write(settled=False)

    @property
    def sentence(self) -> str | None:
        """The message to the user in safe mode, otherwise None."""
        if not self.safe_mode:
            return None
        return tr(
            "The program ended unexpectedly right after its last starts, so nothing was restored this "
            "time: the layout is the default, and no run was opened. Your runs are still in the list."
        )

    def settle(self) -> None:
        """Record that the start was successful. Call it ``EARLY_SECONDS`` after the start."""
        self._forget()
        self._write(settled=True)

    def close(self) -> None:
        """Remove the marker. Call it when the window has been closed properly."""
        self._forget()
        _remove(self._path)

    def _read(self) -> None:
        try:
            markers = sorted(self._folder.glob("*.start"))
        except OSError:
            return
        for path in markers:
            started, settled = _content(path)
            if path != self._path and _alive(path.stem, started):
                continue
            self.crashed_before = True
            if settled:
                _remove(path)
            else:
                self._early.append(self._kept(path))

    def _kept(self, path: Path) -> Path:
        """Return the path of a crashed process's marker.

        If the process had the same ID as this one, its marker is renamed so that it is not overwritten.
        """
        if path != self._path:
            return path
        other = path.with_name(f"{path.stem}-{len(self._early)}.start")
        with contextlib.suppress(OSError):
            path.replace(other)
        return other

    def _write(self, *, settled: bool) -> None:
        content = {"started": psutil.Process().create_time(), "settled": settled}
        with contextlib.suppress(OSError):
            write_atomically(self._path, json.dumps(content).encode("ascii"))

    def _forget(self) -> None:
        for path in self._early:
            _remove(path)
        self._early = []


def _content(path: Path) -> tuple[float, bool]:
    """Return the start time of a marker's process, and whether its start was successful.

    A damaged marker counts as successful.
    """
    try:
        content = json.loads(path.read_bytes())
        return float(content["started"]), bool(content["settled"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return 0.0, True


def _alive(number: str, started: float) -> bool:
    """Return whether the process that left a marker is still running.

    The start time is also compared, because the system reuses process IDs.
    """
    try:
        return bool(abs(psutil.Process(int(number)).create_time() - started) < 2)
    except (ValueError, OverflowError, psutil.Error):
        return False


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
