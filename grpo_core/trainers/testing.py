"""Checks of a package's readers and diagnosis checks, for the tests of its author (:mod:`grpo_core.testing`).

The checks in tables need no file. :func:`check_source` and :func:`check_findings` are called with a file of the
package's format.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from grpo_core import recompute
from grpo_core.bandit.learner import BanditLearner
from grpo_core.config import Settings
from grpo_core.doors import foreign
from grpo_core.errors import GrpoError, NotRecordedError
from grpo_core.foreign.recording import Completions, Source
from grpo_core.jobs.packing import packed, unpacked
from grpo_core.learners import origin
from grpo_core.record import Step
from grpo_core.trainers.claims.findings import Seen
from grpo_core.trainers.health import CHECKS, Finding, diagnose
from grpo_core.trainers.health.update import Update, read
from grpo_core.trainers.importers import IMPORTERS, importer_for, open_source
from grpo_core.trainers.own_run import as_recorded, reward_range, table_of

# -- claims of findings ----------------------------------------------------------------------------------------------


def raw_arrays(update: Update) -> Seen:
    """Return the raw arrays of an update that has a table of completions."""
    table, step = update.table, update.step
    assert table is not None
    return Seen(
        label=update.label,
        settings=update.settings,
        rewards=table.rewards,
        group=table.group,
        counted=table.counted,
        advantage=table.advantage,
        parts=table.reward_parts,
        names=table.reward_names,
        weights=table.reward_weights,
        truncated=table.truncated,
        step=step,
        entropy=_mean_entropy(table, step),
        lengths=table.length,
        length=None if table.length is None else float(table.length.sum() / len(table.length)),
        cut=None if table.truncated is None else (float(table.truncated.sum()), len(table.truncated)),
        from_sampler=_from_sampler(step),
        turns=_turns_of(table),
        staleness=table.staleness,
        reward_range=table.reward_range,
        answered=None
        if table.trajectories is None
        else np.array([row is not None and len(row.turns) > 1 for row in table.trajectories]),
        reported=tuple(pair for report in update.reports for pair in report.numbers.items()),
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
    return (step.logp[0] - step.sampling_logp)[recompute.used(step, 0)]


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
    data = [raw_arrays(update) for update in updates if update.table is not None]
    for claim in finding.what:
        assert claim.words() and "{" not in claim.words(), claim
        with np.errstate(all="ignore"):
            assert claim.check(data), claim
    assert unpacked(*packed(finding)) == finding


def check_findings(source: Source) -> list[Finding]:
    """Diagnose a run, and check the findings of the checks of packages. Return these findings."""
    updates = [read(source, position, source.vocabulary) for position in range(1, len(source) + 1)]
    result = diagnose(source)
    assert [one.why for one in result.not_looked_at if foreign(one.check) and " failed: " in one.why] == []
    findings = [finding for finding in result.findings if foreign(finding.check)]
    for finding in findings:
        _assert_borne_out(finding, updates)
    return findings


def runs_of_the_bandit(name: str) -> None:
    """Check a diagnosis check on two runs of this program: one that learns, and one whose learning rate is 0."""
    check = CHECKS[name]
    assert check.title and check.change and check.source
    for rate in (3.0, 0.0):
        settings = Settings().replace({"optimizer.learning_rate": rate, "learner.group_size": 16})
        learning, key = BanditLearner(settings, resume=None, cancelled=lambda: False), origin(settings)
        as_if, updates = as_recorded(settings, key), []
        for step in (next(learning) for _ in range(20)):
            table = replace(table_of(step, key, recompute.advantage(step)), reward_range=reward_range(step))
            updates.append(Update(label=step.step, settings=as_if, table=table, step=replace(step, settings=as_if)))
        measures = [check.measure(update) for update in updates if not check.not_measurable(update)]
        finding = check.finding(name, [measure for measure in measures if measure is not None], as_if)
        if finding is not None:
            _assert_borne_out(finding, updates)


# -- readers ---------------------------------------------------------------------------------------------------------


def knows_its_own_format_only(name: str) -> None:
    """Check that a reader does not recognise an empty folder, an empty file, or a file of other text."""
    assert IMPORTERS[name].title
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(("", "no run\n", '{"a": 1}\n')):
            path = Path(folder) / f"{number}.jsonl"
            assert not IMPORTERS[name].probe(path.parent), "it recognises an empty folder"
            path.write_text(text, "utf-8")
            assert not IMPORTERS[name].probe(path), f"it recognises a file with the text {text!r}"
            path.unlink()


def check_source(name: str, path: Path) -> None:
    """Check that the reader ``name``, and no other, reads the run at ``path``, and refuses what is damaged.

    Every update is read and sent as to another process. A file is then cut at several lengths: a reader may read what
    is left, or raise an error with a message for the user, but no other error.
    """
    assert importer_for(path) is IMPORTERS[name]
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
        for read_one in (source.completions, source.step, source.texts, source.measured, source.reports, source.stamp):
            with suppress(NotRecordedError):
                packed(read_one(position))


OF_CHECKS: dict[str, Callable[[str], None]] = {"runs_of_the_bandit": runs_of_the_bandit}
OF_READERS: dict[str, Callable[[str], None]] = {"knows_its_own_format_only": knows_its_own_format_only}
