"""The explained number follows the selection and the pass."""

from __future__ import annotations

import pytest

from app.workspace.cursor import Selection, at_selection, in_pass, same_kind
from grpo_core.explain import Quantity


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
