"""A diagnosis as text, as JSON, and as one self-contained HTML page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from html import escape
from typing import Any

from grpo_core.foreign.recording import Source
from grpo_core.text import language, plural, tr
from grpo_core.trainers.claims.measured import Measured
from grpo_core.trainers.health.chain import CHAIN, first_break
from grpo_core.trainers.health.finding import Diagnosis, Evidence, Finding, State
from grpo_core.trainers.health.grade import Grade


def as_text(source: Source, result: Diagnosis) -> str:
    lines = [headline(source, result), *filter(None, [result.caution])]
    lines += ["", CHAIN_TITLE, *(f"- {link.line}" for link in result.chain)] if result.chain else []
    for n, finding in enumerate((*result.findings, *result.ended)):
        if n == len(result.findings):
            lines += ["", ENDED_TITLE]
        change = tr("What to change: {change}").format(change=finding.change)
        described = tr("Described in: {source}").format(source=finding.source)
        lines += ["", _title(finding), f"  {finding.sentence}"]
        lines += [f"  - {place(one)}" for one in finding.evidence]
        lines += [f"  {change}", f"  {described}"]
    if result.looked_at:
        lines += ["", tr("Looked at, and nothing found:"), *(f"- {line}" for line in healthy(result))]
    lines += [""] * bool(result.not_looked_at)
    for why, titles in result.reasons.items():
        lines.append(tr("Not looked at: {titles}. Reason: {why}").format(titles="; ".join(titles), why=why))
    lines += [*result.unreadable, *source.notes]
    return "\n".join(line.rstrip() for text in lines for line in (text.splitlines() or [""]))


def as_answer(source: Source, result: Diagnosis) -> str:
    """Return the first link that breaks, the findings, and the one thing that would show more."""
    broken = first_break(result.chain)
    hidden = next((link for link in result.chain if link.state is State.HIDDEN), None)
    lines = [headline(source, result), *filter(None, [result.caution])]
    lines.append(
        broken.line
        if broken is not None
        else tr("As far as the record shows, no link from the reward to a better policy breaks.")
    )
    for finding in result.findings:
        lines += ["", _title(finding), f"  {finding.sentence}", f"  {finding.change}"]
    if hidden is not None:
        shown = CHAIN.get(hidden.name, CHAIN["rewards"]).shown_by
        lines += ["", tr("Not seen: {title}. {shown}").format(title=hidden.title, shown=shown)]
    return "\n".join([*lines, *result.unreadable, *source.notes])


def _title(finding: Finding) -> str:
    return tr("{title} ({grade}, {when})").format(title=finding.title, grade=finding.grade.word, when=finding.when)


CHAIN_TITLE = tr("From the reward to a better policy:")
ENDED_TITLE = tr("What has ended:")


def healthy(result: Diagnosis) -> list[str]:
    """Return one line per measure about the checks that found nothing, with the range of the measure."""
    titles: dict[Measured | None, list[str]] = {}
    for one in sorted(result.looked_at, key=lambda one: one.measured is None):  # those without a range last
        titles.setdefault(one.measured, []).append(one.title)
    return [
        "; ".join(those)
        if figure is None
        else tr("{titles} ({figure})").format(titles="; ".join(those), figure=figure.words())
        for figure, those in titles.items()
    ]


def headline(source: Source, result: Diagnosis) -> str:
    """Return the number of updates examined and the numbers of problems and notices, in a sentence."""
    problems = [finding for finding in result.findings if finding.grade is not Grade.NOTICE]
    facts = {"title": source.title, "source": source.settings.recorded.source, "updates": result.updates}
    if not result.updates:
        return tr("{title}: {source}; no update could be examined.").format(**facts)
    if not result.findings and not result.ended:
        return plural(
            "{title}: {source}, {updates} update; nothing found.",
            "{title}: {source}, {updates} updates; nothing found.",
            result.updates,
        ).format(**facts)
    return plural(
        "{title}: {source}, {updates} update; problems: {count}, notices: {notices}.",
        "{title}: {source}, {updates} updates; problems: {count}, notices: {notices}.",
        result.updates,
    ).format(count=len(problems), notices=len(result.findings) - len(problems) + len(result.ended), **facts)


def place(one: Evidence) -> str:
    words: dict[str, Any] = {"step": one.step, "what": one.what, "row": one.row, "token": one.token}
    if one.row is None:
        text = tr("step {step}: {what}").format(**words)
    elif one.token is None:
        text = tr("step {step}, completion {row}: {what}").format(**words)
    else:
        text = tr("step {step}, completion {row}, token {token}: {what}").format(**words)
    return text if not one.quote else tr("{place}; “{quote}”").format(place=text, quote=" ".join(one.quote.split()))


def as_json(source: Source, result: Diagnosis) -> dict[str, Any]:
    return {
        "run": source.title,
        "source": source.settings.recorded.source,
        "updates": result.updates,
        "serious": result.serious,
        "caution": result.caution,
        "chain": [
            {"link": link.name, "state": link.state.value, "text": link.line}
            | {name: getattr(link, name) for name in ("began", "last", "check")}
            for link in result.chain
        ],
        "findings": [_plain(finding) for finding in result.findings],
        "ended": [_plain(finding) for finding in result.ended],
        "not_looked_at": [dataclasses.asdict(one) for one in result.not_looked_at],
        "nothing_found": [one.title for one in result.looked_at],
        "healthy": [
            {"check": one.check, "measured": None if one.measured is None else dataclasses.asdict(one.measured)}
            for one in result.looked_at
        ],
        "unreadable": list(result.unreadable),
        "notes": list(source.notes),
    }


def _plain(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("check", "title", "began", "last", "change", "source")} | {
        "severity": finding.grade.value,
        "what": finding.sentence,
        "evidence": [dataclasses.asdict(one) for one in finding.evidence],
        "course": [list(one) for one in finding.course],
    }


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 0; }
section { border: 1px solid #8888; border-left-width: 6px; border-radius: 6px; padding: .8rem 1rem; margin: 1rem 0; }
section.serious { border-left-color: #c0392b; } section.warning { border-left-color: #b9770e; }
section.notice { border-left-color: #2e6da4; }
svg { display: block; width: 100%; height: 1.4rem; margin: .4rem 0; }
rect { fill: #8888; } rect.since { fill: #b9480e; }
q { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere; }
small, .quiet { color: #777; }
"""


def as_html(source: Source, result: Diagnosis) -> str:
    """Return the diagnosis as one page, with untrusted text escaped, no external resources, and no scripts."""
    title = tr("Diagnosis of {title}").format(title=source.title)
    quoting = tr("This page quotes completions of the run.")
    quotes = any(one.quote for finding in (*result.findings, *result.ended) for one in finding.evidence)
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="{language()}"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1><p>{escape(headline(source, result))}</p>",
            *([f"<p>{escape(result.caution)}</p>"] if result.caution else []),
            *_list(CHAIN_TITLE, [link.line for link in result.chain]),
            *(line for finding in result.findings for line in _section(finding)),
            *([f"<h2>{escape(ENDED_TITLE)}</h2>"] if result.ended else []),
            *(line for finding in result.ended for line in _section(finding)),
            *_list(tr("Looked at, and nothing found"), healthy(result)),
            *_list(
                tr("Not looked at"),
                [tr("{title}. Reason: {why}").format(title=one.title, why=one.why) for one in result.not_looked_at],
            ),
            *_list(tr("About the recording"), [*result.unreadable, *source.notes]),
            f"<p><small>{escape(quoting)}</small></p>" if quotes else "",
            "</body></html>",
        ]
    )


def _section(finding: Finding) -> Iterator[str]:
    grade = tr("{grade}, {when}").format(grade=finding.grade.word, when=finding.when)
    change = tr("What to change: {change}").format(change=finding.change)
    described = tr("Described in: {source}").format(source=finding.source)
    yield f'<section class="{finding.grade.value}"><h2>{escape(finding.title)} <small>{escape(grade)}</small></h2>'
    yield strip(finding)
    yield f"<p>{escape(finding.sentence)}</p><ul>"
    for one in finding.evidence:
        quote = f"<br><q>{escape(one.quote)}</q>" if one.quote else ""
        yield f"<li>{escape(place(dataclasses.replace(one, quote='')))}{quote}</li>"
    yield f'</ul><p>{escape(change)}</p><p class="quiet">{escape(described)}</p></section>'


def strip(finding: Finding) -> str:
    """Return an inline drawing of the values measured over the run. Empty if there are none."""
    if not finding.course:
        return ""
    largest = max(abs(value) for _, value in finding.course) or 1.0
    title = tr("Measured values over the steps")
    bars = []
    for place, (label, value) in enumerate(finding.course):
        since = ' class="since"' if finding.began <= label <= (finding.last or label) else ""
        top = 1 - max(abs(value) / largest, 0.05)
        bars.append(f'<rect x="{place}" y="{top:.3f}" width="0.9" height="1"{since}/>')
    return (
        f'<svg viewBox="0 0 {len(finding.course)} 1" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(title)}">{"".join(bars)}</svg>'
    )


def _list(title: str, lines: list[str] | tuple[str, ...]) -> list[str]:
    if not lines:
        return []
    return [f"<h2>{escape(title)}</h2><ul>", *(f"<li>{escape(line)}</li>" for line in lines), "</ul>"]
