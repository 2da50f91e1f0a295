"""The papers on which the program is based, readable offline, with links that open in the browser."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from app.help.resources import RESOURCES
from grpo_core.errors import GrpoError
from grpo_core.text import tr


class ReferencesError(GrpoError):
    """Raised if the file of references cannot be used. The message says where the error is."""


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


def load_references(path: Path) -> tuple[Reference, ...]:
    """Return the references in ``path``, oldest first.

    Raises:
        ReferencesError: the file is not readable, or an entry lacks a field.
    """
    try:
        stored = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ReferencesError(tr("References, line {lineno}: this is not JSON.").format(lineno=error.lineno)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ReferencesError(
            tr("References: {path} cannot be read ({error}).").format(path=path, error=error)
        ) from None
    parts = {field.name for field in fields(Reference)}
    references = []
    for number, entry in enumerate(stored, start=1):
        if not isinstance(entry, dict) or set(entry) != parts:
            raise ReferencesError(
                tr("References, entry {number}: its parts must be {parts}.").format(
                    number=number, parts=", ".join(sorted(parts))
                )
            )
        references.append(Reference(**{**entry, "gist": tr(entry["gist"])}))
    return tuple(sorted(references, key=lambda reference: reference.year))


@cache
def references() -> tuple[Reference, ...]:
    """Return the shipped references. The file is read once, on first use."""
    return load_references(RESOURCES / "references.json")
