"""The diagnosis of a recorded run: each update is read once, measured by every check, and the run is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.health.check import Measure
from grpo_core.health.checks import CHECKS
from grpo_core.health.finding import Diagnosis, Finding, Healthy, NotLookedAt
from grpo_core.health.healthy import measured
from grpo_core.health.update import read
from grpo_core.runs.importers.source import Source
from grpo_core.text import tr


@np.errstate(all="ignore")  # what is not finite is a finding
def diagnose(
    source: Source, positions: Sequence[int] | None = None, progress: Callable[[int, int], None] | None = None
) -> Diagnosis:
    """What is wrong with a recorded run.

    Args:
        source: the run.
        positions: which updates, from 1; by default all.
        progress: called with (updates done, updates in all) after each update.
    """
    wanted = list(positions) if positions is not None else list(range(1, len(source) + 1))
    measures: dict[str, list[Measure]] = {name: [] for name in CHECKS}
    missing: dict[str, str] = {}
    looked: set[str] = set()
    unreadable: list[str] = []
    vocabulary = source.vocabulary
    for done, position in enumerate(wanted, 1):
        try:
            update = read(source, position, vocabulary)
        except RunFileError as error:
            unreadable.append(
                tr("Step {label} cannot be read: {why}").format(label=source.labels[position - 1], why=error)
            )
        else:
            for name, check in CHECKS.items():
                if why := check.missing(update):
                    missing.setdefault(name, why)
                    continue
                looked.add(name)
                measure = check.measure(update)
                if measure is not None:
                    measures[name].append(measure)
        if progress is not None:
            progress(done, len(wanted))
    findings = _in_order(
        [f for name, check in CHECKS.items() if (f := check.finding(name, measures[name], source.settings))]
    )
    for name, check in CHECKS.items():
        if name in looked and 0 < len(measures[name]) < check.least:
            looked.discard(name)
            missing[name] = tr("{count} updates are too few: it is judged from {least} on.").format(
                count=len(measures[name]), least=check.least
            )
    return Diagnosis(
        updates=len(wanted) - len(unreadable),
        findings=tuple(findings),
        not_looked_at=tuple(
            NotLookedAt(check=name, title=check.title, why=missing.get(name) or tr("There is no update to look at."))
            for name, check in CHECKS.items()
            if name not in looked
        ),
        looked_at=_without_finding(looked, findings, measures),
        unreadable=tuple(unreadable),
    )


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without those that others say too: the worst first, each cause as high as what follows from it."""
    found = {finding.check for finding in findings}
    kept = [finding for finding in findings if not found.intersection(CHECKS[finding.check].said_by)]

    def rank(cause: Finding) -> int:
        effects = [finding for finding in kept if cause.check in CHECKS[finding.check].follows]
        return min(finding.grade.rank for finding in (cause, *effects))

    return sorted(kept, key=rank)


def _without_finding(
    looked: set[str], findings: Sequence[Finding], measures: Mapping[str, Sequence[Measure]]
) -> tuple[Healthy, ...]:
    named = {finding.check for finding in findings}
    sick = {CHECKS[name].measure for name in named}
    return tuple(
        Healthy(
            check=name, title=check.title,
            measured=None if check.measure in sick else measured(check.measure, measures[name]),
        )
        for name, check in CHECKS.items() if name in looked - named
    )  # fmt: skip
