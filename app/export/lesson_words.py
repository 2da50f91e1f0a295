"""The words that a lesson's file may use, as the README of the lessons lists them."""

from __future__ import annotations

from app.lessons.interactives.table import INTERACTIVES
from app.panel_registry import lesson_panels
from grpo_core.metrics import METRICS

BEGIN, END = "<!-- words: written by “grpo-lab lesson words” -->", "<!-- end of words -->"
"""Between these lines of the README stands the table."""


def words_table() -> str:
    """Pictures with what a step may ask of them, panels and metrics, in Markdown."""
    lines = ["| `interactive` | `state` | `check` | `show` | `hides` |", "|---|---|---|---|---|"]
    for name, interactive in sorted(INTERACTIVES.items()):
        offer = interactive.offer
        cells = (", ".join(f"`{word}`" for word in words)
                 for words in (offer.state, offer.checks, offer.shows, offer.parts))  # fmt: skip
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    panels, metrics = (", ".join(f"`{name}`" for name in names) for names in (sorted(lesson_panels()), sorted(METRICS)))
    return "\n".join([*lines, "", "`panels`: " + panels, "", "`metric`: " + metrics])
