"""A language model's learner says which phase its update is in, and how far."""

from __future__ import annotations

from itertools import groupby

import pytest

from grpo_core import progress
from grpo_core.progress import Phase, Progress
from tests.core.lm.test_learner import run, same, small, steps


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is reported at once."""
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
