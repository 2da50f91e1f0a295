"""The glossary, which explains every technical term in one sentence, with formula, symbol and source."""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from app.help.resources import RESOURCES
from grpo_core.errors import GrpoError
from grpo_core.text import tr

_LISTS = ("also", "see")
_NAME = re.compile(r"[^a-z0-9+]+")


class GlossaryError(GrpoError):
    """Raised if the glossary file cannot be used.

    Attributes:
        line: line of the error, counted from 1.
    """

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        super().__init__(tr("Glossary, line {line}: {what}.").format(line=line, what=what))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of the glossary.

    Attributes:
        id: stable name.
        title: displayed name.
        sentence: its definition.
        source: its reference.
        symbol: its symbol; empty if it has none.
        latex: its formula; empty if it has none.
        also: other names by which it can be found.
        see: IDs of related terms.
    """

    id: str
    title: str
    sentence: str
    source: str
    symbol: str = ""
    latex: str = ""
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """Title and symbol."""
        return f"{self.title} {self.symbol}" if self.symbol and self.symbol != self.title else self.title


class Glossary:
    """All entries, in the order of the file. Entries can be looked up by any of their names."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = entries
        self._symbols = {entry.symbol: entry for entry in entries.values() if entry.symbol}
        # an id or a title takes precedence over another entry's synonym
        self._names = {_plain(name): entry for entry in entries.values() for name in entry.also}
        for entry in entries.values():
            self._names.update({_plain(entry.title): entry, _plain(entry.id): entry})

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def lookup(self, term: str) -> Entry | None:
        """Return the entry with the ID, title, other name or symbol ``term``, or None.

        Case and hyphens are ignored, except in symbols.
        """
        return self._names.get(_plain(term)) or self._symbols.get(term)

    def search(self, text: str) -> list[Entry]:
        """Return the entries that contain every word of ``text``, sorted by title.

        Entries with the first word in their names come first.
        """
        words = text.casefold().split()
        entries = [entry for entry in self if all(word in _everything(entry) for word in words)]
        first = words[0] if words else ""
        return sorted(entries, key=lambda entry: (bool(first) and first not in _names(entry), entry.title.casefold()))


def load_glossary(path: Path) -> Glossary:
    """Return the glossary in ``path``.

    Raises:
        GlossaryError: the file is not readable, or an entry lacks a field or refers to a missing term.
    """
    try:
        text = path.read_text("utf-8")
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+)", str(error))
        raise GlossaryError(int(place[1]) if place else len(text.splitlines()), tr("this is not TOML")) from None
    except (OSError, UnicodeDecodeError) as error:
        raise GlossaryError(1, tr("{path} cannot be read ({error})").format(path=path, error=error)) from None
    entries = {id: _entry(id, table, text) for id, table in tables.items()}
    for entry in entries.values():
        for other in entry.see:
            if other not in entries:
                raise GlossaryError(
                    _line(text, entry.id),
                    tr("“{title}” refers to “{other}”, which is not a term").format(title=entry.title, other=other),
                )
    return Glossary(entries)


@cache
def glossary() -> Glossary:
    """Return the shipped glossary. The file is read once, on first use."""
    return load_glossary(RESOURCES / "glossary.toml")


def lookup(term: str) -> Entry | None:
    """Return the shipped glossary's entry for ``term``, or None."""
    return glossary().lookup(term)


def tooltip_html(term: str, note: str = "") -> str:
    """Return a tooltip for ``term``: heading, sentence, ``note`` and source.

    If there is no such term, return only the note.
    """
    entry = lookup(term)
    extra = f"<p>{html.escape(note)}</p>" if note else ""
    if entry is None:
        return extra
    return (
        f"<p><b>{html.escape(entry.heading)}</b></p><p>{html.escape(entry.sentence)}</p>{extra}"
        f"<p><small>{html.escape(entry.source)}</small></p>"
    )


def tooltip_text(term: str, note: str = "") -> str:
    """Return a term's sentence and a note as plain text, for screen readers."""
    entry = lookup(term)
    return " ".join(part for part in (entry.sentence if entry else "", note) if part)


def _entry(id: str, table: Any, text: str) -> Entry:
    """Return the entry of one table. ``text`` is the content of the file, used to locate an error.

    Raises:
        GlossaryError: a field is missing, unknown or of the wrong type.
    """
    if not isinstance(table, dict):
        raise GlossaryError(_line(text, id), tr("“{id}” is outside a [term]").format(id=id))
    known = {field.name for field in fields(Entry)} - {"id"}
    for name, value in table.items():
        if name not in known:
            raise GlossaryError(
                _line(text, id),
                tr("“{id}” has the unknown part “{name}”; choose from {known}").format(
                    id=id, name=name, known=", ".join(sorted(known))
                ),
            )
        texts, form = (value, tr("a list of texts")) if name in _LISTS else ([value], tr("a text"))
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise GlossaryError(
                _line(text, id), tr("“{name}” of “{id}” must be {form}").format(name=name, id=id, form=form)
            )
    for name in ("title", "sentence", "source"):
        if not table.get(name):
            raise GlossaryError(_line(text, id), tr("“{id}” has no {name}").format(id=id, name=name))
    parts: dict[str, Any] = {name: tuple(table[name]) if name in _LISTS else table[name] for name in table}
    title = tr(parts["title"])
    if title != parts["title"]:
        parts["also"] = (*parts.get("also", ()), parts["title"])  # the rest of the program looks it up by this name
    return Entry(id=id, **{**parts, "title": title, "sentence": tr(parts["sentence"])})


def _line(text: str, id: str) -> int:
    """Return the number of the line in which a term's table begins."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() == f"[{id}]" or line.startswith(f"{id} ="):
            return number
    return 1


@lru_cache(maxsize=4096)  # a new window needs about 70 terms, each by the name in its row
def _plain(name: str) -> str:
    folded = name.casefold()
    return _NAME.sub(" ", folded).strip() if folded.isascii() else folded


def _names(entry: Entry) -> str:
    return " ".join((entry.title, *entry.also, entry.symbol)).casefold()


def _everything(entry: Entry) -> str:
    return f"{_names(entry)} {entry.sentence.casefold()} {entry.source.casefold()}"
