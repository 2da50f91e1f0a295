"""The glossary, which explains every technical term in one sentence, with formula, symbol and source."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from app.help.shipped_rows import parsed, rows
from grpo_core.text import tr

_NAME = re.compile(r"[^a-z0-9+]+")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of the glossary.

    Attributes:
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
        return f"{self.title} {self.symbol}" if self.symbol and self.symbol != self.title else self.title

    @property
    def names(self) -> str:
        """All its names."""
        return " ".join((self.title, *self.also, self.symbol))


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
        whole = {entry.id: f"{entry.names} {entry.sentence} {entry.source}".casefold() for entry in self}
        entries = [entry for entry in self if all(word in whole[entry.id] for word in words)]
        first = words[0] if words else ""
        return sorted(entries, key=lambda one: (first not in one.names.casefold(), one.title.casefold()))


@cache
def glossary() -> Glossary:
    """Return the shipped glossary. In another language, a term is also found by its English title."""
    tables = [
        {"id": id, **table, "also": [*table.get("also", ()), *({table["title"]} - {tr(table["title"])})]}
        for id, table in parsed("glossary.toml").items()
    ]
    return Glossary({entry.id: entry for entry in rows(Entry, tables, ("title", "sentence"))})


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


@lru_cache(maxsize=4096)  # a new window needs about 70 terms, each by the name in its row
def _plain(name: str) -> str:
    folded = name.casefold()
    return _NAME.sub(" ", folded).strip() if folded.isascii() else folded
