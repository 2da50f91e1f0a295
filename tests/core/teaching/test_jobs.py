"""The jobs of lessons run in a separate process: their arguments and results cross unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_core.jobs.table import jobs
from grpo_core.progress import unpolled
from grpo_core.teaching import part
from tests.core.experiments.test_packing import SMALL, assert_equal, crossed

LENGTH = SMALL.replace({"task.landscape": "length"})
CHAIN = SMALL.replace({"task.landscape": "chain"})
ASKED: dict[str, tuple[Any, ...]] = {
    "lengths": (LENGTH, (3, 4)),
    "chain": (CHAIN, 4, (3, 4)),
}
"""Small arguments for every job of a lesson."""


def test_every_job_of_a_lesson_is_tried_here() -> None:
    assert set(ASKED) == set(part.jobs()) <= set(jobs())


@pytest.mark.parametrize("job", ASKED)
def test_the_arguments_and_every_result_of_a_job_cross(job: str) -> None:
    arguments = crossed([*ASKED[job]])
    assert_equal(arguments, [*ASKED[job]])
    results = list(jobs()[job](*ASKED[job], poll=unpolled))
    assert results
    for result in results:
        assert_equal(crossed(result), result)
