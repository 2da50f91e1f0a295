"""The results of an examination as table rows and sentences."""

from __future__ import annotations

from dataclasses import dataclass

from app.plotting.table_model import Column
from app.trainers.examination import Result
from app.workspace.run_handle import RunHandle
from grpo_core.text import plural, tr
from grpo_core.trainers.audit.put_right import PutRight
from grpo_core.trainers.health import CHECKS, Diagnosis, Evidence, Finding, Healthy
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.recorded_jobs import Verdict
from grpo_core.typeset import plain

EVIDENCE = (
    Column("about", tr("Looked at"), chars=34, kind="text"),
    Column("step", tr("Step", "noun"), chars=6, decimals=0),
    Column("row", "#", chars=4, decimals=0, help=tr("Number of the completion.")),
    Column("token", tr("Token"), chars=5, decimals=0, help=tr("Place of the token within it.")),
    Column("quote", tr("Completion"), chars=14, kind="text"),
    Column("what", tr("What"), chars=30, kind="text"),
)
SIDES = (
    Column("title", tr("Number"), chars=26, kind="text"),
    Column("ran", tr("As recorded"), chars=12, decimals=4),
    Column("other", tr("Put right"), chars=12, decimals=4),
)
KEPT = (0, 5, 1, 2, 3, 4)
"""Columns of :data:`EVIDENCE` by priority: the description, its location, and the completion's text."""
CHECKED = "✓ "
NOTHING_YET = plural(
    "Looks for {count} fault of training and recomputes the loss; press “Examine this run”.",
    "Looks for {count} faults of training and recomputes the loss; press “Examine this run”.",
    len(CHECKS),
).format(count=len(CHECKS))
NOTHING_YET_OURS = plural(
    "Looks for {count} fault of training; press “Examine this run”.",
    "Looks for {count} faults of training; press “Examine this run”.",
    len(CHECKS),
).format(count=len(CHECKS))
"""The same for a run of this program, whose loss has no other source to be compared with."""
DEPARTS = tr("departs")
"""The grade of an audit in which a recorded loss or advantage differs from the recomputed one."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The content of one card.

    Attributes:
        title: the subject.
        grade: severity in one word; empty if nothing is wrong.
        began: the trainer's number for the step where the fault began; None if it has no beginning.
        since: the steps with the fault, as a phrase; empty if it has no beginning.
        text: the finding, in sentences.
        change: a sentence on what to change; empty if nothing.
        source: a sentence with the reference that describes the fault; empty if there is none.
        course: the values measured over the run, as (trainer's step number, value).
        evidence: the locations that show the fault.
        put_right: a recorded update next to the same update with the cause corrected; None if there is none.
        healthy: the checks that found nothing, if the card is about these.
    """

    title: str
    text: str = ""
    grade: str = ""
    began: int | None = None
    since: str = ""
    change: str = ""
    source: str = ""
    course: tuple[tuple[int, float], ...] = ()
    evidence: tuple[Evidence, ...] = ()
    put_right: PutRight | None = None
    healthy: tuple[Healthy, ...] = ()

    @property
    def rows(self) -> list[list[int | str | None]]:
        """The evidence, or the healthy checks, as rows with the columns of :data:`EVIDENCE`."""
        figures = [(one.title, "" if one.measured is None else one.measured.words()) for one in self.healthy]
        if figures:
            return [[CHECKED + title, None, None, None, "", figure] for title, figure in figures]
        return [["", e.step, e.row, e.token, " ".join(e.quote.split()), e.what] for e in self.evidence]

    def place(self, row: int) -> Evidence | None:
        """Return the location that a row links to, if any: for a healthy check, the step with its largest value."""
        if not self.healthy:
            return self.evidence[row] if 0 <= row < len(self.evidence) else None
        figure = self.healthy[row].measured if 0 <= row < len(self.healthy) else None
        return None if figure is None else Evidence(step=figure.where, what=figure.words())


def entries(examined: Result) -> list[Entry]:
    """Return all cards: the chain, findings, worst first, the audit, what has ended, checks without a finding."""
    listed: list[Entry] = []
    if examined.diagnosis is not None:
        listed += [_of_finding(finding) for finding in examined.diagnosis.findings]
    if examined.verdict is not None:
        listed.append(_of_verdict(examined.verdict))
    if examined.diagnosis is not None:
        listed += [_of_finding(finding) for finding in examined.diagnosis.ended]
        listed += _of_the_rest(examined.diagnosis)
    listed.sort(key=lambda entry: entry.grade != DEPARTS)  # first, because other numbers may follow from it
    if examined.diagnosis is not None and examined.diagnosis.chain:
        chain = "\n".join(link.line for link in examined.diagnosis.chain)
        listed.insert(0, Entry(title=tr("From the reward to a better policy"), text=chain))
    return listed


def problems(examined: Result) -> list[str]:
    """Return the titles of all faults: the findings except notices, and the audit if a recorded number differs."""
    return [entry.title for entry in entries(examined) if entry.grade not in ("", Grade.NOTICE.word)]


def _of_finding(finding: Finding) -> Entry:
    return Entry(
        title=finding.title,
        grade=finding.grade.word,
        began=finding.began,
        since=finding.when,
        text=finding.sentence,
        change=tr("What to change: {change}").format(change=finding.change),
        source=tr("Described in: {source}").format(source=finding.source),
        course=finding.course,
        evidence=finding.evidence,
    )


def _of_verdict(verdict: Verdict) -> Entry:
    titles = {
        True: tr("Audit: the numbers agree"),
        False: tr("Audit: numbers depart"),
        None: tr("Audit: nothing to compare"),
    }
    evidence: tuple[Evidence, ...] = ()
    if verdict.step is not None:
        evidence = (Evidence(step=verdict.step, row=verdict.row, what=tr("first departure")),)
    if verdict.put_right is not None:
        push = tr("push {recorded} as recorded, {righted} put right")
        evidence += tuple(
            Evidence(
                step=verdict.put_right.step,
                row=one.row,
                token=one.token,
                what=push.format(recorded=plain(one.recorded), righted=plain(one.righted)),
            )
            for one in verdict.put_right.moved
        )
    return Entry(
        title=titles[verdict.agrees],
        grade=DEPARTS if verdict.agrees is False else "",
        began=verdict.step,
        since="" if verdict.step is None else tr("from step {began}").format(began=verdict.step),
        text=verdict.text,
        evidence=evidence,
        put_right=verdict.put_right,
    )


def _of_the_rest(diagnosis: Diagnosis) -> list[Entry]:
    """Return the cards of the healthy checks and of the checks that could not be run, with the reasons."""
    listed = []
    if diagnosis.looked_at:
        listed.append(Entry(title=tr("Looked at, and nothing found"), healthy=diagnosis.looked_at))
    lines = [f"{'; '.join(titles)}.\n{why}" for why, titles in diagnosis.reasons.items()]
    if lines or diagnosis.unreadable:
        listed.append(Entry(title=tr("Not looked at"), text="\n\n".join([*lines, *diagnosis.unreadable])))
    return listed


def status(run: RunHandle, examined: Result | None, *, busy: bool) -> str:
    """Return a sentence on the state of ``run``'s examination. ``busy``: a run is being examined."""
    if busy:
        return tr("Every update is being examined in a separate process …")
    if examined is not None and examined.problem:
        return examined.problem
    if examined is None or examined.diagnosis is None:
        return NOTHING_YET if run.is_recorded else NOTHING_YET_OURS
    diagnosis = examined.diagnosis
    notices = sum(finding.grade is Grade.NOTICE for finding in (*diagnosis.findings, *diagnosis.ended))
    more = run.head - diagnosis.updates - len(diagnosis.unreadable)
    sentence = plural(
        "{updates} update examined; problems: {count}, notices: {notices}.",
        "{updates} updates examined; problems: {count}, notices: {notices}.",
        diagnosis.updates,
    ).format(updates=diagnosis.updates, count=len(problems(examined)), notices=notices)
    if diagnosis.caution:
        sentence = " ".join((sentence, diagnosis.caution))
    if more <= 0:
        return sentence
    pattern = (
        tr("{found} More have been written since: {more}. They are examined next.")
        if run.is_recorded
        else tr("{found} More have been made since: {more}. “Examine this run” includes them.")
    )
    return pattern.format(found=sentence, more=more)
