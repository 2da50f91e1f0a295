"""Published results of papers and programs. They are quotations, never this program's own numbers."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cache

from app.help.shipped_rows import parsed, rows
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


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published result, as a paper or a program's documentation reports it.

    Attributes:
        part: one of :data:`PARTS`.
        title: name of the model or the program, or a question.
        figure: the number as the source gives it; empty if there is none.
        claim: what is reported, in a sentence or two.
        source: paper with its section, or documentation.
        bars: names of its results before and after training, for a chart; empty if it reports no such pair.
        before, after: these results in percent.
    """

    part: str
    title: str
    figure: str
    claim: str
    source: str
    url: str
    bars: tuple[str, ...] = ()
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()

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


@cache
def published() -> tuple[Published, ...]:
    """Return the shipped entries, in order."""
    return rows(Published, parsed("published.toml")["entries"], ("title", "claim"))


def part_html(part: str, *, heading: bool = True) -> str:
    """Return one of :data:`PARTS` as rich text, with its name as an anchor."""
    title = f'<h3><a name="{part}"></a>{html.escape(PARTS[part])}</h3>' if heading else ""
    return title + "".join(entry.block for entry in published() if entry.part == part)
