"""Published results of papers and programs. They are quotations, never this program's own numbers."""

from __future__ import annotations

import html
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from app.help.resources import RESOURCES
from grpo_core.errors import GrpoError
from grpo_core.text import tr

PARTS = {
    "results": tr("Published results"),
    "used": tr("Who uses it"),
    "aha": tr("The “aha moment”"),
    "open": tr("Open questions"),
}
MARK = tr("From the paper, not computed here")
MARK_OF_PROGRAMS = tr("From the documentation, not computed here")
"""Mark of the entries from a program's documentation. ``MARK`` is that of the entries from papers."""


class PublishedError(GrpoError):
    """Raised if the file of published results cannot be used. The message says where the error is."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published result, as a paper or a program's documentation reports it.

    Attributes:
        part: one of :data:`PARTS`.
        title: name of the model or the program, or a question.
        figure: the number as the source gives it; empty if there is none.
        claim: what is reported, in a sentence or two.
        source: paper with its section, or documentation.
        url: address of the source.
    """

    part: str
    title: str
    figure: str
    claim: str
    source: str
    url: str

    @property
    def mark(self) -> str:
        """The mark that says whether the entry comes from a paper or from a program's documentation."""
        return MARK_OF_PROGRAMS if "documentation" in self.source else MARK

    @property
    def block(self) -> str:
        """The entry as rich text, with its mark."""
        address = html.escape(self.url, quote=True)
        figure = f"&nbsp; <big><b>{html.escape(self.figure)}</b></big>" if self.figure else ""
        return (
            f"<p><b>{html.escape(self.title)}</b>{figure}<br>{html.escape(self.claim)}<br>"
            f'<small>{html.escape(self.mark)}: <a href="{address}">{html.escape(self.source)}</a></small></p>'
        )


def load_published(path: Path) -> tuple[Published, ...]:
    """Return the entries in ``path``, in order.

    Raises:
        PublishedError: the file is not readable, or an entry lacks a field.
    """
    try:
        stored = tomllib.loads(path.read_text("utf-8")).get("entries", [])
    except tomllib.TOMLDecodeError as error:
        raise PublishedError(tr("Published results: this is not TOML ({error}).").format(error=error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PublishedError(
            tr("Published results: {path} cannot be read ({error}).").format(path=path, error=error)
        ) from None
    parts = {field.name for field in fields(Published)}
    results = []
    for number, entry in enumerate(stored if isinstance(stored, list) else (), start=1):
        if not isinstance(entry, dict) or set(entry) != parts or not all(isinstance(v, str) for v in entry.values()):
            raise PublishedError(
                tr("Published results, entry {number}: its parts must be {parts}, all of them texts.").format(
                    number=number, parts=", ".join(sorted(parts))
                )
            )
        if entry["part"] not in PARTS or not entry["source"] or not entry["url"]:
            sentence = tr("Published results, entry {number}: it needs a source, its page, and a part out of {parts}.")
            raise PublishedError(sentence.format(number=number, parts=", ".join(PARTS)))
        results.append(Published(**{**entry, "title": tr(entry["title"]), "claim": tr(entry["claim"])}))
    return tuple(results)


@cache
def published() -> tuple[Published, ...]:
    """Return the shipped entries. The file is read once, on first use."""
    return load_published(RESOURCES / "published.toml")


def part_html(part: str, *, heading: bool = True) -> str:
    """Return one of :data:`PARTS` as rich text, with its name as an anchor."""
    title = f'<h3><a name="{part}"></a>{html.escape(PARTS[part])}</h3>' if heading else ""
    return title + "".join(entry.block for entry in published() if entry.part == part)
