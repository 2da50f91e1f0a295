"""``python -m app homework``: a class's homework as one table, with its numbers recomputed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from app.display import draw_offscreen
from app.export.command import command
from grpo_core.commands.command_line import Parser
from grpo_core.errors import GrpoError
from grpo_core.regular_file import refuse_existing
from grpo_core.teaching.homework.checking import Checker
from grpo_core.teaching.homework.table import NOT_KNOWN, Collected, collect
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import plural, tr

BYTE_ORDER_MARK = "utf-8-sig"
"""Encoding that makes Excel recognize a table as UTF-8."""


def checker(poll: Callable[[], None] = lambda: None) -> Checker:
    """Return a checker that knows the lessons of this program and of the user. ``poll`` is called regularly.

    Each lesson is read once, and walked through once, provided that its edition is the one used for the homework.
    """
    from app.teaching.export.lesson_stage import walked
    from app.teaching.lessons.catalogue import is_lesson_file, lesson_called

    @cache
    def edition(name: str, digest: str) -> Lesson | None:
        try:
            found = None if is_lesson_file(name) else lesson_called(name)
        except GrpoError:
            return None
        return found if found is not None and found.digest == digest else None

    return Checker(
        lambda homework: edition(homework.lesson, homework.digest),
        lambda lesson: {step.place: step.value for step in walked(lesson) if step.value is not None},
        poll,
    )


def answer_homework(folder: str, out: str, *, poll: Callable[[], None]) -> Iterator[object]:
    """Yield the table of a folder, cell by cell as JSON, and a class's predictions. This runs in a child process.

    Args:
        out: path of the table's file; empty for no file.
        poll: called regularly.
    """
    draw_offscreen()
    from app.settings.files import write

    collected = Collected()
    for row in collect(Path(folder), checker(poll)):
        collected.rows.append(row)
        poll()
    if out:
        write(Path(out), collected.csv().encode(BYTE_ORDER_MARK))
    yield {
        "table": collected.table(),
        "tallies": [asdict(tally) for tally in collected.tallies()],
        "wrong": collected.wrong(),
    }


def _collect(arguments: Sequence[str]) -> None:
    options = command_parser().parse_args(arguments)
    draw_offscreen()
    from app.settings.files import write

    refuse_existing([options.out], options.force)
    collected = Collected()
    for row in collect(options.folder, checker()):
        collected.rows.append(row)
        if row.flags:
            print(tr("{file}: {flags}").format(file=row.file, flags=" ".join(row.flags)), flush=True)
    write(options.out, collected.csv().encode(BYTE_ORDER_MARK))
    for sentence in (*(tally.sentence for tally in collected.tallies()), *collected.wrong()):
        print(sentence)
    states = [verdict.state for row in collected.rows for verdict in row.verdicts]
    print(
        plural(
            "{files} file, {flagged} flagged. Numbers: {agree} agree, {differ} differ, {rest} not checked.",
            "{files} files, {flagged} flagged. Numbers: {agree} agree, {differ} differ, {rest} not checked.",
            len(collected.rows),
        ).format(
            files=len(collected.rows),
            flagged=sum(bool(row.flags) for row in collected.rows),
            agree=states.count("agrees"),
            differ=states.count("differs"),
            rest=len(states) - states.count("agrees") - states.count("differs"),
        )
    )
    print(NOT_KNOWN)
    print(options.out)


main = command(_collect)


def command_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="grpo-lab homework",
        description=(
            "Collect a folder of homework as one table. Every number claimed for a bandit is recomputed from "
            "settings and seed. Anything odd about a file is reported, and the other files are still read."
        ),
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder of files that end in .json")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv", help="the table")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    return parser
