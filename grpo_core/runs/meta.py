"""The metadata of a run file: the program that wrote it, its settings, and the meaning of its numbers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_core.config import Settings, settings_from_json
from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.record import Origin
from grpo_core.runs.database import RunConnection
from grpo_core.runs.layout import packed, unpacked
from grpo_core.runs.limits import LONGEST_META, LONGEST_TITLE, MOST_META_ROWS, MOST_UPDATES
from grpo_core.text import tr
from grpo_core.versions import newest

_LAST_MOMENT = 32_503_680_000.0
"""The year 3000, in seconds since 1970. Later times cannot be displayed everywhere."""
NEEDS = "needs"
"""Key for the oldest version of the program that supports every setting of the run.

Files of the first versions lack it.
"""
_ORIGIN_ARRAYS = ("dist_logp", "ref_dist_logp", "action_rewards")
_ORIGIN_TEXTS = ("vocabulary", "prompts", "context_names", "reward_names", "watched")


@dataclass(frozen=True, kw_only=True)
class RunMeta:
    """Metadata of a run.

    Attributes:
        id: identifier of the run, independent of the file's path and shared by copies.
        created: seconds since 1970.
        settings: settings at the start of the run (for a branch: those with which it continued).
        parent: (run id, update) from which this run branched off, None for an independent run.
        parent_path: path of the parent when this run branched off, as a hint.
        ended: whether it was closed properly; False while it is written and after a crash.
    """

    id: str
    title: str
    created: float
    settings: Settings
    parent: tuple[str, int] | None = None
    parent_path: str = ""
    ended: bool = False
    version: str = ""


def meta_rows(meta: RunMeta, origin: Origin) -> dict[str, Any]:
    """Return the rows of the table ``meta`` by key, except the names of the series."""
    parent, point = meta.parent or (None, None)
    texts = {name: getattr(origin, name) for name in _ORIGIN_TEXTS}
    return {
        "id": meta.id,
        "title": meta.title,
        "created": meta.created,
        "settings": meta.settings.stored(),
        NEEDS: newest(meta.settings.needs, origin.settings.needs),
        "seed": str(meta.settings.seed),  # a seed may exceed SQLite's integers
        "parent": parent,
        "parent_step": point,
        "parent_path": meta.parent_path,
        "ended": int(meta.ended),
        "version": meta.version,
        "origin": json.dumps({"settings": origin.settings.stored(), **texts}),
    }


def all_rows(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the table ``meta`` as a dictionary.

    Raises:
        RunFileError: it has more or longer rows than the program ever writes.
    """
    rows = connection.execute(
        "SELECT key, value FROM meta WHERE length(value) IS NULL OR length(value) <= ? LIMIT ?",
        (LONGEST_META, MOST_META_ROWS + 1),
    ).fetchall()
    if len(rows) > MOST_META_ROWS:
        raise RunFileError(tr("The run describes itself at greater length than any run does; the file is damaged."))
    return dict(rows)


def meta_from(rows: Mapping[str, Any]) -> RunMeta:
    """Parse the metadata stored by :func:`meta_rows`.

    Raises:
        RunFileError: something is missing, or this version does not support the settings.
    """
    try:
        point = rows["parent_step"]
        return RunMeta(
            id=_text(rows, "id"),
            title=_title(_text(rows, "title")),
            created=_moment(rows["created"]),
            settings=stored_settings(rows["settings"], written_by(rows)),
            parent=None if point is None else (_text(rows, "parent"), _whole(point)),
            parent_path=_text(rows, "parent_path"),
            ended=bool(rows["ended"]),
            version=_text(rows, "version"),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunFileError(
            tr("The run's description cannot be read ({error}); the file is damaged.").format(
                error=shortened(repr(error))
            )
        ) from None


def _text(rows: Mapping[str, Any], key: str) -> str:
    value = rows[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is not text")
    return value


def _title(text: str) -> str:
    """Return ``text`` as a title for display: one line of limited length."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return shortened(text, LONGEST_TITLE)


def _moment(value: object) -> float:
    if not isinstance(value, (int, float)) or not 0 <= value < _LAST_MOMENT:
        raise ValueError("its time of creation is not valid")
    return float(value)


def _whole(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= MOST_UPDATES:
        raise ValueError(f"{str(value)[:40]} is not an update")
    return value


def written_by(rows: Mapping[str, Any]) -> str:
    """Return the newer of the version that created the file and the one that its settings need."""
    return newest(*(text for text in (rows.get("version"), rows.get(NEEDS), "") if isinstance(text, str)))


def raise_needs(connection: sqlite3.Connection | RunConnection, *needs: str) -> None:
    """Store the oldest version that can read the run, if it is newer than the stored one."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (NEEDS,)).fetchone()
    said = row[0] if row is not None and isinstance(row[0], str) else ""
    wanted = newest(said, *needs)
    if wanted != said:
        connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (NEEDS, wanted))


def stored_settings(text: str, version: str) -> Settings:
    """Parse settings from a run file that ``version`` of the program wrote.

    Raises:
        RunFileError: this version cannot use them.
    """
    try:
        return settings_from_json(text, version)
    except GrpoError as error:
        raise RunFileError(tr("The settings in the run file cannot be used: {error}").format(error=error)) from None


def origin_record(origin: Origin) -> tuple[str, bytes]:
    """Return the arrays of ``origin`` as (layout in JSON, record)."""
    return packed({name: getattr(origin, name) for name in _ORIGIN_ARRAYS})


def origin_from(rows: Mapping[str, Any], arrays: tuple[str, bytes]) -> Origin:
    """Parse the origin stored by :func:`meta_rows` and :func:`origin_record`.

    Raises:
        RunFileError: the file is damaged.
    """
    try:
        stored = json.loads(_text(rows, "origin"))
        if not isinstance(stored, dict):
            raise TypeError("it is not an object")
        texts: dict[str, Any] = {name: tuple(stored.get(name, ())) for name in _ORIGIN_TEXTS}
        if not all(isinstance(text, str) for values in texts.values() for text in values):
            raise TypeError("what should be texts are not texts")
        settings = stored_settings(stored["settings"], written_by(rows))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise RunFileError(
            tr("The run's start cannot be read ({error}); the file is damaged.").format(error=shortened(repr(error)))
        ) from None
    known: dict[str, Any] = {k: v for k, v in unpacked(*arrays).items() if k in _ORIGIN_ARRAYS}
    if settings.is_language and known:
        raise RunFileError(tr("The start of a language model's run contains a bandit's tables; the file is damaged."))
    if any(array.ndim != 2 or 0 in array.shape for array in known.values()):
        raise RunFileError(tr("The tables of the run's start have no rows or columns; the file is damaged."))
    return Origin(settings=settings, **texts, **known)
