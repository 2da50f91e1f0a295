"""Importers of runs recorded by other programs, one file per format, and their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.plugins import Rows, credited, failed, of_type, package_of
from grpo_core.runs.run_file import holds_recorded_run
from grpo_core.text import tr
from grpo_core.trainers.concepts import logged_name
from grpo_core.trainers.importers import (
    converted,
    nemo_rl,
    own_rows,
    scalars,
    trace,
    trackio,
    trl_table,
    verifiers,
    verl,
)
from grpo_core.trainers.importers.row_columns import parsed_columns
from grpo_core.trainers.importers.unknown import what_it_looks_like
from grpo_core.trainers.run_paths import file_and_run


@dataclass(frozen=True, kw_only=True)
class Importer:
    """An importer for one format.

    Attributes:
        probe: function that recognises a file or folder of this format by names and first bytes.
        open: function that opens the run; raises RunFileError if it cannot be read.
        open_indexed: like ``open``, with a folder for indexes of large files; None if the format has no index.
        general: whether the format is recognised by names of columns alone, and is therefore tried last.
    """

    title: str
    probe: Callable[[Path], bool]
    open: Callable[[Path], Source]
    open_indexed: Callable[[Path, Path], Source] | None = None
    general: bool = False


def importer_for(path: Path) -> str | None:
    """Return the name of the importer for ``path``, or None if none recognises it."""
    for name, importer in sorted(IMPORTERS.items(), key=lambda item: item[1].general):
        try:
            if importer.probe(path):
                return name
        except Exception as error:
            failed(name, error)
    return None


def open_source(path: Path, *, index: Path | None = None, columns: str = "") -> Source:
    """Open the recorded run in a file or folder.

    Args:
        index: folder in the user's cache for line indexes of large files; with it, such a file can be
            :attr:`~grpo_core.foreign.recording.Source.partial` at first.
        columns: what columns of a log or of a table of completions mean, ``my_col=reward,...``; empty to recognise the
            format.

    Raises:
        RunFileError: it does not exist, has an unknown format, or cannot be read.
        GrpoError: ``columns`` are not names and their meanings.
    """
    file = file_and_run(path)[0]
    if not file.exists():
        raise RunFileError(tr("{path} does not exist.").format(path=path))
    if not (file.is_file() or file.is_dir()):
        raise RunFileError(tr("{path} is neither a file nor a folder.").format(path=path))
    if columns:
        given = parsed_columns(columns)
        renamed = {name: logged for name, meaning in given.items() if (logged := logged_name(meaning))}
        of_rows = len(renamed) < len(given) or own_rows.files_of(path, given)
        found = own_rows.OwnRows(path, index, given) if of_rows else scalars.ScalarRun(path, renamed=renamed)
        found.columns = columns
        if not of_rows:
            found.note(tr("Columns were read as specified: {columns}.").format(columns=columns))
        return found
    name = importer_for(path)
    if name is None:
        raise RunFileError(
            tr("{path} is not a recorded run that this program can read. {looks}").format(
                path=path,
                looks=what_it_looks_like(path, [credited(name, row.title) for name, row in IMPORTERS.items()]),
            )
        )
    importer = IMPORTERS[name]
    try:
        if index is None or importer.open_indexed is None:
            source = importer.open(path)
        else:
            source = importer.open_indexed(path, index)
        if name in WITH_LOG and path.is_dir():
            source = scalars.with_log(source, path)
        if package_of(name):
            trained_by = credited(name, source.settings.recorded.source)
            source.settings = source.settings.replace({"task.source": trained_by})
        return source
    except GrpoError:
        raise
    except Exception as error:
        raise RunFileError(failed(name, error)) from error


WITH_LOG = ("completions", "verifiers", "verl", "rows")
"""Formats of completions beside which the trainer's log is looked for."""
_OURS = {
    "converted": Importer(
        title=tr("a run file of GRPO Lab (.grpo)"), probe=holds_recorded_run, open=converted.ConvertedRun
    ),
    "trace": Importer(
        title=tr("a trace of GRPO Lab's recorder for TRL or verl (a folder with trace.json)"),
        probe=trace.probe,
        open=trace.Trace,
    ),
    "completions": Importer(
        title=tr("TRL's completions (completions_00012.parquet)"),
        probe=trl_table.probe,
        open=trl_table.TrlCompletions,
    ),
    "trackio": Importer(title=tr("a trackio database (.db)"), probe=trackio.probe, open=trackio.TrackioRun),
    "verifiers": Importer(
        title=tr("traces.jsonl of verifiers or prime-rl"),
        probe=verifiers.probe,
        open=verifiers.VerifiersRun,
        open_indexed=verifiers.VerifiersRun,
    ),
    "nemo_rl": Importer(
        title=tr("NeMo-RL's training data (train_data_step12.jsonl)"), probe=nemo_rl.probe, open=nemo_rl.NemoRun
    ),
    "verl": Importer(title=tr("verl's rollout files (12.jsonl)"), probe=verl.probe, open=verl.VerlRollouts),
    "rows": Importer(
        title=tr("rows of completions with rewards (JSON, JSONL, CSV or Parquet)"),
        probe=own_rows.probe,
        open=own_rows.OwnRows,
        open_indexed=own_rows.OwnRows,
        general=True,
    ),
    "log": Importer(
        title=tr("what a trainer logged (trainer_state.json, JSON, JSONL, CSV, TensorBoard, printed lines)"),
        probe=scalars.probe,
        open=scalars.ScalarRun,
        general=True,
    ),
}
IMPORTERS: Rows[Importer] = Rows("reader", _OURS, of_type(Importer))
"""All formats by short name, in the order in which they are tried: after ours those of packages, then general ones."""
