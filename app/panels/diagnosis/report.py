"""What an examination found out, as rows and sentences."""

from __future__ import annotations

from dataclasses import dataclass

from app.plotting.table_model import Column
from app.workspace.examination import Result
from app.workspace.run_handle import RunHandle
from grpo_core.experiments.recorded_jobs import Verdict
from grpo_core.health import CHECKS, Diagnosis, Evidence, Finding
from grpo_core.health.grade import Grade
from grpo_core.text import tr

FINDINGS = (
    Column(
        "severity",
        tr("How bad"),
        chars=7,
        kind="chip",
        help=tr(
            "Serious: training cannot work like this. Warning: it works worse than it could. Notice: healthy runs have "
            "it too."
        ),
    ),
    Column("began", tr("From step"), chars=5, decimals=0, help=tr("The trainer's number of the step where it began.")),
    Column("title", tr("Finding"), chars=18, kind="text"),
)
EVIDENCE = (
    Column("step", tr("Step"), chars=6, decimals=0),
    Column("row", "#", chars=4, decimals=0, help=tr("Number of the completion.")),
    Column("token", tr("Token"), chars=5, decimals=0, help=tr("Place of the token within it.")),
    Column("what", tr("What"), chars=30, kind="text"),
    Column("quote", tr("Completion"), chars=20, kind="text"),
)
KEPT = (3, 0, 1, 2, 4)
"""Columns of :data:`EVIDENCE` in the order in which they get room: the sentence, its place, the completion's text."""
NEEDED = (2, 0, 1)
"""Columns of :data:`FINDINGS` in the order in which they get room: the title, how bad it is, where it began."""
NOTHING_YET = tr("Looks for {count} faults of training and recomputes the loss; press “Examine this run”.").format(
    count=len(CHECKS)
)
NOT_RECORDED = tr("Runs of other trainers are examined here: open one with File > Open.")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of the table of findings.

    Attributes:
        cells: of :data:`FINDINGS`.
        text: the finding in sentences.
        evidence: where it can be seen.
    """

    cells: list[object]
    text: str
    evidence: tuple[Evidence, ...] = ()


def entries(examined: Result) -> list[Entry]:
    """The findings, the worst first, the audit, and what was looked at without a finding."""
    listed: list[Entry] = []
    if examined.diagnosis is not None:
        listed += [_of_finding(finding) for finding in examined.diagnosis.findings]
    if examined.verdict is not None:
        listed.append(_of_verdict(examined.verdict))
    if examined.diagnosis is not None:
        listed.append(_of_the_rest(examined.diagnosis))
    return listed


def problems(examined: Result) -> list[str]:
    """Titles of what is wrong: the findings that are more than a notice, and the audit where the loss departs."""
    listed = (entry.cells for entry in entries(examined))
    return [str(title) for grade, _, title in listed if grade and grade != Grade.NOTICE.word]


def _of_finding(finding: Finding) -> Entry:
    text = tr("{what}\n\nWhat to change: {change}\n\nDescribed in: {source}").format(
        what=finding.sentence, change=finding.change, source=finding.source
    )
    cells: list[object] = [finding.grade.word, finding.began, finding.title]
    return Entry(cells=cells, text=text, evidence=finding.evidence)


def _of_verdict(verdict: Verdict) -> Entry:
    titles = {
        True: tr("Audit: the loss agrees"), False: tr("Audit: the loss departs"), None: tr("Audit: nothing to compare")
    }  # fmt: skip
    evidence: tuple[Evidence, ...] = ()
    if verdict.step is not None:
        evidence = (Evidence(step=verdict.step, row=verdict.row, what=tr("first departure")),)
    chip = tr("departs") if verdict.agrees is False else ""
    return Entry(cells=[chip, verdict.step, titles[verdict.agrees]], text=verdict.text, evidence=evidence)


def _of_the_rest(diagnosis: Diagnosis) -> Entry:
    lines = [tr("Looked at, and nothing found: {title}.").format(title=title) for title in diagnosis.looked_at]
    lines += [
        tr("Not looked at: {title}. Because: {why}").format(title=one.title, why=one.why)
        for one in diagnosis.not_looked_at
    ]
    return Entry(cells=["", None, tr("What else was looked at")], text="\n".join([*lines, *diagnosis.unreadable]))


def status(run: RunHandle, examined: Result | None, *, busy: bool) -> str:
    """Where the examination of ``run`` stands, in a sentence; ``busy``: a run is being examined."""
    if not run.is_recorded:
        return NOT_RECORDED
    if busy:
        return tr("Every update is read and recomputed in a process of its own …")
    if examined is None:
        return NOTHING_YET
    if examined.problem:
        return examined.problem
    diagnosis = examined.diagnosis
    if diagnosis is None:
        return NOTHING_YET
    more = run.head - diagnosis.updates - len(diagnosis.unreadable)
    sentence = tr("{updates} updates examined; findings: {count}.").format(
        updates=diagnosis.updates, count=len(diagnosis.findings)
    )
    if diagnosis.caution:
        sentence = " ".join((sentence, diagnosis.caution))
    if more <= 0:
        return sentence
    return tr("{found} More have been written since: {more}. Examine again to see them.").format(
        found=sentence, more=more
    )
