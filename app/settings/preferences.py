"""The user's preferences: one frozen object that is stored as a JSON file, and the store that keeps it.

An unreadable preference is reset without affecting the others, and is named in a message.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer, soon
from app.settings.files import reason, write_atomically, write_or_say
from app.workspace.player import BANDIT, LANGUAGE, Tempo
from grpo_core.breakpoints import Breakpoint, breakpoint_from_json
from grpo_core.config.fields import check, described, setting
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.text import plural, tr

RECENT = 10
"""Number of recent files kept."""
MOST_BREAKPOINTS = 100
MOST_TABLES = 20
"""Number of kinds of tables for which the meanings of the columns are kept."""
LONGEST = 4096
"""Maximum number of characters of a text."""
LARGEST = 1_000_000
"""Maximum size in bytes of a preferences file."""
SPEEDS: tuple[float | None, ...] = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, None)
"""Available speeds, in updates per second. None means as fast as the machine can."""


def _speed(tempo: Tempo, title: str, whose: str) -> Any:
    return setting(
        tempo.speed,
        tr("Updates per second of {whose}; leave it empty for as fast as possible.").format(whose=whose),
        title,
        unit=tr("updates per second"),
        above=0,
        high=1000,
        usual=(1, 30),
        optional=True,
    )


def _length(tempo: Tempo, title: str, whose: str) -> Any:
    return setting(
        tempo.length,
        tr("A run of {whose} pauses after this many more updates; leave it empty for no limit.").format(whose=whose),
        title,
        unit=tr("updates"),
        limits=(1, 10**9),
        usual=(1, 1000),
        optional=True,
    )


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """The user's choices that are kept between sessions. The text next to each field is its only help text.

    Raises:
        SettingsError: a field is outside its range.
    """

    theme: str = setting(
        "system",
        tr("Colours: those of the system, light, dark, for a projector, or with the highest contrast."),
        tr("Theme"),
        choices=("system", "light", "dark", "projector", "contrast"),
    )
    scale: float = setting(
        1.0, tr("Size of everything in the window."), tr("Scale"), limits=(0.8, 2.5), usual=(0.8, 2.5)
    )
    reduced_motion: bool = setting(False, tr("Changes appear at once, without animation."), tr("Reduced motion"))
    speed: float | None = _speed(BANDIT, tr("Speed"), tr("a bandit"))
    run_length: int | None = _length(BANDIT, tr("Run length"), tr("a bandit"))
    language_speed: float | None = _speed(LANGUAGE, tr("Speed of language models"), tr("a language model"))
    language_run_length: int | None = _length(LANGUAGE, tr("Run length of language models"), tr("a language model"))
    size_limit: float = setting(
        2.0, tr("A run pauses when its file reaches this size."), tr("Size limit"), unit="GB", limits=(0.01, 10_000)
    )
    kept_runs: int = setting(
        20,
        tr("Number of unsaved runs to keep before the program offers to delete some."),
        tr("Kept runs"),
        unit=tr("runs"),
        limits=(1, 100_000),
    )
    kept_size: float = setting(
        5.0,
        tr("Total size of unsaved runs to keep before the program offers to delete some."),
        tr("Kept size"),
        unit="GB",
        limits=(0.01, 10_000),
    )
    language: str = ""
    on_cluster: bool = False
    cluster: str = ""
    layout: str = "Bandit"
    door: str = ""
    python: str = ""
    everything: bool = False
    breakpoints: tuple[Breakpoint, ...] = ()
    recent: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    last_run: str | None = None

    def __post_init__(self) -> None:
        check(self)
        for name in ("layout", "cluster", "door", "language", "python"):
            _check_text(name, getattr(self, name))
        for name in ("on_cluster", "everything"):
            if not isinstance(getattr(self, name), bool):
                raise SettingsError(name, getattr(self, name), tr("allowed is yes or no"))
        if self.last_run is not None:
            _check_text("last_run", self.last_run)
        _check_list("recent", self.recent, RECENT, str)
        _check_list("tables", self.tables, MOST_TABLES, str)
        _check_list("breakpoints", self.breakpoints, MOST_BREAKPOINTS, Breakpoint)

    @property
    def tempi(self) -> dict[bool, Tempo]:
        """Speed and length of runs, for bandits (False) and for language models (True)."""
        language = Tempo(speed=self.language_speed, length=self.language_run_length)
        return {False: Tempo(speed=self.speed, length=self.run_length), True: language}

    def with_tempi(self, tempi: Mapping[bool, Tempo]) -> Preferences:
        bandit, language = tempi[False], tempi[True]
        return self.replace(
            speed=bandit.speed,
            run_length=bandit.length,
            language_speed=language.speed,
            language_run_length=language.length,
        )

    def replace(self, **changes: Any) -> Preferences:
        """Return a copy with ``changes``, validated like a new object."""
        return dataclasses.replace(self, **changes)

    def with_recent(self, path: Path) -> Preferences:
        """Return a copy in which ``path`` is the most recent file."""
        others = [name for name in self.recent if name != str(path)]
        return self.replace(recent=(str(path), *others)[:RECENT])

    def columns_of(self, table: str) -> str:
        """Return what the user said that the columns of a kind of table mean, or an empty text.

        ``table``: a key without spaces (:func:`grpo_core.trainers.columns.key_of`).
        """
        return next((entry.partition(" ")[2] for entry in self.tables if entry.startswith(f"{table} ")), "")

    def with_columns(self, table: str, columns: str) -> Preferences:
        """Return a copy that keeps what the columns of a kind of table mean. Texts too long to be kept are left out."""
        others = [entry for entry in self.tables if not entry.startswith(f"{table} ")]
        fresh = [entry for entry in (f"{table} {columns}",) if len(entry) <= LONGEST and "\0" not in entry]
        return self.replace(tables=(*fresh, *others)[:MOST_TABLES])


WITHDRAWN = ("thinning",)
"""Preferences of earlier versions. They are ignored without a message."""


def load_preferences(path: Path) -> tuple[Preferences, tuple[str, ...]]:
    """Return the preferences in ``path``, and a sentence for each preference that had to be reset.

    This function never raises an exception.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return Preferences(), ()
    except OSError as error:
        return Preferences(), (
            tr("The preferences in {path} could not be read: {error}. The defaults are used.").format(
                path=path, error=reason(error)
            ),
        )
    preferences, problems = _parsed(content)
    if problems:
        problems = (*problems, _kept_copy(path, content))
    return preferences, problems


def save_preferences(preferences: Preferences, path: Path) -> str | None:
    """Write the preferences that differ from their defaults. Return an error message if that fails.

    This function never raises an exception.
    """
    usual = dataclasses.asdict(Preferences())
    chosen = {name: value for name, value in dataclasses.asdict(preferences).items() if value != usual[name]}
    text = json.dumps(chosen, indent=1)
    return write_or_say(path, text.encode("ascii"), tr("Preferences"))


def _parsed(content: bytes) -> tuple[Preferences, tuple[str, ...]]:
    """Parse the preferences in the content of a file, key by key. Also return sentences about those that were reset."""
    try:
        if len(content) > LARGEST:
            raise ValueError
        stored = json.loads(content)
        if not isinstance(stored, dict):
            raise ValueError
    except (ValueError, RecursionError):
        return Preferences(), (tr("The preferences file is damaged; all preferences were reset."),)
    preferences, problems = Preferences(), []
    known = {field.name for field in dataclasses.fields(Preferences)}
    for name, value in stored.items():
        if name in WITHDRAWN:
            continue
        if name not in known:
            problems.append(
                tr("The preference “{name}” is unknown to this version and was left out.").format(name=_short(name))
            )
            continue
        try:
            preferences = preferences.replace(**{name: _stored(name, value)})
        except SettingsError:
            problems.append(
                tr("The preference “{name}” had the invalid value {value}; it was reset.").format(
                    name=title(name), value=_short(value)
                )
            )
    return preferences, tuple(problems)


def _stored(name: str, value: Any) -> Any:
    """Convert the value of the preference ``name`` from its JSON form."""
    if not isinstance(value, list):
        return value
    return tuple(map(breakpoint_from_json, value)) if name == "breakpoints" else tuple(value)


def title(name: str) -> str:
    """Return the displayed name of the preference ``name``."""
    rules = dict(described(Preferences))
    return rules[name].title if name in rules else name.replace("_", " ").capitalize()


def _kept_copy(path: Path, content: bytes) -> str:
    """Save the content of a damaged preferences file next to it, and return a sentence that says where."""
    backup = path.with_suffix(".bad.json")
    try:
        write_atomically(backup, content)
    except OSError as error:
        return tr("The old file could not be kept: {error}.").format(error=reason(error))
    return tr("The old file is kept as {backup}.").format(backup=backup)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _check_list(name: str, values: object, most: int, kind: type) -> None:
    if not isinstance(values, tuple) or len(values) > most or not all(isinstance(value, kind) for value in values):
        raise SettingsError(
            name,
            values,
            plural(
                "allowed is a list of at most {most} entry", "allowed is a list of at most {most} entries", most
            ).format(most=most),
        )
    for value in values if kind is str else ():
        _check_text(name, value)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or "\0" in value or len(value) > LONGEST:
        raise SettingsError(name, value, tr("allowed is a text"))


SETTLE_MS = 2000
"""Milliseconds between the last change and the writing of the preferences."""


class PreferenceStore(QObject):
    """Keeps a window's preferences and stores them in their file.

    Signals:
        changed: emitted after a change.
        recent_changed: emitted when the list of recent files has changed.
        refused: emitted with the reason, as a sentence, if the preferences could not be written.
    """

    refused = Signal(str)
    changed = Signal()
    recent_changed = Signal()

    def __init__(self, current: Preferences, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.current = current
        self._path = path
        self._later = Timer(self, self.save, SETTLE_MS)

    def put(self, preferences: Preferences) -> None:
        """Replace the preferences. They are written shortly afterwards."""
        self.current = preferences
        self.changed.emit()
        self._later.start()

    def change(self, **changes: Any) -> None:
        """Change some preferences.

        Raises:
            SettingsError: a value is outside its range; nothing is changed.
        """
        self.put(self.current.replace(**changes))

    def remember(self, path: Path) -> None:
        """Make a run or a session, which was opened or saved, the first of the recent files."""
        try:
            self.put(self.current.with_recent(path.absolute()))
        except GrpoError:
            return  # a path too long to be stored
        self.recent_changed.emit()

    def forget(self, path: str) -> None:
        self.change(recent=tuple(name for name in self.current.recent if name != path))
        soon(self, self.recent_changed.emit)  # not while the command that would open it is running

    @Slot()
    def save(self) -> None:
        """Write the preferences to their file now."""
        self._later.stop()
        sentence = save_preferences(self.current, self._path)
        if sentence:
            self.refused.emit(sentence)
