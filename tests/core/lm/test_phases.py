"""A language model's learner reports the phase of its update, and its progress."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from grpo_core import progress
from grpo_core.progress import Phase, Progress, Written
from grpo_core.record import Step
from tests.core.lm.test_learner import run, same, small, steps


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every report immediate."""
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)


def test_phases_come_in_order_and_count_their_tokens_and_passes(always: None) -> None:
    settings = small(learner__mu=2, task__accuracy_every=1, task__max_tokens=6, model__watch_reference=True)
    reports: list[Progress] = []
    going = run(settings, progress=reports.append)
    step = next(going)
    assert [phase for phase, _ in groupby(report.phase for report in reports)] == [*Phase]
    counts = {phase: [(r.done, r.total) for r in reports if r.phase is phase] for phase in Phase}
    assert counts[Phase.SAMPLING] == [(token, 6) for token in range(1, len(counts[Phase.SAMPLING]) + 1)]
    assert len(counts[Phase.SAMPLING]) >= step.mask.sum(axis=-1).max()
    assert counts[Phase.TRAINING] == [(1, 2), (2, 2)]
    assert {report.step for report in reports} == {1}
    next(going)
    assert {report.step for report in reports} == {1, 2}


def test_an_update_is_the_same_whether_it_is_watched_or_not(always: None) -> None:
    assert same(next(run(small(), progress=lambda progress: None)), steps(small(), 1)[0])


def test_a_reference_that_is_not_asked_and_an_accuracy_that_is_not_due_are_not_said(always: None) -> None:
    reports: list[Progress] = []
    going = run(small(objective__beta=0.0, model__watch_reference=False), progress=reports.append)
    next(going)
    reports.clear()
    next(going)
    assert {report.phase for report in reports} == {Phase.SAMPLING, Phase.TRAINING, Phase.SCORING}


def final(step: Step, group: int) -> Written:
    """Return a group's completions as the update records them, all of them ended."""
    assert step.prompt_tokens is not None
    prompt = step.prompt_tokens[group]
    rows = [row for row, of in enumerate(step.group) if of == group]
    return Written(
        group=group,
        prompt=tuple(prompt[prompt >= 0].tolist()),
        completions=tuple(tuple(step.tokens[row][step.mask[row]].tolist()) for row in rows),
        ended=(True,) * len(rows),
    )


@pytest.mark.parametrize("group", [0, 1])
def test_completions_are_told_as_they_grow_until_they_are_those_of_the_update(always: None, group: int) -> None:
    reports: list[Progress] = []
    step = next(run(small(), progress=reports.append, group=lambda: group))
    told = [report.written for report in reports if report.written is not None]
    end = final(step, group)
    assert told[-1] == end
    sampled = [report for report in reports if report.phase is Phase.SAMPLING]
    assert len(sampled) > 3
    for report in sampled:
        assert report.written is not None and report.written.prompt == end.prompt
        for now, whole, ended in zip(report.written.completions, end.completions, report.written.ended, strict=True):
            assert now == whole[: report.done - 1] and ended == (len(now) == len(whole))


def test_how_much_of_every_group_is_written_grows_with_every_token_whichever_is_shown(always: None) -> None:
    reports: list[Progress] = []
    step = next(run(small(), progress=reports.append, group=lambda: 1))
    sampled = [report for report in reports if report.phase is Phase.SAMPLING]
    longest = sampled[0].total
    for report in sampled:
        lengths = np.array([min(int(own.sum()), report.done - 1) for own in step.mask])
        ended = lengths == step.mask.sum(axis=-1)
        shares = np.where(ended, 1.0, lengths / longest).reshape(-1, step.settings.learner.group_size).mean(axis=-1)
        assert report.groups == pytest.approx(tuple(shares))
    assert all(report.groups == () for report in reports if report.phase is not Phase.SAMPLING)


def test_a_group_that_is_drawn_again_is_told_anew_and_the_others_stay(always: None) -> None:
    settings = small(learner__resample_dead=True, task__prompts=4, seed=3)
    reports: list[list[Progress]] = [[] for _ in range(4)]
    for group in range(4):
        step = next(run(settings, progress=reports[group].append, group=lambda group=group: group))
        told = [report.written for report in reports[group] if report.written is not None]
        assert told[-1] == final(step, group)
    assert step.measurements["resampled"] > 0, "a group was drawn again"
    sampling = [[report.done for report in own if report.phase is Phase.SAMPLING] for own in reports]
    assert sampling[0].count(1) > 1
    prompts = [{report.written.prompt for report in own if report.written is not None} for own in reports]
    assert {len(own) for own in prompts} > {1}, "another prompt was asked, and not in every group"


def test_a_group_that_an_update_does_not_have_has_no_completions(always: None) -> None:
    reports: list[Progress] = []
    next(run(small(), progress=reports.append, group=lambda: 2))
    assert reports and all(report.written is None for report in reports)
