"""The file of one student's homework: JSON below 64 KB."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grpo_core import __version__
from grpo_core.errors import GrpoError
from grpo_core.explain import Quantity
from grpo_core.parsing import ParseError, from_json
from grpo_core.regular_file import read_limited
from grpo_core.teaching.lessons import KINDS, Answer
from grpo_core.text import plural, tr

FORMAT = "grpo-lab-homework-1"
ENDING = ".homework.json"
LARGEST = 64 * 1024
"""Maximum size of a file in bytes."""
LONGEST_NAME, LONGEST_TEXT, MOST_ANSWERS, MOST_RUNS = 200, 4000, 64, 16


class HomeworkError(GrpoError):
    """Raised if a homework file cannot be read. The message says why."""


@dataclass(frozen=True, kw_only=True)
class HomeworkAnswer:
    """A student's answer to one question.

    Attributes:
        step: step of the lesson, counted from 1.
        kind: direction, number, choice or ghost.
        guess: the prediction: a number, −1, 0 or 1, or the index of a choice; None if it was skipped.
        said: the guess in words.
        right: whether the guess was correct; None if that cannot be judged, never None in a file.
        value: the number that the run gave according to the file; None if there was none.
        answer: where to find that number in the run.
        update: update of the step, used if the answer does not name one.
        settings: settings of the run, as :meth:`Settings.stored`; empty for a recorded run.
    """

    step: int
    kind: str
    guess: float | None
    said: str
    right: bool | None
    value: float | None
    answer: Answer
    update: int
    settings: str


@dataclass(frozen=True, kw_only=True)
class Homework:
    """The homework of one student.

    Attributes:
        name: the student's name as typed.
        lesson: the lesson's id.
        title: the lesson's question.
        digest: digest of the lesson's file, which distinguishes editions.
        answers: one for each question that was answered or skipped.
        conclusion: what was learned, in the student's words.
        version: version of the program that wrote the file.
        language: code of the language of title, answers in words and conclusion, such as “zh-CN”.
    """

    name: str
    lesson: str
    title: str
    digest: str
    answers: tuple[HomeworkAnswer, ...] = ()
    conclusion: str = ""
    version: str = __version__
    language: str = "en"

    def to_bytes(self) -> bytes:
        """Return the file's content. Settings shared by several answers are stored once.

        Raises:
            HomeworkError: the content is 64 KB or longer.
        """
        runs = list(dict.fromkeys(answer.settings for answer in self.answers))
        stored: dict[str, Any] = {"format": FORMAT, **asdict(self), "runs": runs}
        for answer in stored["answers"]:
            answer["settings"] = runs.index(answer["settings"])
        content = well_formed(json.dumps(stored, ensure_ascii=False, indent=1, allow_nan=False)).encode("utf-8")
        if len(content) >= LARGEST:
            raise HomeworkError(tr("The homework would be larger than 64 KB; shorten what you have written."))
        return content


def well_formed(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced, which no file and no terminal can contain."""
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def read_homework(path: Path) -> tuple[Homework, bytes]:
    """Read the homework in a file. Also returns the file's content.

    Raises:
        HomeworkError: it is not a homework file, or too large; the message says why.
    """
    try:
        content = read_limited(path, LARGEST - 1)
    except (OSError, ValueError) as error:
        raise HomeworkError(tr("It cannot be read: {error}.").format(error=getattr(error, "strerror", error))) from None
    if content is None:
        raise HomeworkError(tr("It is larger than 64 KB."))
    try:
        return _homework(from_json(content, constant=_refuse)), content
    except ParseError as error:
        why = tr("It is nested too deeply.") if error.nested else tr("It is not JSON.")
        raise HomeworkError(why) from None


def _refuse(constant: str) -> None:
    raise HomeworkError(tr("It contains {constant}, which is not a number.").format(constant=constant))


def _homework(data: Any) -> Homework:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise HomeworkError(tr("It is not a homework file of this program."))
    rows, runs = data.get("answers"), data.get("runs")
    if not isinstance(rows, list) or not isinstance(runs, list) or len(rows) > MOST_ANSWERS or len(runs) > MOST_RUNS:
        raise HomeworkError(tr("Its answers are damaged."))
    return Homework(
        name=_text(data, "name", LONGEST_NAME),
        lesson=_text(data, "lesson", LONGEST_NAME),
        title=_text(data, "title", LONGEST_NAME),
        digest=_text(data, "digest", LONGEST_NAME),
        answers=tuple(_answer(row, runs) for row in rows),
        conclusion=_text(data, "conclusion", LONGEST_TEXT),
        version=_text(data, "version", LONGEST_NAME),
        language=_text({"language": "en", **data}, "language", LONGEST_NAME),  # absent in earlier versions
    )


def _answer(row: Any, runs: list[Any]) -> HomeworkAnswer:
    kind = _text(row, "kind", LONGEST_NAME)
    if kind not in KINDS:
        raise HomeworkError(tr("“{kind}” is not a kind of question.").format(kind=kind[:40]))
    place = _whole(row, "settings")
    if place >= len(runs) or not isinstance(runs[place], str):
        raise HomeworkError(tr("The settings of one of its runs are missing."))
    address = _of(row, "answer", dict)
    quantity = address.get("quantity")
    if quantity is not None:
        quantity = Quantity(
            name=_text(quantity, "name", LONGEST_NAME),
            passed=_whole(quantity, "passed"),
            **{
                part: None if quantity.get(part) is None else _whole(quantity, part)
                for part in ("row", "token", "context", "action", "group")
            },
        )
    return HomeworkAnswer(
        step=_whole(row, "step"),
        kind=kind,
        guess=_number(row, "guess"),
        said=_text(row, "said", LONGEST_NAME),
        right=_of(row, "right", bool),
        value=_number(row, "value"),
        update=_whole(row, "update"),
        settings=well_formed(runs[place]),
        answer=Answer(
            metric=_text(address, "metric", LONGEST_NAME),
            quantity=quantity,
            check=_text(address, "check", LONGEST_NAME),
            update=None if address.get("update") is None else _whole(address, "update"),
            since=None if address.get("since") is None else _whole(address, "since"),
        ),
    )


def _of(data: Any, key: str, kind: type) -> Any:
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise HomeworkError(tr("“{key}” is missing or damaged.").format(key=key))
    return value


def _text(data: Any, key: str, longest: int) -> str:
    text = well_formed(_of(data, key, str))
    if len(text) > longest:
        raise HomeworkError(
            plural(
                "“{key}” is longer than {longest} character.", "“{key}” is longer than {longest} characters.", longest
            ).format(key=key, longest=longest)
        )
    return text


def _whole(data: Any, key: str) -> int:
    whole: int = _of(data, key, int)
    if not 0 <= whole <= 1_000_000:
        raise HomeworkError(tr("“{key}” is out of range.").format(key=key))
    return whole


def _number(data: Any, key: str) -> float | None:
    value = data.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or not math.isfinite(value):
        raise HomeworkError(tr("“{key}” is not a number.").format(key=key))
    return float(value)
