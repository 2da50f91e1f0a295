"""The table of names for lesson files, as in the README of the lessons."""

from __future__ import annotations

from app.panel_registry import lesson_panels
from app.teaching.lessons.interactives.table import INTERACTIVES
from grpo_core.metrics import METRICS

BEGIN, END = "<!-- words: written by “grpo-lab lesson words” -->", "<!-- end of words -->"
"""Lines in the README that enclose the table."""


def words_table() -> str:
    """Return a Markdown table of pictures with the numbers that a step can use, of panels, and of metrics."""
    lines = ["| `interactive` | `state` | `check` | `show` | `hides` |", "|---|---|---|---|---|"]
    for name, interactive in sorted(INTERACTIVES.items()):
        offer = interactive.offer
        cells = (
            ", ".join(f"`{word}`" for word in words) for words in (offer.state, offer.checks, offer.shows, offer.parts)
        )
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    panels, metrics = (", ".join(f"`{name}`" for name in names) for names in (sorted(lesson_panels()), sorted(METRICS)))
    return "\n".join([*lines, "", "`panels`: " + panels, "", "`metric`: " + metrics])
