"""The arguments and results of experiments reach another process complete, and nothing else does."""

from __future__ import annotations

import dataclasses
import json
from itertools import islice
from typing import Any

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.jobs.table import JOBS, jobs
from grpo_core.learners import learner
from grpo_core.memory import Block
from grpo_core.packing import kinds, packed, unpacked
from grpo_core.progress import unpolled
from grpo_core.record import Step
from grpo_core.runs.layout import encoded
from tests.core.steps import random_step

SMALL = Settings().replace({"learner.group_size": 4, "learner.mu": 1})
CLIPPED = SMALL.replace({"learner.mu": 8, "optimizer.learning_rate": 2.0})
ASKED: dict[str, tuple[Any, ...]] = {
    "advice": (*reversed([*islice(learner(CLIPPED), 2)]),),
    "ensembles": ([SMALL, SMALL.replace({"objective.beta": 0.2})], (0, 1, 2), 4),
    "race": (SMALL, ("RLOO", "Dr. GRPO"), (0, 1, 2), 4, "updates"),
    "repeats": (SMALL, (0, 1), 4),
}
"""Small arguments for every job of the lab that trains no language model."""
LANGUAGE = {"first_updates", "ledger", "queue", "cluster"}
"""Jobs that can train a language model. ``test_queue.py``, ``test_computed_on.py`` and the tests of their panels run
them.
"""


def crossed(value: object) -> Any:
    """Return ``value`` after conversion to a line of JSON and bytes, and back."""
    tree, blobs = packed(value)
    return unpacked(json.loads(json.dumps(tree)), blobs)


def assert_equal(one: Any, other: Any) -> None:
    """Assert that types, fields and bits are the same."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, Step):
        assert (one.step, one.settings, encoded(one)) == (other.step, other.settings, encoded(other))
    elif dataclasses.is_dataclass(one) and not isinstance(one, Settings):
        for field in dataclasses.fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, (tuple, list)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_equal(mine, theirs)
    else:
        assert one == other or (one != one and other != other)


def test_every_job_that_trains_no_language_model_is_tried_here() -> None:
    assert set(ASKED) | LANGUAGE == set(JOBS)


@pytest.mark.parametrize("job", ASKED)
def test_the_arguments_and_every_result_of_a_job_cross(job: str) -> None:
    arguments = crossed([*ASKED[job]])
    assert_equal(arguments, [*ASKED[job]])
    results = list(jobs()[job](*ASKED[job], poll=unpolled))
    assert results
    for result in results:
        assert_equal(crossed(result), result)


@pytest.mark.parametrize(
    "value",
    [
        random_step(7),
        {"blocks": [Block(model="policy", part="weights", bytes=4.0, formula="4")], "held": 3, "allocated": None},
        {(0, 1): (float("nan"), float("inf"), -0.0), "a": True},
        np.float32(0.1) * np.ones((2, 0, 3), dtype=np.float32),
    ],
)
def test_values_cross_bit_by_bit(value: object) -> None:
    assert_equal(crossed(value), value)


def test_what_is_unknown_does_not_cross() -> None:
    with pytest.raises(TypeError, match="set"):
        packed([{1, 2}])
    with pytest.raises(ValueError, match="sent"):
        unpacked({"pickle": "x"}, [])


def test_every_kind_is_a_dataclass_of_its_own() -> None:
    assert len(set(kinds().values())) == len(kinds())
    assert all(dataclasses.is_dataclass(kind) for kind in kinds().values())
