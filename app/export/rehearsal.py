"""A rehearsal of a lesson, as ``grpo-lab lesson check`` says it: an answer of a child process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.display import draw_offscreen
from app.export.lesson_check import SEEDS, check_lesson, lines_of
from app.export.lesson_file import lesson_called


def passes(steps: int) -> int:
    """The number of polls in a rehearsal of a lesson with so many ``steps``: one a step under each of its seeds."""
    return steps * (SEEDS + 1)


def answer_rehearsal(name: str, *, poll: Callable[[], None]) -> Iterator[object]:
    """The report of each step as JSON: its lines, and how many faults it has.

    Args:
        name: the lesson's id, or its file.
        poll: called after each step under each seed.
    """
    draw_offscreen()
    lesson = lesson_called(name)
    for report in check_lesson(lesson, poll=poll):
        yield {"lines": [*lines_of(lesson, report)], "faults": len(report.faults)}
