"""The cursor walks through the stages of an update, and the explained number follows its selection and its pass."""

from __future__ import annotations

import pytest

from app.workspace.cursor import Cursor, Selection, Stage, at_selection, in_pass, same_kind
from grpo_core.explain import Quantity

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


@pytest.mark.parametrize(
    ("quantity", "selection", "expected"),
    [
        (Quantity("ratio", row=1, token=2), Selection(row=4, token=0), Quantity("ratio", row=4, token=0)),
        (Quantity("reward", row=1), Selection(row=4, token=3), Quantity("reward", row=4)),
        (Quantity("loss"), Selection(row=4), Quantity("loss")),
        (
            Quantity("probability", context=0, action=3),
            Selection(action=5),
            Quantity("probability", context=0, action=5),
        ),
        (Quantity("ratio", row=1, token=0), Selection(), Quantity("ratio", row=1, token=0)),
        (Quantity("group_mean", group=0), Selection(row=9), Quantity("group_mean", group=0)),
    ],
)
def test_it_becomes_the_same_number_of_what_is_selected(
    quantity: Quantity, selection: Selection, expected: Quantity
) -> None:
    assert at_selection(quantity, selection) == expected
    assert same_kind(quantity, expected)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (Quantity("ratio", passed=3, row=1), 0),
        (Quantity("ratio", passed=1, row=1), 1),
        (Quantity("logp", passed=3, row=1), 3),
        (Quantity("reward_mean"), 0),
    ],
    ids=lambda value: value.name if isinstance(value, Quantity) else str(value),
)
def test_only_a_number_of_the_pass_shown_goes_with_it(quantity: Quantity, expected: int) -> None:
    assert in_pass(quantity, 3, 0).passed == expected
