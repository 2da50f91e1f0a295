"""The papers on which the program is based, readable offline, with links that open in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from app.help.shipped_rows import parsed, rows


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A paper, or a program's documentation.

    Attributes:
        id: stable name.
        short: short name.
        title, authors, year, where: as cited.
        url: address of its page.
        gist: one sentence about what matters for this program.
    """

    id: str
    short: str
    title: str
    authors: str
    year: int
    where: str
    url: str
    gist: str

    @property
    def citation(self) -> str:
        return f"{self.authors} ({self.year}). {self.title}. {self.where}."


@cache
def references() -> tuple[Reference, ...]:
    """Return the shipped references, oldest first."""
    return tuple(sorted(rows(Reference, parsed("references.json"), ("gist",)), key=lambda reference: reference.year))
