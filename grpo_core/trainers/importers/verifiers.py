"""Reader of ``traces.jsonl`` of verifiers and prime-rl: one episode per line, with its traces as graphs of messages.

The episodes of prime-rl since September 2026 lie in a stream of chunks (``prime_rl_stream.py``).

Based on the source code of verifiers 0.4.0. A branch, from the root to a leaf, is a row. A rollout with several
branches counts once in its group. The writer rounds the tokens' numbers to four decimals. These numbers do not belong
to a particular optimizer step.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.recording import Completions, file_stamp
from grpo_core.record import Step
from grpo_core.regular_file import opened_regular
from grpo_core.text import plural, tr
from grpo_core.trainers.importers import prime_rl
from grpo_core.trainers.importers.line_index import LineIndex, begun, read_on
from grpo_core.trainers.importers.prime_rl_stream import EpisodeStream, traces_in
from grpo_core.trainers.importers.records import LONGEST_LINE, complete_lines
from grpo_core.trainers.importers.text_run import TextRun, numbered, recorded_settings
from grpo_core.trainers.importers.verifiers_rows import EpisodeRows
from grpo_core.trainers.importers.verifiers_tokens import as_dict, step_of

FILE = "traces.jsonl"
FOLDERS = ("train/all", "train/effective", "all", "effective", "")
"""Folders that may contain a step's file, in order of preference: unfiltered files show dead groups."""
TRAINING, EVALUATION = 0, 1
TAIL = 192 << 20
"""Number of bytes at the end of a file that are shown first if the file is larger."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a file of episodes, or the folder of a run that contains such files."""
    if path.is_file():
        first = next(complete_lines(path, [], note_torn=True), None) if path.suffix == ".jsonl" else None
        return isinstance(first, dict) and any(isinstance(first.get(key), list) for key in ("traces", "nodes"))
    return (path / FILE).is_file() or bool(_step_files(path)) or traces_in(path) is not None


def _step_files(path: Path) -> list[tuple[int, Path]]:
    """Return a (training step, file) pair for each of prime-rl's step folders, such as ``step_12``."""
    for home in (path / "rollouts", path):
        if home.is_dir():
            folders = numbered(home, "step_", "")
            files = [(n, next((f for where in FOLDERS if (f := d / where / FILE).is_file()), None)) for n, d in folders]
            known = [(n, file) for n, file in files if file is not None]
            if known:
                return known
    return []


class VerifiersRun(TextRun):
    """Episodes of verifiers, by training step if they name one, with the files that prime-rl wrote next to them.

    prime-rl logs one loss for all processes, which therefore count as one.
    """

    def __init__(self, path: Path, index: Path | None = None) -> None:
        """Open a file or folder.

        Args:
            index: folder for line indexes. With it, only the end of a large new file is read at first: the last steps
                are available at once, the others after :meth:`refresh`.
        """
        super().__init__(path, path.parent.name if path.is_file() else path.name, recorded_settings("verifiers"))
        self._index: LineIndex | None = None
        self._index_folder = index
        self._kind = TRAINING
        self._of_index: tuple[str, ...] = ()
        self._single = path if path.is_file() else path / FILE
        self._traces = None if path.is_file() else traces_in(path)
        self._stream: EpisodeStream | None = None
        self._prime = prime_rl.beside(path)
        self.note(
            tr("The numbers of trained tokens are those of prime-rl's token export; other numbers have four decimals.")
            if self._prime is not None and self._prime.has_exports
            else tr("In these files, the numbers of tokens have four decimals: smaller differences mean nothing.")
        )
        if self._single.is_file():
            self._index = begun(index, self._single, _key_of, TAIL)
        if self._index is not None and self._index.first:
            self.partial = True
            self._take(self._index)
        else:
            self.refresh()
        if self.labels:
            last = self.last_readable()
            size = int(np.bincount(last.group[last.counted]).max()) if last.counted is not None else 1
            self.settings = recorded_settings(
                "verifiers" if self._traces is None else "prime-rl",
                names=last.reward_names,
                weights=last.reward_weights,
                group_size=size,
            )
        if self._prime is not None:
            self.settings = self._prime.settings(self.settings)
            self.note(*filter(None, (*self._prime.notes, self._prime.why_unknown, self.why_no_losses)))

    def __deepcopy__(self, memo: object) -> VerifiersRun:
        """Return a copy that can be refreshed independently: indexes are replaced, never modified."""
        other = copy.copy(self)
        other.notes, other.labels = list(self.notes), list(self.labels)
        return other

    @property
    def has_losses(self) -> bool:  # type: ignore[override]
        return self._prime is not None and not self._prime.why_unknown and self._prime.has_exports

    @property
    def why_no_losses(self) -> str:  # type: ignore[override]
        """Reason why the loss cannot be recomputed, and what is needed. Empty if it can be, or it is not prime-rl's."""
        if self._prime is None or self.has_losses:
            return ""
        if self._stream is not None:
            return self._prime.why_unknown or tr(
                "The trainer's log-probabilities are annotations of these episodes, so the loss is recomputed. It is "
                "not compared with prime-rl's, because the number of micro-batches is not recorded."
            )
        return self._prime.why_unknown or tr(
            "These rollouts contain only the sampler's log-probabilities. prime-rl also writes the trainer's: since "
            "September 2026 to monitors/file/traces/annotations, earlier with trainer.enable_token_export = true."
        )

    def refresh(self) -> int:
        if self._traces is not None:
            found: list[str] = []
            self._stream = EpisodeStream(self._traces, found, self._stream)
            self.labels = sorted(self._stream.places)
            if count := self._stream.evaluations:
                found.append(_left_out(count))
            self.note(*found)
            return len(self.labels)
        if not self._single.is_file():
            self.files = dict(_step_files(self.path))
            self.labels = sorted(self.files)
            return len(self.labels)
        notes: list[str] = []
        self._take(read_on(self._single, _key_of, notes, self._index, self._index_folder))
        self.partial = False
        self.note(*notes)
        return len(self.labels)

    def _take(self, index: LineIndex) -> None:
        """Take over the steps and notes of an index. Evaluation is ignored if there is training."""
        self._index = index
        training = index.kinds == TRAINING
        self._kind = TRAINING if training.any() or not len(index.kinds) else EVALUATION
        self.labels = np.unique(index.steps[index.kinds == self._kind]).tolist()
        if index.first and len(self.labels) > 1:
            del self.labels[0]  # its beginning may be before the indexed part
        self.notes = [note for note in self.notes if note not in (*self._of_index,)]
        count = int((~training).sum())
        self._of_index = ()
        if index.first:
            self._of_index += (
                tr("Earlier steps appear after the entire file has been read ({size:.1f} GB).").format(
                    size=self._single.stat().st_size / 1e9
                ),
            )
        if count and training.any():
            self._of_index += (_left_out(count),)
        elif count:
            self._of_index += (tr("These are evaluation episodes; nothing was trained on them."),)
        self.notes += self._of_index

    def _starts(self, label: int) -> np.ndarray:
        assert self._index is not None
        return np.asarray(self._index.starts[(self._index.steps == label) & (self._index.kinds == self._kind)])

    def stamp(self, position: int) -> tuple[int, ...]:
        label = self.labels[position - 1]
        if self._stream is not None:
            return self._stream.stamp(label)
        if label in self.files:
            beside = () if self._prime is None else self._prime.stamp(label)
            return file_stamp(self.files[label], 1, *beside)
        return (*file_stamp(self._single)[2:], label, zlib.crc32(self._starts(label).tobytes()))

    def _episodes(self, label: int, notes: list[str]) -> Iterator[Any]:
        """Yield the episodes of a step. Invalid JSON is noted."""
        if self._stream is not None:
            yield from self._stream.episodes(label, notes)
            return
        if label in self.files:
            seen = set()
            for file in self._files_of(label):
                for value in complete_lines(file, notes, note_torn=True):
                    name = as_dict(value).get("id")
                    if not isinstance(name, str) or name not in seen:
                        yield value
                    seen.add(name if isinstance(name, str) else "")
            return
        with opened_regular(self._single) as opened:
            for start in self._starts(label).tolist():
                opened.seek(start)
                try:
                    yield json.loads(opened.readline(LONGEST_LINE))
                except (ValueError, RecursionError):
                    notes.append(
                        tr("The line at byte {start} of {name} is not JSON and is left out.").format(
                            start=start, name=self._single.name
                        )
                    )

    def _files_of(self, label: int) -> list[Path]:
        """Return the files of a step, of which there are up to two.

        A rollout that prime-rl trained in this step may have arrived in the previous one. It is then only in the second
        file.
        """
        chosen = self.files[label]
        used = chosen.parent.with_name("effective") / FILE
        known = self._prime is not None and self._prime.has_exports and chosen.parent.name == "all" and used.is_file()
        return [chosen, used] if known else [chosen]

    def completions(self, position: int) -> Completions:
        return self._rows(position).table()

    def losses(self, position: int) -> np.ndarray | None:
        """Return the loss of the update as logged by prime-rl, summed over all micro-batches, (1, 1)."""
        prime, label = self._prime, self.labels[position - 1]
        exported = None if prime is None else prime.exported(label)
        if prime is None or exported is None:
            return None
        mean, count = prime.mean_loss(label), prime.micro_batches(exported)
        return None if mean is None or count is None else np.array([[mean * count]])

    def incomplete(self, position: int) -> str:
        prime, label = self._prime, self.labels[position - 1]
        if prime is None or prime.why_unknown:
            return self.why_no_losses
        exported = prime.exported(label)
        if exported is None:
            return tr("prime-rl exported no tokens of step {label}.").format(label=label)
        if exported.why_not:
            return exported.why_not
        if prime.mean_loss(label) is None:
            return tr("{name} contains no loss of step {label} (loss/mean).").format(name=prime_rl.METRICS, label=label)
        if prime.micro_batches(exported) is None:
            return tr(
                "configs/orchestrator.json does not give the number of training processes (num_train_workers), so "
                "the logged mean cannot be turned into the loss of the update."
            )
        rows = self._rows(position, with_tokens=True)
        tokens, trained, left = prime_rl.matched(exported, rows.tokens)
        left += sum(not row.exact for row, is_in in zip(tokens, trained, strict=True) if is_in and row is not None)
        if left:
            return plural(
                "{count} of {all} sequences of the token export of step {label} is not in any rollout with all its "
                "numbers, so the step's loss is incomplete.",
                "{count} of {all} sequences of the token export of step {label} are not in any rollout with all "
                "their numbers, so the step's loss is incomplete.",
                left,
            ).format(count=left, all=len(exported.sequences), label=label)
        return ""

    def step(self, position: int) -> Step:
        rows = self._rows(position, with_tokens=True)
        table = rows.table()
        if table.counted is not None and not table.counted.all():
            self.note(
                tr(
                    "Under another loss, a rollout with several branches counts once for each branch in its group's "
                    "mean."
                )
            )
        return self._step(position, rows, table)

    def _step(self, position: int, rows: EpisodeRows, table: Completions) -> Step:
        """Return the tokens of an update, with prime-rl's loss if its settings and its token export are available."""
        prime, label = self._prime, self.labels[position - 1]
        exported = None if prime is None else prime.exported(label)
        if prime is None or exported is None:
            step = step_of(rows.tokens, table, self.settings, position, label)
            trained = np.array([row is not None and row.exact for row in rows.tokens])
            if self._stream is not None and prime is not None and not prime.why_unknown and trained.any():
                count = sum(int(row.mask.sum()) for row, one in zip(rows.tokens, trained, strict=True) if one and row)
                return prime_rl.with_loss(step, prime, count, rows.tokens, trained)[0]
            if not step.settings.objective.beta or step.ref_logp is not None:
                return step
            return dataclasses.replace(step, ref_logp=step.logp[0])  # π stands for the sampler's
        tokens, trained, _ = prime_rl.matched(exported, rows.tokens)
        step = step_of(tokens, table, self.settings, position, label)
        if prime.why_unknown:
            return step
        step, apart = prime_rl.with_loss(step, prime, exported.tokens, tokens, trained)
        if apart:
            self.note(
                tr(
                    "Step {label}: prime-rl dropped tokens other than those that its loss settings imply ({count} of "
                    "them); the token export is used."
                ).format(label=label, count=apart)
            )
        return step

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        prime = self._prime
        exported = prime is not None and self.has_losses and prime.exported(self.labels[position - 1]) is not None
        annotated = self._stream is not None and prime is not None and not prime.why_unknown
        if not exported and not annotated:
            return self.completions(position), None  # numbers derived from tokens alone are not the run's
        rows = self._rows(position, with_tokens=True)
        table = rows.table()
        if exported or any(row is not None and row.exact for row in rows.tokens):
            with suppress(NotRecordedError):
                return table, self._step(position, rows, table)
        return table, None

    def _rows(self, position: int, *, with_tokens: bool = False) -> EpisodeRows:
        """Return the branches of the update at ``position``. Unreadable ones are noted."""
        notes: list[str] = []
        rows = EpisodeRows(label=self.labels[position - 1], with_tokens=with_tokens)
        for episode in self._episodes(self.labels[position - 1], notes):
            rows.add(as_dict(episode))
        if rows.errors:
            notes.append(
                plural(
                    "Step {label}: {count} trace is not what verifiers writes and is left out; the first: {why}.",
                    "Step {label}: {count} traces are not what verifiers writes and are left out; the first: {why}.",
                    rows.errors,
                ).format(label=self.labels[position - 1], count=rows.errors, why=rows.why)
            )
        if rows.trajectories and rows.trajectories[-1] is None:
            notes.append(
                tr("Step {label} is too long to show the turns of all its completions.").format(
                    label=self.labels[position - 1]
                )
            )
        self.note(*notes)
        if not rows.rows:
            raise RunFileError(
                tr("Step {label} of {name} contains no readable trace.").format(
                    label=self.labels[position - 1], name=self.title
                )
            )
        return rows


def _left_out(count: int) -> str:
    return plural(
        "{count} evaluation episode is among those of training; it is left out.",
        "{count} evaluation episodes are among those of training; they are left out.",
        count,
    ).format(count=count)


RUN = re.compile(rb'(?<!\\)"run"\s*:\s*(?=\{)')
NEAR = 1 << 16
"""Number of bytes of a line that are searched for its training step before the complete line is parsed."""


def _key_of(line: bytes) -> tuple[int, int]:
    """Return (training step, kind) of an episode. ValueError if it is not JSON.

    If the line looks complete, only its data about the run is read. Quotes within a string are escaped, so a string
    cannot be mistaken for this data.
    """
    match = RUN.search(line, 0, NEAR)
    if match is not None and line.startswith(b"{") and line.rstrip().endswith(b"}"):
        with suppress(ValueError, RecursionError):
            run = json.JSONDecoder().raw_decode(line[match.end() : match.end() + NEAR].decode("utf-8", "replace"))[0]
            if type(as_dict(as_dict(run).get("work")).get("step")) is int:
                return _key_of_run(run)
    return _key_of_run(as_dict(as_dict(json.loads(line)).get("run")))


def _key_of_run(run: dict[str, Any]) -> tuple[int, int]:
    work = as_dict(run.get("work"))
    step = work.get("step")
    kind = EVALUATION if "eval" in (run.get("type"), work.get("type")) else TRAINING
    return (step if type(step) is int and 0 <= step < 2**60 else 1), kind
