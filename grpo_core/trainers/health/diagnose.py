"""Diagnosis of a recorded run: each update is read once and measured by every check, and then the run is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.plugins import credited, failed
from grpo_core.text import plural, tr
from grpo_core.trainers.health.chain import chain, first_break
from grpo_core.trainers.health.check import Measure, finite
from grpo_core.trainers.health.checks import CHECKS
from grpo_core.trainers.health.finding import Diagnosis, Finding, Healthy, Link, NotLookedAt
from grpo_core.trainers.health.groups import mean_reward
from grpo_core.trainers.health.update import read


@np.errstate(all="ignore")  # non-finite numbers are findings
def diagnose(
    source: Source, positions: Iterable[int] | None = None, poll: Callable[[], None] = lambda: None
) -> Diagnosis:
    """Diagnose a recorded run.

    Args:
        positions: updates to diagnose, counted from 1; by default all.
        poll: called after each update.
    """
    diagnosing = Diagnosing()
    for position in range(1, len(source) + 1) if positions is None else positions:
        diagnosing.take(source, position)
        poll()
    return diagnosing.result(source.settings)


@dataclass(frozen=True, kw_only=True)
class _Looked:
    """Results of the checks for one update.

    They are two mappings, from check to measure and from check to the reason why it could not be measured, the mean
    reward, and the reason why the update is unreadable.
    """

    measures: dict[str, Measure | None] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    reward: tuple[float, float | None] | None = None
    unreadable: str = ""


class Diagnosing:
    """A diagnosis that processes one update after another and stores little data of each."""

    def __init__(self) -> None:
        self._looked: dict[int, _Looked] = {}

    @np.errstate(all="ignore")
    def take(self, source: Source, position: int) -> None:
        """Measure the update at ``position``, counted from 1, even if it has been measured before."""
        try:
            update = read(source, position)
        except RunFileError as error:
            sentence = tr("Step {label} cannot be read: {why}").format(label=source.labels[position - 1], why=error)
            self._looked[position] = _Looked(unreadable=sentence)
            return
        missing: dict[str, str] = {}
        measures: dict[str, Measure | None] = {}
        for name, check in CHECKS.items():
            try:
                single = check.of_texts and source.settings.recorded.longest == 1  # such as an action of a bandit
                why = tr("Every completion is a single token.") if single else check.missing(update)
                if not why:
                    measures[name] = check.measure(update)
            except NotRecordedError as error:
                why = str(error)
            except Exception as error:
                why = failed(name, error)
            if why:
                missing[name] = why
        mean = mean_reward(update)
        reward = None if mean is None else (mean, update.earned)
        self._looked[position] = _Looked(measures=measures, missing=missing, reward=reward)

    def result(self, settings: Settings) -> Diagnosis:
        measures: dict[str, list[Measure]] = {name: [] for name in CHECKS}
        missing: dict[str, str] = {}
        looked: set[str] = set()
        every = [self._looked[position] for position in sorted(self._looked)]
        for one in every:
            missing = {**one.missing, **missing}
            looked |= one.measures.keys()
            for name, measure in one.measures.items():
                if measure is not None:
                    measures[name].append(measure)
        every_finding: list[Finding] = []
        for name, check in CHECKS.items():
            try:
                if check.across is not None and measures[name]:
                    measures[name] = check.across(measures[name])
                every_finding += check.findings(name, measures[name], settings)
            except Exception as error:
                missing[name] = failed(name, error)
                looked.discard(name)
        findings = _without_replaced([finding for finding in every_finding if not finding.ended])
        over = _without_replaced([finding for finding in every_finding if finding.ended])
        ended = sorted(over, key=lambda one: any(other.check in CHECKS[one.check].follows for other in over))
        for name, check in CHECKS.items():
            if name in looked and 0 < len(measures[name]) < check.least:
                looked.discard(name)
                missing[name] = plural(
                    "{count} update is too few: at least {least} are needed.",
                    "{count} updates are too few: at least {least} are needed.",
                    len(measures[name]),
                ).format(count=len(measures[name]), least=check.least)
        named = {finding.check for finding in every_finding}
        for name in [name for name in looked - named if not finite(measures[name])]:
            looked.discard(name)
            missing[name] = missing.get(name) or (CHECKS[name].unfit if measures[name] else CHECKS[name].absent)
        links = chain(findings, ended, measures, missing, [one.reward for one in every if one.reward is not None])
        findings = _in_order(findings, first_break(links))
        unreadable = tuple(one.unreadable for one in every if one.unreadable)
        said = {finding.check for finding in (*findings, *ended)}
        sick = {CHECKS[name].measure for name in said}
        return Diagnosis(
            updates=len(every) - len(unreadable),
            chain=links,
            findings=tuple(findings),
            ended=tuple(ended),
            not_looked_at=tuple(
                NotLookedAt(
                    check=name,
                    title=credited(name, check.title),
                    why=missing.get(name) or tr("There are no updates to examine."),
                )
                for name, check in CHECKS.items()
                if name not in looked
            ),
            looked_at=tuple(
                Healthy(
                    check=name,
                    title=credited(name, check.title),
                    measured=None if check.measure in sick else check.measured(measures[name]),
                )
                for name, check in CHECKS.items()
                if name in looked - said
            ),
            unreadable=unreadable,
        )


def _without_replaced(findings: Sequence[Finding]) -> list[Finding]:
    found = {finding.check for finding in findings}
    return [finding for finding in findings if not found.intersection(CHECKS[finding.check].said_by)]


def _in_order(findings: Sequence[Finding], broken: Link | None) -> list[Finding]:
    """Return the findings, worst first. A cause ranks no lower than its effects.

    Numbers that are not finite and the finding on the link that breaks come first, after its own causes, since the
    others follow from them.
    """
    first = {"non_finite"} if broken is None else {"non_finite", broken.check, *CHECKS[broken.check].follows}

    def rank(cause: Finding) -> tuple[bool, int, bool]:
        effects = [finding for finding in findings if cause.check in CHECKS[finding.check].follows]
        worst = min(finding.grade.rank for finding in (cause, *effects))
        return cause.check not in first, worst, broken is not None and cause.check == broken.check

    return sorted(findings, key=rank)
