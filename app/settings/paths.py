"""The folders to which the program writes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.folders import HOME_VARIABLE, KINDS, PREFERENCES, wanted_folders
from app.settings.files import reason
from grpo_core.errors import GrpoError
from grpo_core.text import enumeration, tr

_PURPOSE = {
    "data": tr("runs"),
    "config": tr("preferences"),
    "cache": tr("temporary pictures"),
    "log": tr("log files"),
}


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Four existing, writable folders.

    Attributes:
        data: folder of runs that are saved automatically.
        config: folder of preferences and window layouts.
        cache: folder of files that can be regenerated if they are missing.
        log: folder of log files.
        problems: a sentence if folders had to be replaced by temporary ones; otherwise empty.
    """

    data: Path
    config: Path
    cache: Path
    log: Path
    problems: tuple[str, ...] = ()

    @property
    def preferences(self) -> Path:
        return self.config / PREFERENCES

    @property
    def update_times(self) -> Path:
        """The file with measured update times of models from folders."""
        return self.cache / "update_times.json"

    @property
    def layouts(self) -> Path:
        return self.config / "layouts"

    @property
    def lessons(self) -> Path:
        """The folder of the user's own lessons. It does not exist until the first lesson is added."""
        return self.data / "lessons"

    @property
    def runs(self) -> Path:
        return self.data / "runs"


def find_paths(environment: Mapping[str, str] = os.environ) -> Paths:
    """Return the user's folders, which are created if needed.

    An unwritable folder is replaced by a temporary one and reported.

    Raises:
        GrpoError: no folder can be written, not even a temporary one.
    """
    wanted = wanted_folders(environment)
    refused = {kind: why for kind, folder in wanted.items() if (why := _refusal(folder))}
    if not refused:
        return _paths(wanted)
    try:
        root = Path(tempfile.mkdtemp(prefix="grpo-lab-"))
    except OSError as error:
        kind, why = next(iter(refused.items()))
        raise GrpoError(
            tr(
                "GRPO Lab cannot find a folder to write to: {place} cannot be written ({why}), and neither "
                "can a folder for temporary files ({temporary}). Set {variable} to a folder that can be "
                "written, and start it again."
            ).format(place=wanted[kind], why=why, temporary=reason(error), variable=HOME_VARIABLE)
        ) from None
    for kind in refused:
        (root / kind).mkdir()
    sentence = _sentence({kind: (wanted[kind], why) for kind, why in refused.items()}, root)
    return _paths(wanted | {kind: root / kind for kind in refused}, sentence)


def _paths(folders: Mapping[str, Path], *problems: str) -> Paths:
    data, config, cache, log = (folders[kind] for kind in KINDS)
    return Paths(data=data, config=config, cache=cache, log=log, problems=problems)


def _sentence(refused: Mapping[str, tuple[Path, str]], root: Path) -> str:
    """Return a sentence that says which folders cannot be used, why, and what is used instead."""
    names = [_PURPOSE[kind] for kind in refused]
    places, reasons = zip(*refused.values(), strict=True)
    if len(names) == 1:
        return tr(
            "The folder for {what}, {place}, cannot be written: {reason}. Until this is fixed, {root} is used instead, "
            "which the system may clear."
        ).format(what=names[0], place=places[0], reason=reasons[0], root=root)
    one_drive = len({place.drive for place in places}) == 1
    shown = tr("below {place}").format(place=os.path.commonpath(places)) if one_drive else ", ".join(map(str, places))
    return tr(
        "The folders for {names}, {places}, cannot be written: {reason}. Until this is fixed, {root} is used instead, "
        "which the system may clear."
    ).format(names=enumeration(names), places=shown, reason=reasons[0], root=root)


def _refusal(folder: Path) -> str:
    """Return the reason why ``folder`` cannot be written, or an empty string if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # permissions alone are not enough: a network share or a mount may refuse what the mode bits allow
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return reason(error)
