"""The cursor: the stages of an update, forwards and back."""

from __future__ import annotations

import pytest

from app.workspace.cursor import Cursor, Stage

WHOLE = [
    (Stage.SAMPLE, -1),
    (Stage.SCORE, -1),
    (Stage.NORMALIZE, -1),
    (Stage.UPDATE, 0),
    (Stage.UPDATE, 1),
    (Stage.UPDATE, 2),
]


def test_stages_go_forwards_through_every_pass_and_back_the_same_way() -> None:
    here: Cursor | None = Cursor(step=5, stage=Stage.SAMPLE)
    walked = []
    while here is not None:
        last = here
        walked.append((here.stage, here.passed))
        here = here.next_stage(3)
    assert walked == WHOLE
    here, back = last, []
    while here is not None:
        back.append((here.stage, here.passed))
        here = here.previous_stage(3)
    assert back == WHOLE[::-1]


def test_minus_one_stands_for_the_last_pass_whatever_their_number() -> None:
    assert [Cursor(step=1).pass_of(passes) for passes in (1, 4)] == [0, 3]
    assert Cursor(step=1, passed=7).pass_of(4) == 3


@pytest.mark.parametrize("stage", Stage)
def test_another_update_is_shown_whole(stage: Stage) -> None:
    assert Cursor(step=3, stage=stage, passed=1).at(9) == Cursor(step=9)
