"""Rows that the part for teaching contributes to the tables of the window (:data:`app.parts.TABLES`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grpo_core.child.answering import Answer

if TYPE_CHECKING:
    from app.part import WindowPart
    from app.widgets.panel_spec import PanelSpec


def arguments() -> Callable[[argparse.ArgumentParser], None]:
    """Return the function that adds ``--present`` to the arguments of the window."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--present",
            metavar="LESSON|FILE",
            help="full screen, for a projector: a lesson by its number or id, a lesson's file, a session or a run",
        )

    return add


def answers() -> dict[str, Answer]:
    """Return what a process that exports can write for a lesson, by name."""
    from app.export.process import printed
    from app.teaching.export import handout_command, homework, lesson_check, page_command

    return {
        "handout": printed(handout_command.write),
        "page": printed(page_command.write),
        "homework": homework.answer_homework,
        "rehearsal": lesson_check.answer_rehearsal,
    }


def options() -> dict[str, Callable[[argparse.ArgumentParser], None]]:
    """Return the functions that add options to commands of the lab, by command."""
    from app.teaching.export import lesson_command

    return {"film": lesson_command.add_film_option}


def panels() -> tuple[PanelSpec[Any], ...]:
    """Return the rows of the panel registry."""
    from app.teaching.panel_rows import HOMEWORK, LESSON

    return HOMEWORK, LESSON


def programs() -> dict[str, Callable[[list[str]], int]]:
    """Return the commands that need Qt but not the window, by name."""
    from app.teaching.export import handout_command, homework, lesson_command, page_command

    return {
        "handout": handout_command.main,
        "homework": homework.main,
        "lesson": lesson_command.main,
        "page": page_command.main,
    }


def window() -> type[WindowPart]:
    """Return the class of what this part adds to a window."""
    from app.teaching.teaching import Teaching

    return Teaching
