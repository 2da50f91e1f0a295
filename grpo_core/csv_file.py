"""Comma-separated tables whose cells are never run as formulas by a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import IO

FORMULA_STARTS = ("=", "+", "-", "@")
BREAKS = ("\t", "\r", "\n")
"""Characters that spreadsheets skip at the start of a cell before they check for a formula."""


def defused(value: object) -> object:
    """Make a cell safe for spreadsheets: text that starts like a formula gets a leading apostrophe.

    Negative numbers written as text, and a single symbol (a token such as ``=``), are not formulas and are left
    unchanged.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    risky = len(text) > 1 and (text.startswith(FORMULA_STARTS) or value.startswith(BREAKS)) and not _is_negative(text)
    return f"'{value}" if risky else value


def _is_negative(text: str) -> bool:
    try:
        return text.startswith("-") and float(text) <= 0
    except ValueError:
        return False


class CsvWriter:
    """Writer of a table to a text file, which passes every cell through :func:`defused`.

    Args:
        file: a file opened with ``newline=""``.
    """

    def __init__(self, file: IO[str], lineterminator: str = "\r\n") -> None:
        self._writer = csv.writer(file, lineterminator=lineterminator)

    def writerow(self, row: Iterable[object]) -> None:
        self._writer.writerow([defused(cell) for cell in row])

    def writerows(self, rows: Iterable[Iterable[object]]) -> None:
        for row in rows:
            self.writerow(row)


def csv_text(rows: Iterable[Iterable[object]], lineterminator: str = "\r\n") -> str:
    """Return a table as text, as :class:`CsvWriter` writes it."""
    text = io.StringIO()
    CsvWriter(text, lineterminator).writerows(rows)
    return text.getvalue()
