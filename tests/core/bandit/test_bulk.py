from __future__ import annotations

from itertools import islice
from operator import attrgetter

import numpy as np
import pytest

from grpo_core.bandit import bulk
from grpo_core.bandit.simulate import updates
from grpo_core.config import Settings


@pytest.mark.parametrize(
    ("threads", "together", "parts"), [(1, 99, 1), (2, 99, 2), (3, 99, 3), (64, 99, 4), (1, 4, 6), (2, 4, 6), (3, 4, 6)]
)
def test_runs_split_over_threads_compute_the_same_bits(
    threads: int, together: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "LEAST", 5)
    monkeypatch.setattr(bulk, "TOGETHER", together)
    settings, seeds = Settings().replace({"learner.mu": 2}), range(23)
    split = bulk.bulk_updates(settings, seeds, threads=threads)
    for whole, pieces in islice(zip(updates(settings, seeds), split, strict=False), 3):
        assert len(pieces) == parts
        for name in ("state.logits", "advantage", "batch.completions.tokens"):
            read = attrgetter(name)
            np.testing.assert_array_equal(read(whole), np.concatenate([read(x) for x in pieces]), err_msg=name)


def test_few_runs_stay_in_one_thread() -> None:
    assert len(next(bulk.bulk_updates(Settings(), range(64)))) == 1
