from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import gather, places, runs_last, scatter
from grpo_core.bandit.tasks import task
from grpo_core.config import BanditTask
from grpo_core.progress import unpolled


def test_the_temperature_divides_the_logits() -> None:
    logits = np.array([[[1.0, 2.0, 4.0]]])
    for temperature in (0.5, 1.0, 3.0):
        expected = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
        np.testing.assert_allclose(np.exp(policy.log_probs(logits, temperature)), expected, rtol=1e-14)


def test_each_run_may_have_its_own_temperature() -> None:
    logits = np.array([[[1.0, 2.0, 4.0]]] * 2)
    both = policy.log_probs(logits, np.array([0.5, 3.0]).reshape(2, 1, 1))
    np.testing.assert_array_equal(both[:1], policy.log_probs(logits[:1], 0.5))
    np.testing.assert_array_equal(both[1:], policy.log_probs(logits[1:], 3.0))


def test_huge_logits_give_finite_log_probabilities() -> None:
    logp = policy.log_probs(np.array([[[1e300, 0.0, -1e300]]]), 1.0)
    assert np.isfinite(logp).all()
    assert logp[0, 0, 0] == 0


def test_sampling_inverts_the_cumulative_distribution() -> None:
    work = task(BanditTask(actions=3))
    prob = np.array([[[0.2, 0.3, 0.5]]])
    uniforms = np.array([0, 0.19, 0.21, 0.49, 0.51, 0.999999]).reshape(1, 6, 1)
    drawn = policy.sample(prob, work, uniforms, unpolled)
    np.testing.assert_array_equal(drawn.tokens[0, :, 0], [0, 0, 1, 1, 2, 2])
    assert drawn.mask.all()


def test_completions_walk_through_the_states_until_they_end() -> None:
    work = task(BanditTask(landscape="length", max_length=4, levels=(0, 0)))
    uniforms = np.array(
        [[0.1, 0.9, 0.1, 0.1], [0.9, 0.1, 0.1, 0.1], [0.1, 0.1, 0.9, 0.9], [0.9, 0.9, 0.9, 0.9]]
    )  # below 0.5: right or more; above: wrong or stop
    drawn = policy.sample(np.full((1, 6, 2), 0.5), work, uniforms[None], unpolled)
    np.testing.assert_array_equal(drawn.tokens[0], [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]])
    np.testing.assert_array_equal(drawn.mask[0].sum(axis=-1), [2, 4, 3, 2])
    np.testing.assert_array_equal(drawn.context[0], [[0, 1, 0, 0], [0, 2, 2, 2], [3, 4, 4, 0], [3, 5, 0, 0]])


def test_sampled_frequencies_are_the_probabilities() -> None:
    work = task(BanditTask(actions=4))
    prob = np.array([0.1, 0.2, 0.3, 0.4])
    uniforms = np.random.default_rng(0).random((1, 40_000, 1))
    drawn = policy.sample(prob.reshape(1, 1, 4), work, uniforms, unpolled)
    share = np.bincount(drawn.tokens.ravel(), minlength=4) / 40_000
    np.testing.assert_allclose(share, prob, atol=0.01)


@pytest.mark.parametrize("runs", [1, 2, 5])
def test_gather_and_scatter_agree_with_plain_indexing(runs: int) -> None:
    rng = np.random.default_rng(runs)
    table = runs_last(rng.normal(size=(runs, 3, 4)))
    context, tokens = (runs_last(rng.integers(0, n, size=(runs, 6, 2))) for n in (3, 4))
    run = np.arange(runs)[:, None, None]
    where = places(context, tokens, table.shape)
    np.testing.assert_array_equal(gather(table, where), table[run, context, tokens])
    expected = np.zeros_like(table)
    np.add.at(expected, (run, context, tokens), 1.5)
    np.testing.assert_allclose(scatter(np.full(context.shape, 1.5), where, table.shape), expected)


PAGES = """
import numpy as np
from grpo_core.bandit.layout import keep_freed_memory
keep_freed_memory()
for megabytes in (8, 48):
    np.ones(megabytes * 2**17)
print(open("/proc/self/statm").read().split()[1])
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc can be told"
)
def test_a_process_that_computes_keeps_the_memory_of_freed_arrays_that_glibc_maps_separately() -> None:
    pages = subprocess.run([sys.executable, "-c", PAGES], check=True, capture_output=True, text=True).stdout
    assert int(pages) * 4096 > 48 * 2**20
