"""A recorded run read by a separate process, with the interface of importers and updates loaded on demand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from grpo_core.errors import RunFileError, shortened
from grpo_core.foreign.line import Line
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.record import Step
from grpo_core.text import plural, tr

T = TypeVar("T")
MOST_NOTES, LONGEST_NOTE = 50, 1_000
"""Maximum number of notes on a source that are shown, and maximum number of characters in each."""


def _bounded(notes: Sequence[object]) -> tuple[str, ...]:
    """Return the notes on a source, limited to the number and length that a window can show."""
    kept = tuple(shortened(note, LONGEST_NOTE) for note in notes[:MOST_NOTES])
    if not (more := len(notes) - len(kept)):
        return kept
    said = plural("There is {count:,} more note like these.", "There are {count:,} more notes like these.", more)
    return (*kept, said.format(count=more))


class RemoteSource(Source):
    """A recorded run that another process reads."""

    def __init__(
        self, line: Line, asked: Path, index: Path | None, number: int, facts: dict[str, Any], columns: str = ""
    ) -> None:
        """Wrap one state of a source.

        Args:
            asked: the requested path.
            index: folder of the user's cache for indexes of large files.
            facts: facts reported by the process (:func:`grpo_core.foreign.answers.facts_of`), of checked types.
            columns: what columns of the user's own mean (:func:`grpo_core.foreign.formats.open_source`).
        """
        self._line, self._number = line, number
        self._opening = number, str(asked), None if index is None else str(index), columns
        self._asked_for, self._index_folder, self.columns = asked, index, columns
        self._read = False
        self.path, self.title, self.partial = Path(facts["path"]), shortened(facts["title"]), facts["partial"]
        self.settings, self.siblings = facts["settings"], tuple(map(Path, facts["siblings"]))
        self.labels: list[int] = facts["labels"].tolist()
        self.has_losses, self.processes = facts["has_losses"], facts["processes"]
        self.why_no_losses = shortened(facts["why_no_losses"], LONGEST_NOTE)
        self._notes = _bounded(facts["notes"])

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override]
        """Notes on what is damaged, repeated, missing or skipped, including findings from reading updates."""
        if self._read:
            with suppress(RunFileError):
                self._notes, self._read = _bounded(self._ask("notes")), False
        return self._notes

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self._ask("vocabulary"))

    def step(self, position: int) -> Step:
        return self._of_update("step", position, Step)

    def completions(self, position: int) -> Completions:
        return self._of_update("completions", position, Completions)

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        return self._of_update("measured", position, tuple[Completions | None, Step | None])

    def reports(self, position: int) -> Sequence[Report]:
        return self._of_update("reports", position, list[Report])

    def losses(self, position: int) -> np.ndarray | None:
        return self._of_update("losses", position, np.ndarray | None)  # type: ignore[arg-type]

    def incomplete(self, position: int) -> str:
        return self._of_update("incomplete", position, str)

    def stamp(self, position: int) -> tuple[int, ...]:
        return tuple(self.stamps(position, position)[0])

    def stamps(self, first: int, last: int) -> list[tuple[int, ...]]:
        """Return :meth:`stamp` of the updates from ``first`` to ``last``, with one request."""
        stamps: list[tuple[int, ...]] = self._ask("stamps", first, last)
        if len(stamps) != last - first + 1:
            raise RunFileError(tr("{name} could not be read.").format(name=self._asked_for.name))
        return stamps

    def refreshed(self, stamp: int | None) -> tuple[int, RemoteSource | None, bool]:
        """Run :func:`grpo_core.foreign.formats.refreshed` in the process. No other method finds new data."""
        now, facts, goes_on = self._ask("refresh", stamp)
        if facts is None:
            return now, None, goes_on
        fresh = RemoteSource(self._line, self._asked_for, self._index_folder, self._number + 1, facts, self.columns)
        self._line.opened[fresh._number] = facts
        return now, fresh, goes_on

    def close(self) -> None:
        """End the process. It is restarted on demand."""
        self._line.close()

    def _of_update(self, what: str, position: int, kind: type[T]) -> T:
        """Return data of an update, whose type the process's connection has checked (``READ`` names it too)."""
        self._read = True
        return cast(T, self._ask(what, position))

    def _ask(self, what: str, *arguments: object) -> Any:
        result = self._line.ask(what, self._number, *arguments, opening=self._opening)
        self._check_same()
        return result

    def _check_same(self) -> None:
        """Check that a restarted process has found the same source.

        Raises:
            RunFileError: the source has changed.
        """
        facts = self._line.opened.get(self._number)
        if isinstance(facts, dict):
            labels = facts["labels"][: len(self.labels)].tolist()
            if labels != self.labels:
                self._line.close()
                raise RunFileError(
                    tr("{name} has changed since it was opened; open it again.").format(name=self._asked_for.name)
                )
            self._line.opened[self._number] = None
