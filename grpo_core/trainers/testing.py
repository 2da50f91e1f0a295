"""Checks of a package's readers and diagnosis checks, which its author calls with a recorded run."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from grpo_core import recompute
from grpo_core.errors import GrpoError, NotRecordedError
from grpo_core.foreign.recording import Completions, Source
from grpo_core.packing import packed, unpacked
from grpo_core.plugins import package_of
from grpo_core.record import Step
from grpo_core.trainers.claims.findings import Seen
from grpo_core.trainers.health import Finding, diagnose
from grpo_core.trainers.health.update import Update, read
from grpo_core.trainers.importers import IMPORTERS, importer_for, open_source

# -- claims of findings ----------------------------------------------------------------------------------------------


def raw_arrays(update: Update) -> Seen:
    """Return the raw arrays of an update. Without a table of completions there are none of them."""
    none = Completions(prompts=(), completions=(), group=np.zeros(0, int), rewards=np.zeros(0))
    table, step = update.table or none, update.step
    reported = tuple(pair for report in update.reports for pair in report.numbers.items())
    steps = update.reports[0].steps if update.reports else None
    log = Seen(**vars(none), label=update.label, settings=update.settings, reported=reported, report_steps=steps)
    entropy, length, cut = _mean_entropy(table, step), log.logged("length"), log.logged("truncated")
    return dataclasses.replace(
        log,
        **vars(table),
        step=step,
        mean_entropy=log.logged("entropy") if entropy is None else entropy,
        mean_length=length if table.length is None else float(table.length.sum() / len(table.length)),
        cut=(None if cut is None else (cut * (rows := len(table.rewards) or 1), rows))
        if table.truncated is None
        else (float(table.truncated.sum()), len(table.truncated)),
        from_sampler=_from_sampler(step),
        turns=_turns_of(table),
        answered=None
        if table.trajectories is None
        else np.array([row is not None and len(row.turns) > 1 for row in table.trajectories]),
    )


def _mean_entropy(table: Completions, step: Step | None) -> float | None:
    """Return the mean entropy of an update, from its distributions if they are recorded."""
    if step is None or step.dist_logp is None or step.context is None:
        return None if table.entropy is None else float(np.mean(table.entropy))
    logp = step.dist_logp[0][step.context[step.mask]]
    return float(-(np.exp(logp) * logp).sum(axis=-1).mean())


def _from_sampler(step: Step | None) -> np.ndarray | None:
    """Return the trainer's minus the sampler's log-probabilities, one per token of the first pass."""
    if step is None or step.sampling_logp is None:
        return None
    return np.asarray((step.logp[0] - step.sampling_logp)[recompute.used(step, 0)])


def _turns_of(table: Completions) -> np.ndarray | None:
    """Return, for every turn whose tokens are known, whether the model wrote it and how many of its tokens the loss
    counts.
    """
    if table.trajectories is None:
        return None
    every = [turn for row in table.trajectories if row is not None for turn in (*row.prompt, *row.turns)]
    known = [turn for turn in every if turn.in_loss is not None]
    return np.array([[bool(turn.sampled), turn.in_loss] for turn in known], int) if known else None


def _assert_borne_out(finding: Finding, updates: Sequence[Update]) -> None:
    """Assert that the data support every claim of a finding, and that the finding can be sent between processes."""
    data = [raw_arrays(update) for update in updates]
    for claim in finding.what:
        assert claim.words() and "{" not in claim.words(), claim
        with np.errstate(all="ignore"):
            assert claim.check(data), claim
    assert unpacked(*packed(finding)) == finding


def check_findings(source: Source) -> list[Finding]:
    """Diagnose a run, and check the findings of the checks of packages. Return these findings."""
    updates = [read(source, position) for position in range(1, len(source) + 1)]
    result = diagnose(source)
    assert [one.why for one in result.not_looked_at if package_of(one.check) and " failed: " in one.why] == []
    findings = [finding for finding in result.findings if package_of(finding.check)]
    for finding in findings:
        _assert_borne_out(finding, updates)
    return findings


# -- readers ---------------------------------------------------------------------------------------------------------


def check_source(name: str, path: Path) -> None:
    """Check that the reader ``name``, and no other, reads the run at ``path``, and refuses what is damaged.

    Every update is read and sent as to another process. A file is then cut at several lengths: a reader may read what
    is left, or raise an error with a message for the user, but no other error.
    """
    assert importer_for(path) == name
    source = open_source(path)
    assert len(source) and len(source.labels) == len(source) and source.title
    _read_all(source)
    if not path.is_file():
        return
    whole = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, folder))
        for share in (0.0, 0.1, 0.5, 0.9, 0.99):
            copy.write_bytes(whole[: int(share * len(whole))])
            with suppress(GrpoError):
                _read_all(IMPORTERS[name].open(copy))


def _read_all(source: Source) -> None:
    for position in range(1, len(source) + 1):
        for read_one in (source.completions, source.step, source.measured, source.reports, source.stamp):
            with suppress(NotRecordedError):
                packed(read_one(position))
