"""The manifest of a session: its runs, the window's layout, the available controls, and notes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from grpo_core import __version__
from grpo_core.config import Settings, settings_from_json
from grpo_core.errors import GrpoError
from grpo_core.parsing import ParseError, from_json, is_number, is_whole
from grpo_core.runs.meta import written_by
from grpo_core.text import plural, tr

FORMAT, VERSION = "grpo-lab-session", 1
MOST_RUNS = 200
LONGEST_NAME, LONGEST_LIST, LONGEST_NOTES = 200, 500, 1_000_000


class SessionError(GrpoError):
    """Raised if a session file cannot be read or written. The message names the file and a remedy."""


@dataclass(frozen=True, kw_only=True)
class SessionRun:
    """A run of a session.

    Attributes:
        listed: whether it is opened; False for a run that only provides the first updates of a branch.
    """

    title: str
    listed: bool = True


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of a session's manifest.

    Attributes:
        runs: the runs, in the order of the files.
        shown: index of the run that is shown, None for a new run under ``settings``.
        settings: settings shown by the controls, None for those of the run.
        layout: name of a layout; unknown names are ignored.
        panels: ids of the panels that are shown; empty for those of the layout.
        locked, hidden: dotted paths of settings that are read-only or hidden; ``policy`` and ``algorithm`` mean the two
            selectors at the top.
        lesson: id of the current lesson; empty if there is none.
        lesson_step: current step of the lesson, counted from 0.
        course: ids of the lessons of a course, in order; empty if there is none.
        created: seconds since 1970.

    Raises:
        SessionError: a field has the wrong type or is too long.
    """

    runs: tuple[SessionRun, ...] = ()
    shown: int | None = None
    step: int = 0
    settings: Settings | None = None
    layout: str = ""
    panels: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    notes: str = ""
    lesson: str = ""
    lesson_step: int = 0
    course: tuple[str, ...] = ()
    created: float = 0.0
    version: str = __version__

    def __post_init__(self) -> None:
        if len(self.runs) > MOST_RUNS:
            raise SessionError(
                plural(
                    "A session can contain at most {most_runs} run, not {count}.",
                    "A session can contain at most {most_runs} runs, not {count}.",
                    MOST_RUNS,
                ).format(most_runs=MOST_RUNS, count=len(self.runs))
            )
        for run in self.runs:
            _check_text("title", run.title)
            _check(isinstance(run.listed, bool), "listed", run.listed, tr("true or false"))
        fits = self.shown is None or is_whole(self.shown, 0, max(len(self.runs) - 1, 0))
        _check(fits, "shown", self.shown, tr("the place of a run in the list"))
        _check(is_whole(self.step, 0, 2**53 - 1), "step", self.step, tr("an update, counted from 0"))
        _check(is_whole(self.lesson_step, 0, 2**53 - 1), "lesson_step", self.lesson_step, tr("a step, counted from 0"))
        for name in ("layout", "lesson", "version"):
            _check_text(name, getattr(self, name))
        _check_text("notes", self.notes, LONGEST_NOTES)
        for name in _LISTS:
            texts = getattr(self, name)
            _check(
                len(texts) <= LONGEST_LIST,
                name,
                plural("{count} entry", "{count} entries", len(texts)).format(count=len(texts)),
                tr("a list of at most {longest_list} entries").format(longest_list=LONGEST_LIST),
            )
            for text in texts:
                _check_text(name, text)
        moment = is_number(self.created) and abs(self.created) < 1e15  # NaN is not
        _check(moment, "created", self.created, tr("a number of seconds"))


def manifest_text(manifest: Manifest) -> str:
    """Return ``manifest`` as JSON, to be read by :func:`manifest_from`."""
    stored: dict[str, Any] = {name: getattr(manifest, name) for name in _PLAIN}
    stored |= {name: list(getattr(manifest, name)) for name in _LISTS}
    stored["runs"] = [{"title": run.title, "listed": run.listed} for run in manifest.runs]
    stored["settings"] = None if manifest.settings is None else json.loads(manifest.settings.stored())
    if manifest.settings is not None:
        stored["needs"] = manifest.settings.needs
    return json.dumps({"format": FORMAT, "format_version": VERSION, **stored}, indent=1)


_PLAIN = ("shown", "step", "layout", "notes", "lesson", "lesson_step", "created", "version")
_LISTS = ("panels", "locked", "hidden", "course")


def manifest_from(content: bytes, name: str) -> Manifest:
    """Parse a manifest written by :func:`manifest_text`. ``name`` is the file's name, for messages. Unknown keys are
    ignored.

    Raises:
        SessionError: it is damaged, not a manifest, or written by a newer version.
    """
    try:
        stored = from_json(content)
    except ParseError:
        raise SessionError(tr("The manifest of {name} is damaged: it is not JSON.").format(name=name)) from None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise SessionError(tr("The manifest of {name} is not the manifest of a GRPO Lab session.").format(name=name))
    version = stored.get("format_version")
    if not is_whole(version, 1):
        raise SessionError(tr("The manifest of {name} is damaged: it does not name its format.").format(name=name))
    if version > VERSION:
        raise SessionError(
            tr("{name} was written by a newer version of GRPO Lab; update the program to open it.").format(name=name)
        )
    try:
        fields: dict[str, Any] = {key: stored[key] for key in _PLAIN if key in stored}
        for key in _LISTS:
            value = stored.get(key, [])
            _check(isinstance(value, list), key, value, tr("a list of texts"))
            fields[key] = tuple(value)
        rows, settings = stored.get("runs", []), stored.get("settings")
        good = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
        _check(good, "runs", rows, tr("a list of runs"))
        runs = tuple(SessionRun(title=row.get("title", ""), listed=row.get("listed", True)) for row in rows)
        if settings is not None:
            settings = settings_from_json(json.dumps(settings), written_by(stored))
        return Manifest(runs=runs, settings=settings, **fields)
    except GrpoError as error:
        raise SessionError(
            tr("The manifest of {name} cannot be used: {error}").format(name=name, error=error)
        ) from None


def _check_text(name: str, value: object, longest: int = LONGEST_NAME) -> None:
    good = isinstance(value, str) and "\0" not in value and len(value) <= longest
    _check(
        good,
        name,
        value,
        plural("a text of at most {longest:,} character", "a text of at most {longest:,} characters", longest).format(
            longest=longest
        ),
    )


def _check(good: bool, name: str, value: object, allowed: str) -> None:
    if not good:
        shown = str(value)
        raise SessionError(
            tr("{name} is {shown}{value}; it must be {allowed}.").format(
                name=name, shown=shown[:60], value="…" if len(shown) > 60 else "", allowed=allowed
            )
        )
