"""A run as plain tables: a folder of CSV and JSON files that any other program can read, and one update as a script.

``series.csv`` has one row per update, ``samples.csv`` one row per sampled token and pass, and ``settings.json`` every
version of the run's settings with the first update to which it applied. Numbers are written in full, as the shortest
representation that reads back as the same float.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from grpo_core import __version__, step_table
from grpo_core.csv_file import CsvWriter
from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.export.script import step_script
from grpo_core.metrics import METRICS
from grpo_core.record import Origin, Step
from grpo_core.regular_file import refuse_existing
from grpo_core.runs.files import replacing
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.runs.thinning import stretch_at, stretches_text
from grpo_core.text import tr

FILES = ("series.csv", "settings.json", "samples.csv")
"""The files of an exported run, in the order of writing."""
LOG_PROBABILITIES = ("old_logp", "logp", "ref_logp")
NUMBERS = ("reward", "advantage", "ratio", "clipped", "surrogate", "kl", "weight", "token_loss", "gradient")
PLACES = ("update", "pass", "sample", "group", "prompt", "completion", "place", "token")


def export_folder(
    reader: RunReader,
    folder: Path,
    *,
    steps: range | None = None,
    force: bool = False,
    poll: Callable[[], None] = lambda: None,
) -> tuple[int, list[str]]:
    """Write a run as CSV into ``folder``, which is created if it does not exist.

    Args:
        reader: the run; for a branch, the earlier updates are read from its parent run.
        folder: the folder; other files in it are not touched.
        steps: the updates in ``samples.csv``; all by default.
        force: whether to replace the three files if they exist.
        poll: called once per update; can raise an exception to stop. Each file is then either complete or absent.

    Returns:
        The number of updates in ``samples.csv``, and a sentence for each reason why others are missing there.

    Raises:
        GrpoError: the run cannot be read, the folder cannot be written, or a file exists.
    """
    targets = [folder / name for name in FILES]
    with closing(Lineage(reader, reader.path.parent)) as lineage:
        refuse_existing(targets, force)
        wanted = checked(steps, reader) if steps is not None else range(1, reader.last + 1)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFileError(
                tr("The folder {folder} cannot be created: {reason}.").format(folder=folder, reason=error.strerror)
            ) from None
        with _writing(targets[0]) as file:
            _write_series(file, reader)
        with _writing(targets[1]) as file:
            json.dump(_described(reader), file, indent=2, ensure_ascii=False)
            file.write("\n")
        left_out: list[str] = []
        with _writing(targets[2]) as file:
            count = _write_samples(file, lineage, wanted, left_out, poll)
    return count, left_out


def export_step(
    reader: RunReader, target: Path, number: int, *, passed: int | None = None, force: bool = False
) -> None:
    """Write update ``number`` of a run as a NumPy-only script. ``passed`` selects one pass, counted from 0.

    Raises:
        GrpoError: the update cannot be read, or ``target`` cannot be written or exists.
        NotRecordedError: the run was imported from a source without tokens.
        SettingsError: the update cannot be recomputed from what is recorded.
    """
    with closing(Lineage(reader, reader.path.parent)) as lineage:
        refuse_existing([target], force)
        if not target.parent.is_dir():
            raise RunFileError(tr("There is no folder {folder}; choose one that exists.").format(folder=target.parent))
        step = lineage.step(number)
        if passed is not None and not 0 <= passed < step.passes:
            sentence = tr("Update {number} has no pass {asked}; it has passes 1 to {last}.")
            raise RunFileError(sentence.format(number=number, asked=passed + 1, last=step.passes))
        passes = None if passed is None else (passed,)
        text = step_script(step, reader.origin, title=reader.meta.title, passes=passes)
    with _writing(target) as file:
        file.write(text)


def checked(steps: range, reader: RunReader) -> range:
    """Return ``steps`` if the run has them all.

    Raises:
        RunFileError: it does not.
    """
    if not reader.last:
        raise RunFileError(tr("{name} has no updates yet.").format(name=reader.path.name))
    for step in (steps[0], steps[-1]):
        if not 1 <= step <= reader.last:
            sentence = tr("{name} has no update {step}; it has updates 1 to {last}.")
            raise RunFileError(sentence.format(name=reader.path.name, step=step, last=reader.last))
    return steps


@contextmanager
def _writing(path: Path) -> Iterator[IO[str]]:
    """Open a text file that replaces ``path`` once it is complete. System errors become error messages."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        yield file


def _write_series(file: IO[str], reader: RunReader) -> None:
    """Write the series, one row per update. The cells of a series that the run does not have are empty. The best
    action is given by its name, as in ``samples.csv``. An imported run also has those that its trainer reported.
    """
    writer = CsvWriter(file, "\n")
    columns = {name: reader.series(name) for name in dict.fromkeys([*METRICS, *reader.series_names])}
    writer.writerow(("update", *columns))
    for number in range(reader.last):
        cells = {name: _cell(column[number]) for name, column in columns.items()}
        best = columns["best_action"][number]
        if math.isfinite(best) and 0 <= best < len(reader.origin.vocabulary):
            cells["best_action"] = reader.origin.vocabulary[int(best)]
        writer.writerow((number + 1, *cells.values()))


def _described(reader: RunReader) -> dict[str, Any]:
    """Return a description of the run, with every version of its settings and the first update to which it applied."""
    meta = reader.meta
    return {
        "program": f"GRPO Lab {__version__}",
        "run": {
            "id": meta.id,
            "title": meta.title,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(meta.created)),
            "written_by": meta.version,
            "updates": reader.last,
            "branch_of": None if meta.parent is None else {"run": meta.parent[0], "after_update": meta.parent[1]},
        },
        "settings": [
            {"from_update": first, **json.loads(settings.to_json())} for first, settings in reader.settings_changes()
        ],
    }


def _write_samples(file: IO[str], lineage: Lineage, steps: range, left_out: list[str], poll: Callable[[], None]) -> int:
    """Write every sampled token of every pass of ``steps``. Return the number of updates written, and add to
    ``left_out`` why others are missing.
    """
    writer = CsvWriter(file, "\n")
    parts = _reward_parts(lineage.reader.origin).values()
    writer.writerow((*PLACES, *NUMBERS, *LOG_PROBABILITIES, *(f"reward_{name}" for name in parts)))
    count, point = 0, lineage.reader.first - 1
    if steps and steps[0] < point:
        try:
            lineage.holder(steps[0])
        except RunFileError as error:  # one message for all of them
            left_out.append(str(error))
            steps = range(point, max(steps.stop, point))
    thinned = lineage.thinned()
    left_out.extend(stretches_text([s]) for s in thinned if steps and s.first <= steps[-1] and s.last >= steps[0])
    for number in steps:
        poll()
        if stretch_at(thinned, number) is not None and lineage.kept(number) != number:
            continue
        try:
            step = lineage.step(number)
        except (RunFileError, NotRecordedError) as error:
            if str(error) not in left_out:  # an imported run has the same reason for all of its updates
                left_out.append(str(error))
            continue
        for passed in range(step.passes):
            writer.writerows(sample_rows(step, passed, lineage.reader.origin))
        count += 1
    return count


def _reward_parts(origin: Origin) -> dict[str | int, str]:
    """Return the title of each part of the reward by its name, or by its column for parts that have no name."""
    if origin.settings.is_language:
        return {reward.name: reward.title for reward in origin.settings.language.rewards.values()}
    return dict(enumerate(origin.reward_names))


def sample_rows(step: Step, passed: int, origin: Origin) -> Iterator[list[object]]:
    """Yield the rows of ``samples.csv``, one for each token of pass ``passed`` of an update."""
    columns, parts = [column.name for column in step_table.columns(step)], _reward_parts(origin)
    for row in step_table.rows(EvaluatedStep(step), passed, origin=origin):
        cells = dict(zip(columns, row.cells, strict=True))
        place = (row.row, row.token)
        known = (step.old_logp, step.logp[passed], step.ref_logp)
        paid = () if step.reward_parts is None else step.reward_parts[row.row]
        recorded = dict(zip(step.part_names or range(len(paid)), paid, strict=True))
        yield [
            step.step,
            passed + 1,
            row.row + 1,
            row.group + 1,
            cells["prompt"],
            cells.get("completion", cells.get("action")),
            row.token + 1,
            cells.get("token", cells.get("action")),
            *(_cell(cells[name]) for name in NUMBERS),
            *("" if table is None else _cell(table[place]) for table in known),
            *(_cell(recorded[part]) if part in recorded else "" for part in parts),
        ]


def _cell(value: Any) -> object:
    """Return a number in full, or an empty cell if there is none."""
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    return repr(float(value)) if isinstance(value, (float, np.floating)) else value
