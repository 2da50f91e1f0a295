"""The progress of long updates is reported, and not too often."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grpo_core.progress import INTERVAL, QUIET, Phase, Progress, UpdateProgress, Written


class Watched:
    """Reports of an update, with a clock set by hand."""

    def __init__(self, quiet: float = QUIET, group: Callable[[], int] = int) -> None:
        self.now = 100.0
        self.reports: list[Progress] = []
        self.update = UpdateProgress(self.reports.append, clock=lambda: self.now, quiet=quiet, group=group)


def written(group: int) -> Written:
    return Written(group=group, prompt=(1,), completions=((2,),), ended=(True,))


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_nothing_is_reported_of_an_update_that_is_soon_over(watched: Watched) -> None:
    for step in (1, 2):
        watched.update.begin(step)
        for phase in Phase:
            watched.now += 0.9 * QUIET / len(Phase)
            watched.update.at(phase, 1, 2)
    assert watched.reports == []


def test_where_every_update_is_long_its_first_token_is_reported_at_once() -> None:
    watched = Watched(quiet=0.0)
    watched.update.begin(1)
    watched.update.at(Phase.SAMPLING, 1, 12)
    assert watched.reports == [Progress(step=1, phase=Phase.SAMPLING, done=1, total=12)]


def test_nothing_is_reported_outside_an_update(watched: Watched) -> None:
    watched.update.at(Phase.SAMPLING, 1, 2)
    assert watched.reports == []


def test_tokens_are_reported_no_more_often_than_the_interval(watched: Watched) -> None:
    watched.update.begin(3)
    watched.now += QUIET
    for token in range(1, 31):
        watched.update.at(Phase.SAMPLING, token, 30)
        watched.now += INTERVAL / 10 * 1.001
    assert [report.done for report in watched.reports] == [1, 11, 21]
    assert {(report.step, report.phase, report.total) for report in watched.reports} == {(3, Phase.SAMPLING, 30)}


def test_another_phase_is_reported_at_once_and_the_same_place_only_once(watched: Watched) -> None:
    watched.update.begin(1)
    watched.now += QUIET
    watched.update.at(Phase.SAMPLING, 30, 30)
    watched.update.at(Phase.TRAINING, 1, 2)
    watched.now += 2 * INTERVAL
    watched.update.at(Phase.TRAINING, 1, 2)
    watched.update.at(Phase.TRAINING, 2, 2)
    found = [(report.phase, report.done) for report in watched.reports]
    assert found == [(Phase.SAMPLING, 30), (Phase.TRAINING, 1), (Phase.TRAINING, 2)]


def test_completions_are_read_where_they_are_reported_and_told_again_only_where_they_are_others() -> None:
    group, read = 0, list[int]()

    def noted(group: int) -> Written:
        read.append(group)
        return written(group)

    watched = Watched(quiet=0.0, group=lambda: group)
    watched.update.begin(1, noted)
    for token in range(1, 12):
        watched.update.at(Phase.SAMPLING, token, 30)
        watched.now += INTERVAL / 10 * 1.001
    assert read == [0, 0], "not at every token"
    watched.update.at(Phase.TRAINING, 1, 3)
    watched.now += 2 * INTERVAL
    watched.update.at(Phase.TRAINING, 2, 3)
    group = 1
    watched.now += 2 * INTERVAL
    watched.update.at(Phase.TRAINING, 3, 3)
    told = [None if report.written is None else report.written.group for report in watched.reports]
    assert told == [0, 0, 0, None, 1]
    assert read == [0, 0, 0, 1]


def test_completions_are_told_ten_times_a_second_at_most_however_quick_the_updates_are() -> None:
    watched = Watched(quiet=0.0)
    for step in range(1, 101):
        watched.update.begin(step, written)
        for phase in Phase:
            watched.update.at(phase, 1, 1)
            watched.now += INTERVAL / 5 / len(Phase)
    told = sum(report.written is not None for report in watched.reports)
    assert 10 <= told <= (watched.now - 100.0) / INTERVAL + 1


def test_the_share_of_every_group_is_told_while_tokens_come_and_moves_at_every_report() -> None:
    watched, shares = Watched(quiet=0.0), (0.0, 0.0)
    watched.update.begin(1, groups=lambda: shares)
    for token in range(1, 5):
        shares = token / 8, token / 4
        watched.update.at(Phase.SAMPLING, 1, 1)  # the same place, as where a group is drawn again
        watched.now += 1.001 * INTERVAL
    watched.update.at(Phase.TRAINING, 1, 1)
    assert [report.groups for report in watched.reports] == [(0.125, 0.25), (0.25, 0.5), (0.375, 0.75), (0.5, 1.0), ()]
    assert [report.share for report in watched.reports] == [0.1875, 0.375, 0.5625, 0.75, None]
