"""A step is converted to bytes and back without a change."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.errors import RunFileError
from grpo_core.explain import Quantity, explain
from grpo_core.record import Step
from grpo_core.runs.layout import decoded, encoded, packed, unpacked
from tests.core.lm_steps import lm_settings, lm_step
from tests.core.steps import random_step, same


@settings(max_examples=40, deadline=None)
@given(
    prompts=st.integers(1, 3),
    group_size=st.integers(1, 5),
    tokens=st.integers(1, 6),
    passes=st.integers(1, 4),
    contexts=st.integers(1, 4),
    bare=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_step_of_any_shape_comes_back_bit_for_bit(seed: int, bare: bool, **shape: Any) -> None:
    step = random_step(3, seed=seed, bare=bare, **shape)
    assert same(decoded(*encoded(step), 3, step.settings), step)


def test_steps_of_the_same_shapes_share_a_layout_and_others_do_not() -> None:
    assert encoded(random_step(1))[0] == encoded(random_step(2))[0]
    assert encoded(random_step(1))[0] != encoded(random_step(1, group_size=9))[0]


def test_fields_that_are_none_leave_no_trace() -> None:
    layout, record = encoded(random_step(bare=True))
    assert "gate" not in layout
    assert "dist_logp" not in layout
    assert decoded(layout, record, 1, random_step().settings).gate is None


def test_arrays_that_are_read_back_are_aligned_and_constant() -> None:
    arrays = unpacked(*packed({"flags": np.array([True, False, True]), "x": np.arange(3.0), "none": None}))
    assert list(arrays) == ["flags", "x"]
    assert arrays["x"].flags.aligned
    assert not arrays["x"].flags.writeable


def test_big_endian_arrays_are_stored_little_endian() -> None:
    layout, record = packed({"x": np.array([1.0, 2.0], ">f8")})
    assert record == np.array([1.0, 2.0], "<f8").tobytes()
    assert unpacked(layout, record)["x"].tolist() == [1.0, 2.0]


def test_objects_are_refused() -> None:
    with pytest.raises(RunFileError, match="booleans and numbers"):
        packed({"x": np.array([{}])})


@pytest.mark.parametrize(
    "layout",
    [
        "",
        "[]",
        "{}",
        '{"names": ["a"], "formats": ["O"], "shapes": [[1]], "offsets": [0], "itemsize": 8}',
        '{"names": ["a"], "formats": ["<f8"], "shapes": [[9]], "offsets": [0], "itemsize": 8}',
    ],
)
def test_a_layout_that_is_none_is_refused_in_a_sentence(layout: str) -> None:
    with pytest.raises(RunFileError, match="damaged"):
        unpacked(layout, bytes(8))


def test_a_record_of_the_wrong_size_is_refused() -> None:
    layout, record = encoded(random_step())
    with pytest.raises(RunFileError, match="damaged"):
        decoded(layout, record[:-8], 1, random_step().settings)


def test_a_record_without_what_every_step_has_is_refused() -> None:
    with pytest.raises(RunFileError, match="incomplete"):
        decoded(*packed({"group": np.arange(3)}), 1, random_step().settings)


def test_what_a_newer_version_adds_is_left_alone() -> None:
    step = random_step()
    layout, record = packed({**unpacked(*encoded(step)), "something_new": np.arange(4)})
    assert same(decoded(layout, record, 1, step.settings), step)


GAMEABLE = lm_step(settings=lm_settings(**{"task.problem": "gameable", "task.working_weight": 0.5}), prompts=2)


def with_parts(order: list[int], names: tuple[str, ...] | None) -> Step:
    """Return the update with these columns of reward parts, with these names, written and read back."""
    assert GAMEABLE.reward_parts is not None
    table = np.column_stack([GAMEABLE.reward_parts, GAMEABLE.rewards])[:, order]
    step = dataclasses.replace(GAMEABLE, reward_parts=table, part_names=names)
    return decoded(*encoded(step), 1, step.settings)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [0, 3, 1, 2]])
def test_parts_of_a_reward_are_read_by_the_names_in_the_record(order: list[int]) -> None:
    names = tuple(("right_answer", "well_formed", "equals_signs", "of a newer version")[place] for place in order)
    step = with_parts(order, names)
    assert step.part_names == names
    for row in range(len(step.rewards)):
        paid = explain(step, Quantity("reward", row=row))
        assert paid.agrees and paid.value == pytest.approx(step.rewards[row])
        formed = Quantity("well_formed", row=row)
        assert explain(step, formed).value == explain(GAMEABLE, formed).value


def test_an_update_of_an_older_version_has_the_first_parts_of_its_task() -> None:
    assert with_parts([0, 1, 2], None).part_names == GAMEABLE.part_names
    older = with_parts([0, 1], None)
    assert older.part_names == ("right_answer", "well_formed")
    assert len(explain(older, Quantity("reward", row=0)).inputs) == 2


@pytest.mark.parametrize(("order", "names"), [([0, 1, 2, 3], None), ([0, 1], GAMEABLE.part_names)])
def test_names_that_do_not_fit_the_parts_are_damage(order: list[int], names: tuple[str, ...] | None) -> None:
    with pytest.raises(RunFileError, match="reward_parts"):
        with_parts(order, names)
