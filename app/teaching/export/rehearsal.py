"""A rehearsal of a lesson in a child process, with the report of ``grpo-lab lesson check``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.display import draw_offscreen
from app.teaching.export.lesson_check import SEEDS, check_lesson, lines_of
from app.teaching.export.lesson_file import lesson_called


def passes(steps: int) -> int:
    """Return the number of polls in a rehearsal of a lesson with ``steps`` steps: one per step and seed."""
    return steps * (SEEDS + 1)


def answer_rehearsal(name: str, *, poll: Callable[[], None]) -> Iterator[object]:
    """Yield the report of each step as JSON: its lines, and its number of faults.

    Args:
        name: the lesson's id, or its file.
        poll: called after each step with each seed.
    """
    draw_offscreen()
    lesson = lesson_called(name)
    for report in check_lesson(lesson, poll=poll):
        yield {"lines": [*lines_of(lesson, report)], "faults": len(report.faults)}
