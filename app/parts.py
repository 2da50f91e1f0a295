"""The window halves of the parts (:mod:`grpo_core.parts`), and the rows that they give the lab."""

from __future__ import annotations

from typing import Any

from grpo_core import parts

_PACKAGE = __name__.partition(".")[0]
PARTS = {"teaching": f"{_PACKAGE}.teaching.part", "trainers": f"{_PACKAGE}.trainers.part"}
"""Name of a part -> the module with its rows."""
COMMANDS = {
    "teaching": {
        "handout": "A handout is drawn with the window's fonts and formulas, which needs Qt",
        "homework": "Some of its numbers come from a lesson's picture, which needs Qt",
        "lesson": "A lesson is played as in the window, which needs Qt",
        "page": "A page is made of what the window's panels say, which needs Qt",
    },
}
"""Name of a part -> its commands that need Qt but not the window, and the reason."""
TABLES = (
    "answers",  # name -> grpo_core.child.answering.Answer: requests to a process that exports
    "arguments",  # adds arguments to the parser of the window
    "checks",  # (title, function) of the self-test that need no window
    "handles",  # returns the open run (RunHandle) for a reader of an imported run, or None for any other reader
    "options",  # name of a command -> function that adds options to its parser
    "panels",  # rows of the panel registry
    "programs",  # name of a command -> function that runs it with its arguments, and returns the exit status
    "window",  # the class, derived from app.part.WindowPart, of what the part adds to a window
)
"""The tables of the window to which a part can contribute, each with the type of its rows."""


def rows(table: str) -> list[Any]:
    """Return what the parts that are switched on contribute to one of :data:`TABLES`, one entry per part."""
    return parts.rows_in(table, PARTS, TABLES)


def merged(table: str) -> dict[str, Any]:
    """Return the rows of a table whose entries are mappings, as one mapping."""
    return {name: row for entry in rows(table) for name, row in entry.items()}


def command_reasons() -> dict[str, str]:
    """Return the commands of the parts that need Qt, with the reason, without importing a part."""
    return {command: why for name in parts.names(PARTS) for command, why in COMMANDS.get(name, {}).items()}


def problems() -> list[str]:
    """Return one message for each half of a part that is switched on and cannot be used."""
    return [*parts.problems(), *parts.problems(PARTS, TABLES)]
