"""A start that presents: a lesson, a session or a run, full screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.sessions.place import found
from app.settings.files import exists
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application

FILES = (".grpo", ".grposession")


def present(program: Application, asked: str) -> None:
    """Open what was asked for and begin to present.

    Args:
        asked: the path of a session or a run, or the number or id of a lesson; a file of that name comes first.
    """
    path = Path(asked)
    there = exists(asked)
    lesson = None if there else found(program, asked)
    if lesson is not None:
        program.lessons.player.open(lesson)
    elif there or path.suffix in FILES:
        program.deeds.open_path(path)
    else:
        known = program.lessons.panel.lessons
        program.say(
            tr("There is no lesson and no file “{asked}”; lessons are called by their number: {numbers}.").format(
                asked=asked, numbers=", ".join(str(lesson.number) for lesson in known)
            )
        )
    program.presenter.start()
