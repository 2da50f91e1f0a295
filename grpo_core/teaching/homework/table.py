"""A folder of homework as a table with one row per file, and a class's predictions for each question."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core import __version__
from grpo_core.csv_file import csv_text
from grpo_core.errors import GrpoError
from grpo_core.teaching.homework.checking import DIFFERS, REFUSED, UNCHECKED, Checker, Verdict
from grpo_core.teaching.homework.file import Homework, HomeworkAnswer, HomeworkError, read_homework, well_formed
from grpo_core.text import as_sentence, clauses, listed, plural, tr

MOST_FILES = 2000
MOST_WRONG = 12
"""Maximum number of wrong predictions that are listed for a class."""
NOT_KNOWN = tr(
    "Numbers and marks are recomputed, but a prediction is what the file says: whether it was made before the run "
    "answered is not known."
)
RANGES = 8
"""Maximum number of ranges into which numeric predictions are grouped."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One homework file.

    Attributes:
        homework: its content; None if it cannot be read.
        answers: its answers as the lesson judges them, in order.
        verdicts: verdicts on the number in each of its answers, in order.
        flags: sentences about anything unusual; normally empty.
    """

    file: str
    homework: Homework | None = None
    answers: tuple[HomeworkAnswer, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of a class's predictions on one question.

    Attributes:
        lesson: the lesson's id.
        step: step of the lesson, counted from 1.
        names: the answers given, the most frequent first; for numbers the ranges that contain them, in order.
        counts: number of students who gave each answer.
        right: number of students whose answer was correct.
        sentence: all of this in words, including the number of students who skipped the question.
    """

    lesson: str
    step: int
    names: tuple[str, ...]
    counts: tuple[int, ...]
    right: tuple[int, ...]
    sentence: str


@dataclass
class Collected:
    """A class's homework.

    Attributes:
        rows: one per file, ordered by file name.
    """

    rows: list[Row] = field(default_factory=list)

    @property
    def questions(self) -> list[tuple[str, int]]:
        """Every question with at least one answer: the lesson's id and the step, counted from 1."""
        asked = {(row.homework.lesson, one.step) for row in self.rows if row.homework for one in row.homework.answers}
        return sorted(asked)

    def table(self) -> list[list[object]]:
        """Return the column titles and one row per file, with the text exactly as handed in."""
        heads: list[object] = ["file", "name", "lesson", "version", "flags", "conclusion"]
        for lesson, step in self.questions:
            heads += [f"{lesson} {step} {what}" for what in ("guess", "words", "right", "claimed", "checked")]
        return [heads, *([*_first(row), *self._answers(row)] for row in self.rows)]

    def csv(self) -> str:
        """Return the table as CSV: numbers at full precision, and no text that a spreadsheet would execute."""
        return csv_text([cell_of(cell) for cell in row] for row in self.table())

    def _answers(self, row: Row) -> Iterator[object]:
        found = {}
        if row.homework is not None:
            for answer, verdict in zip(row.answers, row.verdicts, strict=True):
                found[row.homework.lesson, answer.step] = answer, verdict
        for question in self.questions:
            if question not in found:
                yield from ("", "", "", "", "")
                continue
            answer, verdict = found[question]
            skipped = answer.guess is None
            yield "" if skipped else answer.guess
            yield tr("skipped") if skipped else answer.said
            yield "" if skipped else UNCHECKED if answer.right is None else answer.right
            yield "" if answer.value is None else answer.value
            yield verdict.state

    def tallies(self) -> list[Tally]:
        return [self._tally(*question) for question in self.questions]

    def wrong(self) -> list[str]:
        """Return a sentence on each wrong prediction, which often shows a misconception, with the names or numbers of
        the students as typed: those of most students first, at most :data:`MOST_WRONG`.
        """
        found: list[tuple[int, str]] = []
        for lesson, step in self.questions:
            placed = [(name, one) for name, one in self._by_student(lesson, step) if one.guess is not None]
            students: dict[str, list[str]] = {}
            for name, one in placed:
                if one.right is False:
                    students.setdefault(_mistake(one), []).append(name)
            for said, names in students.items():
                pattern = tr("{lesson}, step {step}: {count} of {asked} predicted “{said}”, which is wrong: {names}.")
                sentence = pattern.format(
                    lesson=lesson, step=step, count=len(names), asked=len(placed), said=said, names=listed(names)
                )
                found.append((len(names), sentence))
        return [sentence for _, sentence in sorted(found, key=lambda one: -one[0])[:MOST_WRONG]]

    def _by_student(self, lesson: str, step: int) -> list[tuple[str, HomeworkAnswer]]:
        """Return every student's answer to one question, with the name or number as typed. A file of the same student
        for the same lesson replaces an earlier one.
        """
        found: dict[str, HomeworkAnswer] = {}
        for row in self.rows:
            if row.homework and row.homework.lesson == lesson:
                name = row.homework.name.strip() or row.file
                found.update((name, one) for one in row.answers if one.step == step)
        return list(found.items())

    def _tally(self, lesson: str, step: int) -> Tally:
        answers = [one for _, one in self._by_student(lesson, step)]
        placed = [answer for answer in answers if answer.guess is not None]
        head = tr("{lesson}, step {step}: {placed} predicted, {right} right, {skipped} skipped").format(
            lesson=lesson,
            step=step,
            placed=len(placed),
            right=sum(bool(answer.right) for answer in placed),
            skipped=len(answers) - len(placed),
        )
        if unknown := sum(answer.right is None for answer in placed):
            head += tr(", {unknown} neither right nor wrong, because that cannot be checked here").format(
                unknown=unknown
            )
        sentence = f"{as_sentence(head)} {_guesses(placed)}" if placed else as_sentence(head)
        return Tally(lesson=lesson, step=step, sentence=sentence, **_counted(placed))


def _counted(placed: Sequence[HomeworkAnswer]) -> dict[str, Any]:
    """Return names, counts and numbers of correct answers. Numbers are grouped in ranges of equal width."""
    if placed and placed[0].kind in ("number", "ghost"):
        guesses = np.array([float(f"{answer.guess:.9g}") for answer in placed])  # equal to rounding is equal
        count = min(RANGES, len(np.unique(guesses)))
        edges = np.unique(np.linspace(guesses.min(), guesses.max(), count + 1))
        places = np.clip(np.searchsorted(edges, guesses, side="right") - 1, 0, max(len(edges) - 2, 0)).tolist()
        names = [tr("{low:.3g} to {high:.3g}").format(low=a, high=b) for a, b in pairwise(edges.tolist())]
        names = names or [f"{edges[0]:.3g}"]
    else:
        names = [said for said, _ in Counter(answer.said for answer in placed).most_common()]
        places = [names.index(answer.said) for answer in placed]
    counts, right = [0] * len(names), [0] * len(names)
    for place, answer in zip(places, placed, strict=True):
        counts[place] += 1
        right[place] += bool(answer.right)
    return {"names": tuple(names), "counts": tuple(counts), "right": tuple(right)}


def _guesses(placed: Sequence[HomeworkAnswer]) -> str:
    if placed[0].kind in ("number", "ghost"):
        numbers = [answer.guess for answer in placed if answer.guess is not None]
        return tr("From {low:.4g} to {high:.4g}, median {median:.4g}.").format(
            low=min(numbers), high=max(numbers), median=statistics.median(numbers)
        )
    counted = Counter(answer.said for answer in placed)
    return as_sentence(clauses(f"{said}: {count}" for said, count in counted.most_common()))


def _mistake(answer: HomeworkAnswer) -> str:
    if answer.kind not in ("number", "ghost"):
        return answer.said
    if answer.guess is None or answer.value is None:
        return answer.said
    return tr("too low") if answer.guess < answer.value else tr("too high")


def _first(row: Row) -> list[object]:
    homework, flags = row.homework, " ".join(row.flags)
    if homework is None:
        return [row.file, "", "", "", flags, ""]
    return [row.file, homework.name, homework.lesson, homework.version, flags, homework.conclusion]


def cell_of(value: object) -> object:
    """Format a value for a table of homework or predictions: yes or no, and numbers at full precision."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else value


def collect(folder: Path, checker: Checker) -> Iterator[Row]:
    """Read every homework file of ``folder``, and yield one row for each, including unreadable ones.

    Raises:
        GrpoError: there is no such folder, or it has no file that could be homework.
    """
    try:
        paths = sorted(islice((path for path in folder.iterdir() if path.suffix.lower() == ".json"), MOST_FILES + 1))
    except OSError as error:
        raise GrpoError(tr("{folder} cannot be read: {error}.").format(folder=folder, error=error.strerror)) from None
    if not paths:
        raise GrpoError(tr("There is no homework in {folder}: no file ends in .json.").format(folder=folder))
    if len(paths) > MOST_FILES:
        raise GrpoError(
            plural(
                "{folder} contains more than {most:,} file.", "{folder} contains more than {most:,} files.", MOST_FILES
            ).format(folder=folder, most=MOST_FILES)
        )
    seen: dict[bytes, str] = {}
    owners: dict[tuple[str, str], str] = {}
    for path in paths:
        name = well_formed(path.name)
        try:
            homework, content = read_homework(path)
        except HomeworkError as error:
            yield Row(file=name, flags=(str(error),))
            continue
        twin = seen.setdefault(content, name)
        owner = homework.name.strip(), homework.lesson
        earlier = owners.get(owner, "") if owner[0] else ""
        owners[owner] = name
        judged = [checker.judge(homework, answer) for answer in homework.answers]
        yield Row(
            file=name,
            homework=homework,
            answers=tuple(answer for answer, _ in judged),
            verdicts=tuple(verdict for _, verdict in judged),
            flags=tuple(_flags(homework, judged, twin if twin != name else "", earlier)),
        )


def _flags(
    homework: Homework, judged: Sequence[tuple[HomeworkAnswer, Verdict]], twin: str, earlier: str
) -> Iterator[str]:
    if twin:
        yield tr("It is the same file as {twin}.").format(twin=twin)
    if homework.version != __version__:
        yield tr("It was made by version {version}.").format(version=homework.version)
    if not homework.name.strip():
        yield tr("It has no name.")
    for claimed, (answer, verdict) in zip(homework.answers, judged, strict=True):
        if verdict.state in (DIFFERS, REFUSED):
            yield tr("Step {step}: {why}").format(step=answer.step, why=verdict.why)
        if answer.right is not None and answer.right != claimed.right:
            pattern = (
                tr("Step {step}: The homework calls the prediction wrong, but it is right.")
                if answer.right
                else tr("Step {step}: The homework calls the prediction right, but it is wrong.")
            )
            yield pattern.format(step=answer.step)
        if (answer.kind, answer.answer, answer.update) != (claimed.kind, claimed.answer, claimed.update):
            yield tr("Step {step}: The question in the homework is not that of the lesson.").format(step=answer.step)
    if earlier and not twin:
        yield tr("It counts instead of {earlier}, which has the same name and lesson.").format(earlier=earlier)
